#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "queue/name_contender.hpp"
#include "recipes/errand.hpp"

namespace latchkey::recipes {

/// What an attempt at a name needs to know beyond what its contender decides.
struct NamePlan {
  queue::NameContender::Options contender;
  std::string data;  ///< Of our node: who we are.
  std::vector<Acl> acl;
  Parent parent = Parent::kContainer;
};

/// One NameContender on one session: carries out what it asks for and tells it what came back.
/// Thread safety: session strand only.
class NameAttempt final : public Errand {
 public:
  static std::shared_ptr<NameAttempt> start(const std::shared_ptr<session::Host>& host,
                                            session::Machine& machine, NamePlan plan,
                                            std::shared_ptr<Claimant> claimant);

  NameAttempt(const std::shared_ptr<session::Host>& host, session::Machine& machine, NamePlan plan,
              std::shared_ptr<Claimant> claimant);

  void cancel(Code code) override { feed(queue::event::Cancel{code}); }
  void release(session::Completion done) override;
  void listen() override { feed(queue::event::Heartbeat{}); }

  void on_heartbeat() override { feed(queue::event::Heartbeat{}); }
  void on_lease_over() override { feed(queue::event::LeaseOver{}); }
  void on_session_over(Code code) override { feed(queue::event::SessionOver{code}); }

 private:
  void feed(queue::NameEvent event);

  void carry_out(queue::action::CreateNode& action);
  void carry_out(queue::action::ReadNode& action);
  void carry_out(queue::action::ReadAndWatchNode& action);
  void carry_out(queue::action::UnwatchNode& action);
  void carry_out(queue::action::ForgetWatch& action);
  void carry_out(queue::action::RemoveNode& action);
  void carry_out(queue::action::NodeRemoved& action);
  void carry_out(queue::action::Sync& action);
  void carry_out(queue::action::MakeDirectory& action);
  void carry_out(queue::action::Withdraw& action) { withdraw(action.ask); }
  void carry_out(queue::action::Prove& action);
  void carry_out(queue::action::Pause& action);
  void carry_out(queue::action::Grant& action);
  void carry_out(queue::action::Fail& action);
  void carry_out(queue::action::Lose& action);
  void carry_out(queue::action::Done& action);

  session::CallId read(queue::Ask ask, std::optional<session::WatchWish> watch);

  const NamePlan plan_;
  const std::string guid_;
  const std::string node_;  ///< As the server knows it.
  queue::NameContender contender_;
  std::optional<session::CallId> watch_;  ///< The call that set it, or is about to.

  std::deque<queue::NameEvent> events_;
  bool feeding_ = false;
};

}  // namespace latchkey::recipes
