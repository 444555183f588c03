#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <unordered_set>

#include <gtest/gtest.h>

#include "scenario/permits_world.hpp"

namespace latchkey::queue {

/// Looks into a machine, to tell its states apart. Lease names are told by how far their number is
/// behind the next one: what was before them does not matter.
struct PermitsProbe {
  template <class Names>
  static void append(std::string& key, const Names& names, int next) {
    for (const std::string& name : names) {
      key += std::to_string(next - std::stoi(name.substr(name.size() - 10))) + ",";
    }
    key += '/';
  }
  static void append(std::string& key, const std::optional<Answer>& answer) {
    key += answer ? std::to_string(static_cast<int>(answer->kind)) : "-";
  }
  /// What an ask is for, instead of its number.
  static int role(const Permits& self, Ask ask) {
    const Permits::Asks& asks = self.asks_;
    int role = 1;
    for (const Ask slot : {asks.survey, asks.survey_sync, asks.create, asks.list, asks.size,
                           asks.sync, asks.make, asks.remove, asks.prove, asks.pause}) {
      if (ask != 0 && slot == ask) return role;
      ++role;
    }
    for (const Traces::Trace& trace : self.traces_.all()) {
      if (ask != 0 && trace.ask == ask) return role;
      ++role;
    }
    return 0;
  }
  static std::string key(const Permits& self, int next) {
    std::string key;
    for (const int number : {static_cast<int>(self.phase_), static_cast<int>(self.after_pause_),
                             static_cast<int>(self.outcome_), int{self.leaving_}, int{self.queued_},
                             int{self.suspicious_}, int{self.agreed_}, int{self.size_known_},
                             self.stored_.value_or(-1), static_cast<int>(self.list_arm_),
                             static_cast<int>(self.size_arm_), static_cast<int>(self.vigil_)}) {
      key += std::to_string(number) + ",";
    }
    const Permits::Asks& asks = self.asks_;
    for (const Ask slot : {asks.survey, asks.survey_sync, asks.create, asks.list, asks.size,
                           asks.sync, asks.prove, asks.pause}) {
      key += slot != 0 ? '1' : '0';
    }
    append(key, self.survey_synced_);
    append(key, self.sync_answer_);
    append(key, self.list_answer_);
    std::vector<std::string> own;
    for (const auto& one : self.own_) own.push_back(one.place.name);
    append(key, own, next);
    append(key, self.children_, next);
    append(key, self.owed_, next);
    for (const Traces::Trace& one : self.traces_.all()) {
      append(key, std::vector{one.place.name}, next);
      key += std::to_string(static_cast<int>(one.is)) + (one.ask != 0 ? "?" : "!");
    }
    return key;
  }
};

}  // namespace latchkey::queue

