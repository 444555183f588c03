#include "sim/shrink.hpp"

#include <functional>
#include <utility>

namespace latchkey::sim {
namespace {

using namespace std::chrono_literals;

/// What strikes followers needs one.
void take_follower(Plan& plan) {
  using testing::Fault;
  if (--plan.world.followers > 0) return;
  for (std::vector<Fault>* const faults : {&plan.faults, &plan.rare_faults}) {
    std::erase_if(*faults, [](Fault one) {
      return one == Fault::kLag || one == Fault::kPartFollower || one == Fault::kDepose;
    });
  }
}

/// Everything that can be taken away from a plan in one step.
std::vector<Plan> smaller(const Plan& plan) {
  std::vector<Plan> plans;
  const auto propose = [&](const std::function<void(Plan&)>& change) {
    Plan candidate = plan;
    change(candidate);
    plans.push_back(std::move(candidate));
  };
  if (plan.length > 2s) propose([](Plan& one) { one.length /= 2; });
  if (plan.clients > 2) propose([](Plan& one) { --one.clients; });
  if (plan.contenders > 1) propose([](Plan& one) { --one.contenders; });
  if (plan.world.followers > 0) propose(take_follower);
  if (plan.try_permille > 0) propose([](Plan& one) { one.try_permille = 0; });
  if (plan.cancel_permille > 0) propose([](Plan& one) { one.cancel_permille = 0; });
  for (std::size_t i = 0; i < plan.faults.size(); ++i) {
    propose(
        [i](Plan& one) { one.faults.erase(one.faults.begin() + static_cast<std::ptrdiff_t>(i)); });
  }
  for (std::size_t i = 0; i < plan.rare_faults.size(); ++i) {
    propose([i](Plan& one) {
      one.rare_faults.erase(one.rare_faults.begin() + static_cast<std::ptrdiff_t>(i));
    });
  }
  if (plan.sick_permille > 0) propose([](Plan& one) { one.sick_permille = 0; });
  if (plan.long_hold_permille > 0) propose([](Plan& one) { one.long_hold_permille = 0; });
  if (!plan.reason.empty()) propose([](Plan& one) { one.reason.clear(); });
  if (plan.drifts) propose([](Plan& one) { one.drifts = false; });
  if (plan.resizes) propose([](Plan& one) { one.resizes = false; });
  if (plan.guards) propose([](Plan& one) { one.guards = false; });
  if (plan.relists) propose([](Plan& one) { one.relists = false; });
  if (plan.farewells) propose([](Plan& one) { one.farewells = false; });
  if (plan.regrants) propose([](Plan& one) { one.regrants = false; });
  if (plan.hurry_permille > 0) propose([](Plan& one) { one.hurry_permille = 0; });
  if (plan.twins) propose([](Plan& one) { one.twins = false; });
  if (plan.observes) propose([](Plan& one) { one.observes = false; });
  for (std::size_t i = 0; i < plan.sites.size() && plan.sites.size() > 1; ++i) {
    propose(
        [i](Plan& one) { one.sites.erase(one.sites.begin() + static_cast<std::ptrdiff_t>(i)); });
    const auto is_multi = [](const Site& site) { return site.sort == Sort::kMulti; };
    // A multi-lock needs two mutexes.
    std::size_t mutexes = 0;
    for (const Site& site : plans.back().sites) mutexes += site.sort == Sort::kMutex ? 1 : 0;
    if (mutexes < 2) std::erase_if(plans.back().sites, is_multi);
    if (plans.back().sites.empty()) plans.pop_back();
  }
  return plans;
}

}  // namespace

Plan shrink(Plan plan, Invariant invariant) {
  for (bool changed = true; changed;) {
    changed = false;
    for (Plan& candidate : smaller(plan)) {
      const Outcome outcome = play(candidate);
      if (!outcome.violation || outcome.violation->invariant != invariant) continue;
      plan = std::move(candidate);
      changed = true;
      break;
    }
  }
  return plan;
}

}  // namespace latchkey::sim
