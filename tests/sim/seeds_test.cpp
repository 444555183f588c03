#include "sim/seeds.hpp"

#include <algorithm>
#include <array>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/mutant.hpp"
#include "sim/directed.hpp"
#include "sim/mutants.hpp"
#include "sim/plan.hpp"
#include "sim/run.hpp"
#include "sim/shrink.hpp"

namespace latchkey::sim {

// For the test's log.
static void PrintTo(const Plan& plan, std::ostream* out) { *out << describe(plan); }
#ifdef LATCHKEY_MUTANTS
static void PrintTo(const Quarry& quarry, std::ostream* out) {
  *out << base::kMutantNames.at(static_cast<std::size_t>(quarry.mutant));
}
#endif

namespace {

/// Seeds that once showed a fault, of the product or of the simulator: docs/testing.md says which.
constexpr std::array<std::uint64_t, 9> kRegressions = {16, 20, 22, 27, 63, 529, 719, 4'450, 4'862};

/// The same with rarities and edges of time.
constexpr std::array<std::uint64_t, 11> kLaterRegressions = {
    33, 206, 5'026, 5'093, 5'251, 20'027, 20'114, 20'150, 20'697, 40'340, 101'825};

/// Of a seed that ends with a nine, found before those had switches.
constexpr std::array<std::uint64_t, 1> kUnswitchedRegressions = {41'209};

/// Those that end with a nine have rare paths inside the code as well: tight bounds, and mutexes
/// that list again on every wake.
constexpr std::array<std::uint64_t, 2> kSwitched = {39, 129};
/// Those that end with a two may have early time-outs and twins beside them.
constexpr std::array<std::uint64_t, 3> kHurriedTwins = {52, 242, 362};
/// Those that end with an eight behind an odd digit have farewells in every queue.
constexpr std::array<std::uint64_t, 4> kFarewells = {18, 38, 58, 78};

class Seeds : public ::testing::TestWithParam<Plan> {};

TEST_P(Seeds, ShowNoViolationAndRunTheSameTwice) {
  const Plan& plan = GetParam();

  const Outcome first = play(plan);
  const Outcome second = play(plan);

  EXPECT_FALSE(first.violation) << describe(first) << '\n'
                                << describe(plan) << '\n'
                                << command_for(plan);
  EXPECT_GT(first.holds, 0U) << describe(plan);
  EXPECT_EQ(first.trace, second.trace) << describe(plan);
}

template <std::size_t kSize>
std::vector<Plan> plans(const std::array<std::uint64_t, kSize>& seeds,
                        Plan (*draw)(std::uint64_t seed)) {
  std::vector<Plan> drawn;
  for (const std::uint64_t seed : seeds) drawn.push_back(draw(seed));
  return drawn;
}

std::string seed_of(const ::testing::TestParamInfo<Plan>& info) {
  return std::to_string(info.param.seed);
}

INSTANTIATE_TEST_SUITE_P(Quick, Seeds, ::testing::ValuesIn(plans(kQuick, draw_plan)), seed_of);
INSTANTIATE_TEST_SUITE_P(Switched, Seeds, ::testing::ValuesIn(plans(kSwitched, draw_plan)),
                         seed_of);
INSTANTIATE_TEST_SUITE_P(HurriedTwins, Seeds, ::testing::ValuesIn(plans(kHurriedTwins, draw_plan)),
                         seed_of);
INSTANTIATE_TEST_SUITE_P(Farewells, Seeds, ::testing::ValuesIn(plans(kFarewells, draw_plan)),
                         seed_of);
INSTANTIATE_TEST_SUITE_P(Regression, Seeds,
                         ::testing::ValuesIn(plans(kRegressions, draw_plain_plan)), seed_of);
INSTANTIATE_TEST_SUITE_P(LaterRegression, Seeds,
                         ::testing::ValuesIn(plans(kLaterRegressions, draw_plan)), seed_of);
INSTANTIATE_TEST_SUITE_P(UnswitchedRegression, Seeds,
                         ::testing::ValuesIn(plans(kUnswitchedRegressions, draw_unswitched_plan)),
                         seed_of);

TEST(Luck, MeetsEveryHazardThatItCanInAFewSeeds) {
  Sightings all;
  std::array<std::uint64_t, kInvariants> checks{};
  for (const std::uint64_t seed : kQuick) {
    const Outcome outcome = play(draw_plan(seed));
    all.add(outcome.sightings);
    for (std::size_t i = 0; i < kInvariants; ++i) checks.at(i) += outcome.checks.at(i);
  }

  for (const Hazard& hazard : hazards()) {
    if (hazard.reach != Reach::kLuck) continue;
    EXPECT_GT(all.of(hazard.number), 0U) << "H" << hazard.number << ": " << hazard.what;
  }
  for (std::size_t i = 0; i < kInvariants; ++i) {
    EXPECT_GT(checks.at(i), 0U) << name(static_cast<Invariant>(i)) << " was never compared";
  }
}

TEST(Luck, EveryHazardHasItsPlaceInTheTable) {
  int number = 0;
  for (const Hazard& hazard : hazards()) {
    EXPECT_EQ(hazard.number, ++number);
    EXPECT_FALSE(hazard.what.empty());
  }
}

TEST(Luck, APlainPlanHasNoRarities) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const Plan plain = draw_plain_plan(seed);
    const Plan plan = draw_plan(seed);

    EXPECT_TRUE(plain.rare_faults.empty());
    EXPECT_EQ(plain.faults, plan.faults);
    EXPECT_EQ(plain.length, plan.length);
  }
}

TEST(Luck, SomeSeedsHaveMutexesThatListAgainOnEveryWake) {
  for (const std::uint64_t seed : kSwitched) {
    Plan plan = draw_plan(seed);
    ASSERT_TRUE(plan.relists) << seed;
    const Outcome switched = play(plan);
    plan.relists = false;
    const Outcome usual = play(plan);

    EXPECT_NE(switched.trace, usual.trace) << seed;
  }
}

TEST(Luck, InSomeSeedsHoldersSayFarewell) {
  for (const std::uint64_t seed : kFarewells) {
    Plan plan = draw_plan(seed);
    ASSERT_TRUE(plan.farewells) << seed;
    const Outcome switched = play(plan);
    plan.farewells = false;
    const Outcome usual = play(plan);

    EXPECT_NE(switched.trace, usual.trace) << seed;
  }
}

TEST(Luck, InSomeSeedsRequestsTimeOutEarlyAtEveryStep) {
  for (const std::uint64_t seed : kHurriedTwins) {
    Plan plan = draw_plan(seed);
    ASSERT_GT(plan.hurry_permille, 0U) << seed;
    const Outcome switched = play(plan);
    plan.hurry_permille = 0;
    const Outcome usual = play(plan);

    // Callers that gave up with their create unanswered.
    EXPECT_GT(switched.sightings.of(6), usual.sightings.of(6)) << seed;
  }
}

TEST(Luck, InSomeSeedsEntriesHaveTwins) {
  for (const std::uint64_t seed : kHurriedTwins) {
    Plan plan = draw_plan(seed);
    ASSERT_TRUE(plan.twins) << seed;
    const Outcome switched = play(plan);
    plan.twins = false;
    const Outcome usual = play(plan);

    EXPECT_GT(switched.twins, 0U) << seed;
    EXPECT_EQ(usual.twins, 0U) << seed;
    EXPECT_NE(switched.trace, usual.trace) << seed;
  }
}

TEST(Luck, TheSeedsOfTheOtherListsHaveNoSwitches) {
  const auto is_switched = [](const Plan& plan) {
    const SessionOptions usual;
    return plan.relists || plan.farewells || plan.twins || plan.regrants ||
           plan.hurry_permille > 0 || plan.max_requests != usual.max_requests ||
           plan.max_request_bytes != usual.max_request_bytes;
  };

  EXPECT_TRUE(std::ranges::none_of(plans(kQuick, draw_plan), is_switched));
  EXPECT_TRUE(std::ranges::none_of(plans(kLaterRegressions, draw_plan), is_switched));
  EXPECT_TRUE(is_switched(draw_plan(kUnswitchedRegressions.front())));
  EXPECT_FALSE(is_switched(draw_unswitched_plan(kUnswitchedRegressions.front())));
}

TEST(Luck, ACommandPlaysTheVeryPlanAgain) {
  EXPECT_EQ(command_for(draw_plain_plan(16)), "./dev sim --plain --seed 16 --seeds 1");
  EXPECT_EQ(command_for(draw_plan(16)), "./dev sim --seed 16 --seeds 1");
  EXPECT_EQ(command_for(draw_unswitched_plan(19)), "./dev sim --unswitched --seed 19 --seeds 1");
}

TEST(Seeds, AnAssertionThatFailsNamesTheSeed) {
  Plan plan = draw_plan(77);
  plan.world.service.tick = {};

  EXPECT_DEATH(static_cast<void>(play(plan)), "in seed 77");
}

std::string what(const std::optional<Violation>& violation) {
  if (!violation) return "nothing";
  return std::string(name(violation->invariant)) + ": " + violation->what;
}

TEST(Directed, H10_H11_H13_H14_ALeaseEndsInTimeAtAllItsEdges) {
  EXPECT_EQ(what(play_lease_edges()), "nothing");
}

TEST(Directed, H02_ACreateInDoubtIsFoundWhereItIsNotKnownYet) {
  EXPECT_EQ(what(play_lost_create()), "nothing");
}

TEST(Directed, H04_AStrangersNodeWithOurGuidIsNotAdopted) {
  EXPECT_EQ(what(play_stolen_guid()), "nothing");
}

TEST(Directed, H93_WhoWasRobbedOfItsEntryWritesNothingUnderGuard) {
  EXPECT_EQ(what(play_robbed_writer()), "nothing");
}

TEST(Directed, H01_H06_H09_H12_H21_H27_H32_H91_AQueueGoesOnWhereverOneOfThreeFails) {
  EXPECT_EQ(what(play_queue()), "nothing");
}

#ifdef LATCHKEY_MUTANTS

class Mutants : public ::testing::TestWithParam<Quarry> {};

TEST_P(Mutants, AreCaughtByWhatTheyViolateAndNobodyIsBlamedWithoutThem) {
  constexpr std::uint64_t kSeedsToLookAt = 40;
  const std::uint64_t first = GetParam().seed;

  const auto caught =
      hunt(GetParam(), first, [&](std::uint64_t seed) { return seed < first + kSeedsToLookAt; });

  ASSERT_TRUE(caught) << "not in " << kSeedsToLookAt << " seeds from " << first << " on";
  EXPECT_TRUE(caught->is_expected) << describe(*caught);
  EXPECT_FALSE(caught->innocent) << describe(*caught);
}

std::string quarry_name(const ::testing::TestParamInfo<Quarry>& info) {
  std::string name(base::kMutantNames.at(static_cast<std::size_t>(info.param.mutant)));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Each, Mutants, ::testing::ValuesIn(quarries()), quarry_name);

TEST(Quarries, EveryMistakeHasItsOwn) {
  std::size_t mutant = 0;
  for (const Quarry& quarry : quarries()) {
    EXPECT_EQ(static_cast<std::size_t>(quarry.mutant), ++mutant);
    EXPECT_FALSE(quarry.by.empty()) << base::kMutantNames.at(mutant);
  }
  EXPECT_EQ(mutant + 1, base::kMutants);
}

TEST(Shrink, LeavesAPlanThatStillShowsTheMistakeAndNothingItDoesNotNeed) {
  base::mutant = base::Mutant::kWholeName;
  const Plan plan = hunting_plan({.mutant = base::Mutant::kWholeName, .by = {}}, 2);
  const Plan small = shrink(plan, Invariant::kServerOrder);
  const Outcome outcome = play(small);
  base::mutant = base::Mutant::kNone;

  ASSERT_TRUE(outcome.violation);
  EXPECT_EQ(outcome.violation->invariant, Invariant::kServerOrder);
  EXPECT_LT(small.length, plan.length);
  EXPECT_TRUE(small.faults.empty()) << describe(small);
  EXPECT_TRUE(small.rare_faults.empty()) << describe(small);
  EXPECT_EQ(small.clients, 2U);
  EXPECT_EQ(small.sites.size(), 1U) << describe(small);
}

#endif

}  // namespace
}  // namespace latchkey::sim