namespace latchkey::mini::semaphore {

using Kind = Request::Kind;

std::string World::key(bool may_be_cut) const {
  std::string key;
  const auto add = [&](auto number) { key += std::to_string(number) + ","; };
  const auto add_request = [&](const Claimant& self, const Request& request) {
    add(static_cast<int>(request.kind));
    add(queue::PermitsProbe::role(self.machine, request.ask));
    add(int{request.watch} * 2 + int{self.unwanted.contains(request.ask)});
    if (request.kind != Kind::kDelete && request.kind != Kind::kLook) return;
    queue::PermitsProbe::append(key, std::vector{request.name}, counter_);
  };
  // What was before is over, unless a server still has it to apply, or a new one has to tell it.
  const auto looks_back = [&](const Claimant& self) {
    return self.started && !self.crashed && !self.done &&
           (may_be_cut || self.lags || !self.connected);
  };
  std::size_t oldest = newest();
  for (const Claimant& self : claims_) {
    if (looks_back(self)) oldest = std::min({oldest, self.last_seen, self.position});
  }
  for (std::size_t i = oldest; i <= newest(); ++i) {
    add(history_[i].size);
    for (const Lease& lease : history_[i].leases) add((counter_ - lease.number) * 8 + lease.claim);
    key += ';';
  }
  for (const int claim : line_) add(claim);
  for (const Claimant& self : claims_) {
    key += '|';
    int flags = 1;
    for (const bool flag :
         {self.started, self.cancelled, self.granted, self.failed, self.holding, self.done,
          self.crashed, self.told_first, self.robbed, self.woken, self.was_admitted, self.connected,
          self.server_watches_leases, self.server_watches_size, self.watches_leases,
          self.watches_size, self.paused.has_value()}) {
      flags = flags * 2 + (flag ? 1 : 0);
    }
    const bool over = self.crashed || (self.done && self.sent.empty());
    add(over ? -1 : flags);
    if (!self.started || over) continue;
    if (looks_back(self)) {
      add(newest() - self.position);
      add(newest() - self.last_seen);
    }
    key += queue::PermitsProbe::key(self.machine, counter_);
    for (const Request& request : self.sent) add_request(self, request);
    key += '+';
    for (const Request& request : self.ghosts) add_request(self, request);
    key += '+';
    for (const Message& message : self.inbox) {
      add(static_cast<int>(message.kind));
      add_request(self, message.request);
      add(static_cast<int>(message.answer.kind));
      if (looks_back(self)) add(newest() - message.position);
      key += message.data;
      queue::PermitsProbe::append(key, message.names, counter_);
    }
  }
  return key;
}

namespace {

/// As often as it likes: how often it has happened does not tell states apart then.
constexpr int kAnyNumber = -1;

struct Troubles {
  int cuts = 0;
  int cancels = 0;
  int crashes = 0;
  int lease_ends = 0;
  int robberies = 0;
  std::vector<int> sizes = {};  ///< One resize() each, in this order.
};

struct PermitStep {
  std::string name;
  std::function<void(World&)> happen;
  int Troubles::*price = nullptr;
  bool by_itself = false;
  bool resizes = false;
};

/// All that the servers and the network do by themselves for one caller.
void add_natural_steps(const World& world, int id, std::vector<PermitStep>& steps) {
  const Claimant& self = world.claims()[static_cast<std::size_t>(id)];
  if (self.crashed || !self.started) return;
  const auto natural = [&](const char* name, auto happen) {
    steps.push_back({name + (" " + std::to_string(id)), [id, happen](World& w) { happen(w, id); },
                     nullptr, true});
  };
  if (!self.inbox.empty()) natural("receive", [](World& w, int who) { w.receive(who); });
  if (self.connected && !self.sent.empty()) {
    natural("serve", [](World& w, int who) { w.serve(who); });
  }
  if (self.paused) natural("resume", [](World& w, int who) { w.resume(who); });
  const bool first = !world.line().empty() && world.line().front() == id;
  if (first && !self.told_first) natural("promote", [](World& w, int who) { w.promote(who); });
  if (self.lags && self.connected && self.position < world.newest()) {
    natural("catch up", [](World& w, int who) { w.catch_up(who); });
  }
  if (self.connected) return;
  if (!self.ghosts.empty()) natural("land", [](World& w, int who) { w.land(who); });
  natural("attach", [](World& w, int who) { w.attach(who, World::Attach::kNewest); });
  if (self.lags && self.last_seen < world.newest()) {
    natural("attach to a laggard",
            [](World& w, int who) { w.attach(who, World::Attach::kOldestAllowed); });
  }
}

/// Is there one before it that has not come either and is like it? Then which of them comes first
/// makes no difference.
bool has_a_double(const World& world, int id) {
  const auto& claims = world.claims();
  const Claimant& self = claims[static_cast<std::size_t>(id)];
  return std::any_of(claims.begin(), claims.begin() + id, [&](const Claimant& other) {
    return !other.started && !other.crashed && other.count == self.count && other.lags == self.lags;
  });
}

/// What callers and troubles may do.
void add_deeds(const World& world, int id, std::vector<PermitStep>& steps) {
  const Claimant& self = world.claims()[static_cast<std::size_t>(id)];
  const auto deed = [&](const char* name, auto happen, int Troubles::*price = nullptr) {
    steps.push_back({name + (" " + std::to_string(id)), [id, happen](World& w) { happen(w, id); },
                     price, false});
  };
  if (self.crashed || self.done) return;
  if (!self.started) {
    if (!has_a_double(world, id)) deed("start", [](World& w, int who) { w.start(who); });
    return;
  }
  deed(
      "crash", [](World& w, int who) { w.crash(who); }, &Troubles::crashes);
  if (self.connected)
    deed(
        "cut", [](World& w, int who) { w.cut(who); }, &Troubles::cuts);
  if (self.holding) {
    deed("release", [](World& w, int who) { w.release(who); });
    deed(
        "lease over", [](World& w, int who) { w.lease_over(who); }, &Troubles::lease_ends);
  }
  if (!self.cancelled) {
    deed(
        "cancel", [](World& w, int who) { w.cancel(who); }, &Troubles::cancels);
  }
}

std::vector<PermitStep> permit_steps(const World& world, const Troubles& left) {
  std::vector<PermitStep> steps;
  for (std::size_t i = 0; i < world.claims().size(); ++i) {
    add_natural_steps(world, static_cast<int>(i), steps);
    add_deeds(world, static_cast<int>(i), steps);
  }
  if (!left.sizes.empty()) {
    const int size = left.sizes.front();
    steps.push_back({"resize to " + std::to_string(size), [size](World& w) { w.resize(size); },
                     nullptr, false, true});
  }
  for (std::size_t i = 0; i < world.leader().leases.size(); ++i) {
    steps.push_back({"rob", [i](World& w) { w.rob(i); }, &Troubles::robberies, false});
  }
  std::erase_if(steps, [&](const PermitStep& step) { return step.price && left.*step.price == 0; });
  return steps;
}

/// Everything that happens by itself happens, in one order, until nothing is left.
void settle(World& world) {
  for (;;) {
    std::vector<PermitStep> steps;
    for (std::size_t i = 0; i < world.claims().size(); ++i) {
      add_natural_steps(world, static_cast<int>(i), steps);
    }
    if (steps.empty()) return;
    steps.front().happen(world);
  }
}

enum class Pace {
  kEveryOrder,  ///< Every message and every deed in every order.
  kSettled,     ///< Every order of deeds, with time between them for all messages to arrive.
};

/// Goes through all that can happen, depth first, each state once. What comes out is empty, or the
/// first broken promise and the road to it.
class Explorer {
 public:
  explicit Explorer(Pace pace) : pace_(pace) {}

