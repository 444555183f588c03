#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "latchkey/semaphore.hpp"
#include "queue/permits.hpp"
#include "recipes/directory_errand.hpp"

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

class Attempt;

/// One claim to permits on one session. It is the claimant of its own place in the queue in front,
/// and carries out what its machine asks for among the leases.
/// Thread safety: session strand only.
class SemaphoreClaim final : public DirectoryErrand<queue::PermitEvent>, public Claimant {
 public:
  static std::shared_ptr<Claim> start(const std::shared_ptr<session::Host>& host,
                                      session::Machine& machine, PermitPlan plan,
                                      std::shared_ptr<Claimant> claimant);

  SemaphoreClaim(const std::shared_ptr<session::Host>& host, session::Machine& machine,
                 PermitPlan plan, std::shared_ptr<Claimant> claimant);

  // From the queue in front.
  void granted(Granted grant) override;
  void failed(Error error) override;
  void lost(Code code, std::function<void()> told) override;
  void asked_to_let_go() override {}

 private:
  [[nodiscard]] const std::string& path() const override { return plan_.permits.path; }
  [[nodiscard]] Ground ground() const override { return {leases_, plan_.acl, plan_.parent}; }
  [[nodiscard]] const std::string& directory() const override { return leases_; }
  void step(queue::PermitEvent& event) override;
  [[nodiscard]] bool is_own(const std::string& name) const override {
    return permits_.is_own(name);
  }
  [[nodiscard]] session::Completion next_removal() override;
  void removed(session::Outcome outcome);

  using DirectoryErrand::carry_out;
  void carry_out(queue::action::Queue& action);
  void carry_out(queue::action::Unqueue& action);
  void carry_out(queue::action::CreateAll& action);
  void carry_out(queue::action::ReadSize& action);
  void carry_out(queue::action::UnwatchSize& action);
  void carry_out(queue::action::StoreSize& action);
  void carry_out(queue::action::ListPath& action);
  void compare_ages(queue::event::PathListed listed);
  void ask_age(queue::event::PathListed listed, const std::string& child,
               std::function<void(queue::event::PathListed listed, std::int64_t made)> next);
  void carry_out(queue::action::GrantAll& action);
  void carry_out(queue::action::Warn& action);
  void carry_out(queue::action::Fail& action);

  const std::weak_ptr<session::Host> shared_host_;  ///< Weak, or the session would never close.
  const PermitPlan plan_;
  const std::string leases_;  ///< The directory of the permits.
  queue::Permits permits_;

  // The queue in front.
  std::weak_ptr<Attempt> front_;
  bool first_ = false;
  std::optional<Error> front_error_;

  std::optional<session::CallId> size_watch_;

  // What is being given up.
  session::Completion on_all_removed_;
  int removals_ = 0;  ///< Under way.
  std::optional<session::Outcome> trouble_;
};

}  // namespace latchkey::recipes
