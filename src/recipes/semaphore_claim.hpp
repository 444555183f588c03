#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "latchkey/semaphore.hpp"
#include "queue/permits.hpp"
#include "recipes/errand.hpp"

namespace latchkey::recipes {

/// What a claim to permits needs to know beyond what its machine decides.
struct PermitPlan {
  queue::Permits::Options permits;
  std::string data;  ///< Of our nodes: who we are.
  std::vector<Acl> acl;
  Parent parent = Parent::kContainer;
  /// Of all claims through one Semaphore: has the log been told that no size is stored?
  std::shared_ptr<bool> warned;
};

/// One claim to permits on one session. It is the claimant of its own place in the queue in front,
/// and carries out what its machine asks for among the leases.
/// Thread safety: session strand only.
class SemaphoreClaim final : public Errand, public Claimant {
 public:
  static std::shared_ptr<Claim> start(const std::shared_ptr<session::Host>& host,
                                      session::Machine& machine, PermitPlan plan,
                                      std::shared_ptr<Claimant> claimant);

  SemaphoreClaim(const std::shared_ptr<session::Host>& host, session::Machine& machine,
                 PermitPlan plan, std::shared_ptr<Claimant> claimant);

  void cancel(Code code) override { feed(queue::event::Cancel{code}); }
  void release(session::Completion done) override;
  void listen() override { feed(queue::event::Heartbeat{}); }
  void on_heartbeat() override { feed(queue::event::Heartbeat{}); }
  void on_lease_over() override { feed(queue::event::LeaseOver{}); }
  void on_session_over(Code code) override { feed(queue::event::SessionOver{code}); }

  // From the queue in front.
  void granted(Granted grant) override;
  void failed(Error error) override;
  void lost(Code code, std::function<void()> told) override;
  void asked_to_let_go() override {}

 private:
  void feed(queue::PermitEvent event);

  void carry_out(queue::action::Queue& action);
  void carry_out(queue::action::Unqueue& action);
  void carry_out(queue::action::CreateAll& action);
  void carry_out(queue::action::ReadSize& action);
  void carry_out(queue::action::UnwatchSize& action);
  void carry_out(queue::action::GrantAll& action);
  void carry_out(queue::action::Warn& action);
  void carry_out(queue::action::List& action);
  void carry_out(queue::action::ListAndWatch& action);
  void carry_out(queue::action::Sync& action);
  void carry_out(queue::action::MakeDirectory& action);
  void carry_out(queue::action::RemoveDirectory& action);
  void carry_out(queue::action::Look& action);
  void carry_out(queue::action::Watch& action);
  void carry_out(queue::action::Unwatch& action);
  void carry_out(queue::action::UnwatchDirectory& action);
  void carry_out(queue::action::Withdraw& action);
  void carry_out(queue::action::Prove& action);
  void carry_out(queue::action::Pause& action);
  void carry_out(queue::action::Owe& action);
  void carry_out(queue::action::Fail& action);
  void carry_out(queue::action::Lose& action);
  void carry_out(queue::action::Done& action);

  void list(queue::Ask ask, std::optional<session::WatchWish> watch);
  void owe(const std::string& name);
  void removed(session::Outcome outcome);
  [[nodiscard]] std::string path_of(const std::string& lease) const;
  [[nodiscard]] std::weak_ptr<SemaphoreClaim> weak_self() {
    return std::static_pointer_cast<SemaphoreClaim>(shared_from_this());
  }

  const std::weak_ptr<session::Host> shared_host_;  ///< Weak, or the session would never close.
  const PermitPlan plan_;
  const std::string path_;       ///< The semaphore's, as the server knows it.
  const std::string directory_;  ///< The leases', as the server knows it.
  queue::Permits permits_;

  // The queue in front.
  std::weak_ptr<Claim> front_;
  bool first_ = false;
  std::optional<Error> front_error_;

  std::map<std::string, session::CallId> watches_;  ///< By lease.
  std::optional<session::CallId> directory_watch_;
  std::optional<session::CallId> size_watch_;

  // What is being given up.
  session::Completion on_all_removed_;
  int removals_ = 0;  ///< Under way.
  std::optional<session::Outcome> trouble_;
  bool telling_loss_ = false;           ///< Between a loss and its announcement.
  std::vector<std::string> held_back_;  ///< Nodes to owe once the holder knows.

  std::deque<queue::PermitEvent> events_;
  bool feeding_ = false;
};

}  // namespace latchkey::recipes
