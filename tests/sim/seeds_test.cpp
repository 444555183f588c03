#include <algorithm>
#include <array>
#include <string>

#include <gtest/gtest.h>

#include "base/mutant.hpp"
#include "sim/directed.hpp"
#include "sim/plan.hpp"
#include "sim/run.hpp"

namespace latchkey::sim {
namespace {

/// Seeds that once showed a fault, of the product or of the simulator: docs/testing.md says which.
constexpr std::array<std::uint64_t, 8> kRegressions = {16, 20, 22, 27, 63, 529, 719, 4'862};

class Seeds : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(Seeds, ShowNoViolationAndRunTheSameTwice) {
  const Plan plan = draw_plan(GetParam());

  const Outcome first = play(plan);
  const Outcome second = play(plan);

  EXPECT_FALSE(first.violation) << describe(first) << '\n' << describe(plan);
  EXPECT_GT(first.holds, 0U) << describe(plan);
  EXPECT_EQ(first.trace, second.trace) << describe(plan);
}

INSTANTIATE_TEST_SUITE_P(Quick, Seeds, ::testing::Range<std::uint64_t>(1, 13));
INSTANTIATE_TEST_SUITE_P(Regression, Seeds, ::testing::ValuesIn(kRegressions));

TEST(Directed, H04_AStrangersNodeWithOurGuidIsNotAdopted) {
  EXPECT_EQ(play_stolen_guid(), std::nullopt);
}

#ifdef LATCHKEY_MUTANTS

using base::Mutant;

/// A mistake, and a seed that shows it. `./dev sim --mutants` looks for them anew.
struct Caught {
  Mutant mutant;
  std::uint64_t seed;
};
constexpr Caught kCaught[] = {
    {Mutant::kNeighbourLeft, 2},     {Mutant::kSearchWithoutSync, 164},
    {Mutant::kCreateAgain, 3},       {Mutant::kReceiveTime, 28},
    {Mutant::kReadHeartbeat, 13},    {Mutant::kStaleGrant, 5},
    {Mutant::kWholeName, 2},         {Mutant::kDeleteOnce, 1},
    {Mutant::kCancelForgets, 1},     {Mutant::kWatchKept, 26},
    {Mutant::kNoRestore, 7},         {Mutant::kLostEvent, 4},
    {Mutant::kTokenFromNumber, 3},   {Mutant::kSameToken, 51},
    {Mutant::kReaderOvertakes, 2},   {Mutant::kOneTooMany, 11},
    {Mutant::kReplyEarly, 2},        {Mutant::kSyncErrorIgnored, 9},
    {Mutant::kSessionsForgotten, 6}, {Mutant::kOldConnectionKept, 3},
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
  EXPECT_TRUE(play(draw_plan(GetParam().seed)).violation);
}

INSTANTIATE_TEST_SUITE_P(Each, Mutants, ::testing::ValuesIn(kCaught), [](const auto& one) {
  std::string name(base::kMutantNames.at(static_cast<std::size_t>(one.param.mutant)));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(Directed, H04_WithoutTheOwnerCheckItWouldBe) {
  const Mistake mistake(Mutant::kNoOwnerCheck);
  EXPECT_NE(play_stolen_guid(), std::nullopt);
}

#endif

}  // namespace
}  // namespace latchkey::sim