  std::string run(const World& world, const Troubles& troubles) {
    visit(world, troubles);
    return failure_;
  }
  [[nodiscard]] std::size_t states() const { return seen_.size(); }

 private:
  void visit(World world, const Troubles& left) {
    if (pace_ == Pace::kSettled) settle(world);
    std::string key = world.key(left.cuts > 0);
    for (const int budget : {left.cuts, left.cancels, left.crashes, left.lease_ends, left.robberies,
                             static_cast<int>(left.sizes.size())}) {
      key += "$" + std::to_string(budget);
    }
    if (world.violations().empty() && !seen_.insert(std::hash<std::string>{}(key)).second) return;
    const std::vector<PermitStep> steps = permit_steps(world, left);
    const bool at_rest = std::none_of(steps.begin(), steps.end(),
                                      [](const PermitStep& step) { return step.by_itself; });
    if (at_rest) world.check_at_rest();
    if (!world.violations().empty()) {
      for (const std::string& name : road_) failure_ += name + "\n";
      failure_ += "=> " + world.violations().front();
      return;
    }
    for (const PermitStep& step : steps) {
      Troubles rest = left;
      if (step.price && rest.*step.price != kAnyNumber) --(rest.*step.price);
      if (step.resizes) rest.sizes.erase(rest.sizes.begin());
      World next = world;
      step.happen(next);
      road_.push_back(step.name);
      visit(std::move(next), rest);
      road_.pop_back();
      if (!failure_.empty()) return;
    }
  }

