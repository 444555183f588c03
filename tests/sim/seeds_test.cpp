#include <algorithm>
#include <array>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/mutant.hpp"
#include "sim/directed.hpp"
#include "sim/plan.hpp"
#include "sim/run.hpp"

namespace latchkey::sim {

// For the test's log.
static void PrintTo(const Plan& plan, std::ostream* out) { *out << describe(plan); }

namespace {

/// Seeds that once showed a fault, of the product or of the simulator: docs/testing.md says which.
constexpr std::array<std::uint64_t, 8> kRegressions = {16, 20, 22, 27, 63, 529, 719, 4'862};

/// The same with rarities and edges of time.
constexpr std::array<std::uint64_t, 6> kLaterRegressions = {5'026,  5'093,  5'251,
                                                            20'027, 20'114, 20'150};

/// Few, and between them they meet every hazard that luck can meet; 15, 28, 176, 185, 247 and 443
/// once showed a fault, too.
constexpr std::array<std::uint64_t, 13> kQuick = {3,  11, 15,  24,  28,  35, 54,
                                                  60, 77, 176, 185, 247, 443};

class Seeds : public ::testing::TestWithParam<Plan> {};

TEST_P(Seeds, ShowNoViolationAndRunTheSameTwice) {
  const Plan& plan = GetParam();

  const Outcome first = play(plan);
  const Outcome second = play(plan);

  EXPECT_FALSE(first.violation) << describe(first) << '\n' << describe(plan);
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
INSTANTIATE_TEST_SUITE_P(Regression, Seeds,
                         ::testing::ValuesIn(plans(kRegressions, draw_plain_plan)), seed_of);
INSTANTIATE_TEST_SUITE_P(LaterRegression, Seeds,
                         ::testing::ValuesIn(plans(kLaterRegressions, draw_plan)), seed_of);

TEST(Luck, MeetsEveryHazardThatItCanInAFewSeeds) {
  Sightings all;
  for (const std::uint64_t seed : kQuick) all.add(play(draw_plan(seed)).sightings);

  for (const Hazard& hazard : hazards()) {
    if (hazard.reach != Reach::kLuck) continue;
    EXPECT_GT(all.of(hazard.number), 0U) << "H" << hazard.number << ": " << hazard.what;
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

TEST(Seeds, AnAssertionThatFailsNamesTheSeed) {
  Plan plan = draw_plan(77);
  plan.world.service.tick = {};

  EXPECT_DEATH(static_cast<void>(play(plan)), "in seed 77");
}

TEST(Directed, H10_H11_H13_H14_ALeaseEndsInTimeAtAllItsEdges) {
  EXPECT_EQ(play_lease_edges(), std::nullopt);
}

TEST(Directed, H02_ACreateInDoubtIsFoundWhereItIsNotKnownYet) {
  EXPECT_EQ(play_lost_create(), std::nullopt);
}

TEST(Directed, H04_AStrangersNodeWithOurGuidIsNotAdopted) {
  EXPECT_EQ(play_stolen_guid(), std::nullopt);
}

#ifdef LATCHKEY_MUTANTS

using base::Mutant;

/// A mistake, and a seed at or soon after which it is caught: what each seed draws changes with
/// every message that is sent otherwise. `./dev sim --mutants` says by which invariant.
struct Caught {
  Mutant mutant;
  std::uint64_t seed;
};
constexpr std::uint64_t kSeedsToLookAt = 40;
constexpr Caught kCaught[] = {
    {Mutant::kNeighbourLeft, 2},      {Mutant::kCreateAgain, 3},
    {Mutant::kStaleGrant, 5},         {Mutant::kWholeName, 2},
    {Mutant::kDeleteOnce, 1},         {Mutant::kCancelForgets, 2},
    {Mutant::kWatchKept, 24},         {Mutant::kNoRestore, 3},
    {Mutant::kLostEvent, 2},          {Mutant::kTokenFromNumber, 1},
    {Mutant::kSameToken, 51},         {Mutant::kReaderOvertakes, 2},
    {Mutant::kOneTooMany, 10},        {Mutant::kReplyEarly, 2},
    {Mutant::kSyncErrorIgnored, 12},  {Mutant::kSessionsForgotten, 6},
    {Mutant::kOldConnectionKept, 41}, {Mutant::kDirtyReads, 1},
    {Mutant::kLateEvent, 1},          {Mutant::kStaleReplay, 7},
};

/// Makes a mistake for as long as it lives.
class Mistake {
 public:
  explicit Mistake(Mutant mutant) { base::mutant = mutant; }
  ~Mistake() { base::mutant = Mutant::kNone; }
  Mistake(const Mistake&) = delete;
  Mistake& operator=(const Mistake&) = delete;
};

class Mutants : public ::testing::TestWithParam<Caught> {};

TEST_P(Mutants, AreCaught) {
  const Mistake mistake(GetParam().mutant);
  const std::uint64_t first = GetParam().seed;
  bool is_caught = false;
  for (std::uint64_t seed = first; !is_caught && seed < first + kSeedsToLookAt; ++seed) {
    is_caught = play(draw_plan(seed)).violation.has_value();
  }
  EXPECT_TRUE(is_caught) << "in " << kSeedsToLookAt << " seeds from " << first << " on";
}

std::string name_of(Mutant mutant) {
  std::string name(base::kMutantNames.at(static_cast<std::size_t>(mutant)));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Each, Mutants, ::testing::ValuesIn(kCaught),
                         [](const auto& one) { return name_of(one.param.mutant); });

TEST(Directed, H02_WithoutASyncThereWouldBeTwo) {
  const Mistake mistake(Mutant::kSearchWithoutSync);
  EXPECT_NE(play_lost_create(), std::nullopt);
}

TEST(Directed, H04_WithoutTheOwnerCheckItWouldBe) {
  const Mistake mistake(Mutant::kNoOwnerCheck);
  EXPECT_NE(play_stolen_guid(), std::nullopt);
}

class LeaseMutants : public ::testing::TestWithParam<Mutant> {};

TEST_P(LeaseMutants, LetTwoBelieveAtTheSameTime) {
  const Mistake mistake(GetParam());
  const auto what = play_lease_edges();

  ASSERT_TRUE(what);
  EXPECT_TRUE(what->starts_with("belief")) << *what;
}

INSTANTIATE_TEST_SUITE_P(Each, LeaseMutants,
                         ::testing::Values(Mutant::kReceiveTime, Mutant::kReadHeartbeat,
                                           Mutant::kNoTickDoubt, Mutant::kNoBeatDoubt,
                                           Mutant::kOwnTrip, Mutant::kNoDrift),
                         [](const auto& one) { return name_of(one.param); });

#endif

}  // namespace
}  // namespace latchkey::sim
