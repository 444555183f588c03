#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "queue/name_contender.hpp"
#include "recipes/machine_errand.hpp"

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
class NameAttempt final : public MachineErrand<queue::NameEvent> {
 public:
  static std::shared_ptr<NameAttempt> start(const std::shared_ptr<session::Host>& host,
                                            session::Machine& machine, NamePlan plan,
                                            std::shared_ptr<Claimant> claimant);

  NameAttempt(const std::shared_ptr<session::Host>& host, session::Machine& machine, NamePlan plan,
              std::shared_ptr<Claimant> claimant);

 private:
  [[nodiscard]] const std::string& path() const override { return plan_.contender.node; }
  [[nodiscard]] Ground ground() const override {
    return {.directory = {}, .acl = {}, .parent = plan_.parent};
  }
  void step(queue::NameEvent& event) override;

  using MachineErrand::carry_out;
  void carry_out(queue::action::CreateNode& action);
  void carry_out(queue::action::ReadNode& action);
  void carry_out(queue::action::ReadAndWatchNode& action);
  void carry_out(queue::action::UnwatchNode& action);
  void carry_out(queue::action::ForgetWatch& action);
  void carry_out(queue::action::RemoveNode& action);
  void carry_out(queue::action::NodeRemoved& action);
  void carry_out(queue::action::Grant& action);
  void carry_out(queue::action::Lose& action);
  void carry_out(queue::action::Done& action);

  session::CallId read(queue::Ask ask, std::optional<session::WatchWish> watch);

  const NamePlan plan_;
  const std::string guid_;
  const std::string node_;  ///< As the server knows it.
  queue::NameContender contender_;
  std::optional<session::CallId> watch_;  ///< The call that set it, or is about to.
};

}  // namespace latchkey::recipes