  const Pace pace_;
  std::unordered_set<std::size_t> seen_;
  std::vector<std::string> road_;
  std::string failure_;
};

World make_world(int size, const std::vector<int>& counts, Mutant mutant = Mutant::kNone,
                 bool first_lags = false) {
  World world(size, mutant);
  for (const int count : counts) {
    world.add(count, std::nullopt, first_lags && world.claims().empty());
  }
  return world;
}

void expect_all_is_well(const World& world, const Troubles& troubles,
                        Pace pace = Pace::kEveryOrder) {
  Explorer explorer(pace);
  EXPECT_EQ(explorer.run(world, troubles), "");
  EXPECT_GT(explorer.states(), 50U);
  if (std::getenv("LATCHKEY_VERBOSE")) std::cout << explorer.states() << " states\n";
}

void expect_found(const World& world, const Troubles& troubles, const std::string& what) {
  Explorer explorer(Pace::kEveryOrder);
  const std::string failure = explorer.run(world, troubles);
  EXPECT_NE(failure.find(what), std::string::npos) << "found: " << failure;
}

// Up to five callers, with time for messages to arrive between what they do.

TEST(PermitsExploration, H46_FiveForTwoPermitsComeAndGoInEveryOrder) {
  expect_all_is_well(make_world(2, {1, 1, 1, 1, 1}), {.cancels = kAnyNumber, .crashes = kAnyNumber},
                     Pace::kSettled);
}

TEST(PermitsExploration, H47_FiveOfAllWeightsNeverLeaveEnoughPermitsIdle) {
  expect_all_is_well(make_world(4, {3, 2, 1, 4, 2}), {.cancels = kAnyNumber, .crashes = kAnyNumber},
                     Pace::kSettled);
}

TEST(PermitsExploration, H48_TheSizeFallsAndRisesUnderFive) {
  expect_all_is_well(make_world(3, {1, 2, 1, 3, 1}), {.sizes = {1, 4}}, Pace::kSettled);
}

TEST(PermitsExploration, H48_TheSizeFallsAndRisesUnderFiveWhoGiveUpAndCrash) {
  expect_all_is_well(make_world(3, {1, 2, 1, 3, 1}),
                     {.cancels = kAnyNumber, .crashes = kAnyNumber, .sizes = {1, 4}},
                     Pace::kSettled);
}

// Fewer, with every message in every order.

TEST(PermitsExploration, H46_ThreeStrangersTakeTurns) {
  expect_all_is_well(make_world(2, {1, 1, 1}), {});
}

TEST(PermitsExploration, H46_WeightsThatDoNotFitTogetherTakeTurns) {
  expect_all_is_well(make_world(4, {3, 2}), {.cancels = 1, .crashes = 1});
}

TEST(PermitsExploration, H48_TheSizeChangesAtAnyMoment) {
  expect_all_is_well(make_world(2, {1, 2}), {.sizes = {1, 3}});
  expect_all_is_well(make_world(1, {1, 1}), {.sizes = {2, 1}});
  expect_all_is_well(make_world(2, {1, 1}, Mutant::kNone, true), {.sizes = {1}});
}

TEST(PermitsExploration, H01_AConnectionLostAtAnyMoment) {
  expect_all_is_well(make_world(2, {2, 1}), {.cuts = 1});
  expect_all_is_well(make_world(2, {2}), {.cuts = 3});
}

TEST(PermitsExploration, H02_AConnectionLostBehindALaggingServer) {
  expect_all_is_well(make_world(2, {2, 1}, Mutant::kNone, true), {.cuts = 1});
}

TEST(PermitsExploration, H06_ACancelAtAnyMomentBeforeOrAfterACut) {
  expect_all_is_well(make_world(1, {1, 1}), {.cuts = 1, .cancels = 1});
  expect_all_is_well(make_world(2, {2}, Mutant::kNone, true), {.cuts = 2, .cancels = 1});
}

TEST(PermitsExploration, H09_ALeaseEndsByTheClock) {
  expect_all_is_well(make_world(1, {1, 1}), {.cuts = 1, .lease_ends = 1});
}

TEST(PermitsExploration, H05_AnotherHandDeletesLeases) {
  expect_all_is_well(make_world(3, {2, 1}), {.robberies = 1});
}

// A net that catches nothing is worth nothing: each classic mistake has to be found.

TEST(PermitsExplorationFinds, H48_ASizeReadBeforeTheLeases) {
  expect_found(make_world(2, {1, 1, 1}, Mutant::kSizeBeforeList), {.sizes = {1}},
               "never had a right");
}

TEST(PermitsExplorationFinds, H47_AHeadThatDoesNotHearOfAReturnedPermit) {
  expect_found(make_world(1, {1, 1}, Mutant::kDeafToLeases), {}, "sleeps while permits are free");
}

TEST(PermitsExplorationFinds, H47_AHeadThatDoesNotHearOfALargerSize) {
  expect_found(make_world(1, {1, 1}, Mutant::kDeafToSize), {.sizes = {2}},
               "sleeps while permits are free");
}

TEST(PermitsExplorationFinds, H46_AWakeTakenForAGrant) {
  expect_found(make_world(2, {1, 1, 2}, Mutant::kWakeIsGrant), {}, "never had a right");
}

TEST(PermitsExplorationFinds, H02_ASearchWithoutSync) {
  expect_found(make_world(1, {1}, Mutant::kSearchWithoutSync, true), {.cuts = 1, .cancels = 1},
               "orphan");
}

TEST(PermitsExplorationFinds, H06_ACancelThatOwesNothing) {
  expect_found(make_world(1, {1}, Mutant::kCancelOwesNothing), {.cancels = 1}, "orphan");
}

}  // namespace
}  // namespace latchkey::mini::semaphore
