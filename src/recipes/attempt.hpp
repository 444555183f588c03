#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "queue/contender.hpp"
#include "recipes/errand.hpp"

namespace latchkey::recipes {

/// What an attempt needs to know beyond what its contender decides.
struct Plan {
  queue::Contender::Options contender;
  std::string data;  ///< Of our node: who we are.
  std::vector<Acl> acl;
  Parent parent = Parent::kContainer;
  std::string base = {};       ///< See Ground.
  std::string base_data = {};  ///< See Ground.
};

/// One contender on one session: carries out what it asks for and tells it what came back.
/// Thread safety: session strand only.
class Attempt : public Errand {
 public:
  static std::shared_ptr<Attempt> start(const std::shared_ptr<session::Host>& host,
                                        session::Machine& machine, Plan plan,
                                        std::shared_ptr<Claimant> claimant);

  Attempt(const std::shared_ptr<session::Host>& host, session::Machine& machine, Plan plan,
          std::shared_ptr<Claimant> claimant);

  void cancel(Code code) override;
  void release(session::Completion done) override;
  /// A writer's hold is to become a reader's: `reader` hears how that went, and is the claimant
  /// from then on; right before, `retire` is called. Until then a loss is told to the writer as
  /// well.
  void downgrade(std::shared_ptr<Claimant> reader, std::function<void()> retire);
  void listen() override { feed(queue::event::Heartbeat{}); }

  void on_heartbeat() override { feed(queue::event::Heartbeat{}); }
  void on_lease_over() override { feed(queue::event::LeaseOver{}); }
  void on_session_over(Code code) override { feed(queue::event::SessionOver{code}); }

 protected:
  /// Passes on what has happened, and carries out what comes of it.
  virtual void feed(queue::Event event);
  void carry_out_any(queue::Action& wish) {
    std::visit([this](auto& what) { carry_out(what); }, wish);
  }
  [[nodiscard]] std::string path_of(const std::string& child) const;

  const Plan plan_;
  queue::Contender contender_;

 private:
  void carry_out(queue::action::Create& action);
  void carry_out(queue::action::List& action);
  void carry_out(queue::action::ListAndWatch& action);
  void carry_out(queue::action::Sync& action);
  void carry_out(queue::action::MakeDirectory& action);
  void carry_out(queue::action::RemoveDirectory& action);
  void carry_out(queue::action::Look& action);
  void carry_out(queue::action::Watch& action);
  void carry_out(queue::action::Unwatch& action);
  void carry_out(queue::action::UnwatchDirectory& action);
  void carry_out(queue::action::Exchange& action);
  void carry_out(queue::action::Withdraw& action);
  void carry_out(queue::action::Prove& action);
  void carry_out(queue::action::Pause& action);
  void carry_out(queue::action::Owe& action);
  void carry_out(queue::action::Grant& action);
  void carry_out(queue::action::Fail& action);
  void carry_out(queue::action::Lose& action);
  void carry_out(queue::action::Done& action);

  void look_for_ended(const std::string& name);
  void owe(const std::string& name);
  void list(queue::Ask ask, std::optional<session::WatchWish> watch);

  [[nodiscard]] std::weak_ptr<Attempt> weak_self() {
    return std::static_pointer_cast<Attempt>(shared_from_this());
  }

  const std::string directory_;                     ///< As the server knows it.
  std::function<void()> retire_;                    ///< While asking for a downgrade.
  std::map<std::string, session::CallId> watches_;  ///< By child.
  std::optional<session::CallId> directory_watch_;

  // Between a loss and its announcement.
  bool telling_loss_ = false;
  std::vector<std::string> held_back_;  ///< Nodes to owe once the holder knows.

  std::deque<queue::Event> events_;
  bool feeding_ = false;
};

}  // namespace latchkey::recipes
