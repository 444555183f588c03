#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "queue/contender.hpp"
#include "recipes/directory_errand.hpp"

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
class Attempt : public DirectoryErrand<queue::Event> {
 public:
  static std::shared_ptr<Attempt> start(const std::shared_ptr<session::Host>& host,
                                        session::Machine& machine, Plan plan,
                                        std::shared_ptr<Claimant> claimant);

  Attempt(const std::shared_ptr<session::Host>& host, session::Machine& machine, Plan plan,
          std::shared_ptr<Claimant> claimant);

  /// See Contender.
  [[nodiscard]] std::string why_it_waits() const { return contender_.why_it_waits(); }

  bool downgrade(std::shared_ptr<Claimant> reader, std::function<void()> retire) override;

 protected:
  void carry_out_any(queue::Action& wish) {
    std::visit([this](auto& what) { carry_out(what); }, wish);
  }

  const Plan plan_;
  queue::Contender contender_;

 private:
  void step(const queue::Event& event) override;
  [[nodiscard]] bool is_own(const std::string& name) const override {
    return contender_.is_own(name);
  }
  [[nodiscard]] session::Completion next_removal() override {
    return std::exchange(on_removed_, {});
  }

  using DirectoryErrand::carry_out;
  void carry_out(queue::action::Create& action);
  void carry_out(queue::action::Exchange& action);
  void carry_out(queue::action::Grant& action);

  std::function<void()> retire_;  ///< While asking for a downgrade.
};

}  // namespace latchkey::recipes
