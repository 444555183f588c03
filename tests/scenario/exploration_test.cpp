#include <algorithm>

#include <gtest/gtest.h>

#include "queue/counter.hpp"
#include "scenario/expect_explored.hpp"
#include "scenario/explorer.hpp"
#include "scenario/settled_line.hpp"

namespace latchkey::mini {
namespace {

enum class Sessions { kOneEach, kShared };

/// Contenders "a", "b", ... that have not started yet.
World make_world(int contenders, World::Options options = {}, Sessions sessions = {},
                 bool first_lags = false) {
  World world(options);
  for (int i = 0; i < contenders; ++i) {
    const bool shared = sessions == Sessions::kShared && i > 0;
    const int client = shared ? 0 : world.add_client(first_lags && i == 0);
    world.add_slot(std::string(1, static_cast<char>('a' + i)), client);
  }
  return world;
}

/// The first one holds, the others wait in line behind it.
World make_line(int contenders, World::Options options = {}, Sessions sessions = {}) {
  World world = make_world(contenders, options, sessions);
  for (int i = 0; i < contenders; ++i) {
    world.start(i);
    settle(world);
  }
  return world;
}

void expect_all_is_well(const World& world, Troubles troubles) {
  expect_all_is_well_in(Explorer(world, troubles));
}

void expect_found(const World& world, Troubles troubles, const std::string& what) {
  expect_found_in(Explorer(world, troubles), what);
}

TEST(Exploration, ThreeStrangersTakeTurns) { expect_all_is_well(make_world(3), {}); }

TEST(Exploration, H01_AConnectionLostTwiceAtAnyMoment) {
  expect_all_is_well(make_world(2), {.cuts = 2});
}

TEST(Exploration, H02_AConnectionLostTwiceBehindALaggingServer) {
  expect_all_is_well(make_world(2, {}, Sessions::kOneEach, true), {.cuts = 2});
}

TEST(Exploration, H04_TwoAttemptsThatDrewTheSameGuidStayApart) {
  expect_all_is_well(make_world(2, {.repeat_guids = true}), {.cuts = 1, .cancels = 1});
}

TEST(Exploration, H05_AnOperatorDeletesAnyoneAtAnyMoment) {
  expect_all_is_well(make_world(2), {.deletions = 2, .heartbeats = 1});
  expect_all_is_well(make_world(2), {.cuts = 1, .deletions = 1});
}

TEST(Exploration, H06_H50_ACancelAtAnyMomentBeforeOrAfterACut) {
  expect_all_is_well(make_world(2), {.cuts = 1, .cancels = 1});
  expect_all_is_well(make_world(1), {.cuts = 3, .cancels = 1});
  expect_all_is_well(make_world(2), {.cuts = 2, .cancels = 1});
  expect_all_is_well(make_world(2, {}, Sessions::kOneEach, true), {.cuts = 1, .cancels = 1});
}

TEST(Exploration, H07_ThreadsOfOneSessionQueueLikeStrangers) {
  expect_all_is_well(make_world(2, {}, Sessions::kShared), {.cuts = 1, .cancels = 1});
}

TEST(Exploration, H09_H12_ALeaseEndsAndTheSessionMayOrMayNotSurvive) {
  expect_all_is_well(make_world(2), {.lease_ends = 2});
  expect_all_is_well(make_world(2), {.cuts = 1, .lease_ends = 1});
}

TEST(Exploration, H27_AnyoneInALineOfThreeLeavesOrCrashes) {
  expect_all_is_well(make_line(3), {.cancels = 2});
  expect_all_is_well(make_line(3), {.crashes = 1});
  expect_all_is_well(make_line(3), {.cuts = 1, .cancels = 1});
  expect_all_is_well(make_line(3, {}, Sessions::kShared), {.cuts = 1, .cancels = 1});
}

TEST(Exploration, H31_AClientCrashesAtAnyMoment) {
  expect_all_is_well(make_world(2), {.crashes = 1, .touches = 1});
  expect_all_is_well(make_world(2), {.cuts = 1, .crashes = 1});
}

TEST(Exploration, H34_AnOperatorTouchesTheNodesOfALine) {
  expect_all_is_well(make_line(3), {.cancels = 1, .touches = 1, .heartbeats = 1});
}

TEST(Exploration, H35_ACounterThatEndsIsReplaced) {
  World world = make_world(2);
  world.set_counter(queue::kSpentFrom - 1);
  expect_all_is_well(world, {.cancels = 1});
  expect_all_is_well(world, {.cuts = 1});
}

TEST(Exploration, H39_TheDirectoryIsReapedUnderTheirHands) {
  expect_all_is_well(make_world(2), {.removals = 2});
  expect_all_is_well(make_world(2), {.cuts = 1, .removals = 1});
}

TEST(Exploration, H72_WithoutTheShortcutAllIsWellToo) {
  expect_all_is_well(make_line(3, {.relist = queue::Relist::kAlways}), {.cancels = 1});
}

TEST(Exploration, H27_UpToFiveArriveReleaseCancelAndCrashInEveryOrder) {
  for (const auto relist : {queue::Relist::kWhenNeeded, queue::Relist::kAlways}) {
    walk::expect_all_is_well_when_settled(SettledLine(make_world(5, {.relist = relist})),
                                          walk::Alike::kYes);
  }
}

/// Locks "a", "b" and one without a name, in one directory.
World make_named(const std::string& names, Sessions sessions = {}) {
  World world;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const int client = sessions == Sessions::kShared && i > 0 ? 0 : world.add_client();
    const std::string name = names[i] == '-' ? "" : std::string(1, names[i]);
    world.add_slot(std::to_string(i), client, {.lock_name = name});
  }
  return world;
}

TEST(Exploration, NamesInOneDirectoryContendOnlyWithTheirLike) {
  for (const char* names : {"ab", "aa", "a-", "aab", "ab-"}) {
    expect_all_is_well(make_named(names), {});
  }
  expect_all_is_well(make_named("aa", Sessions::kShared), {.cuts = 1, .cancels = 1});
  expect_all_is_well(make_named("ab"), {.crashes = 1});
  expect_all_is_well(make_named("ab"), {.cuts = 1, .cancels = 1});
}

TEST(Exploration, FiveOfSeveralNamesArriveReleaseCancelAndCrashInEveryOrder) {
  for (const char* names : {"aabab", "abcab", "a-a-a", "aaabb"}) {
    walk::expect_all_is_well_when_settled(SettledLine(make_named(names)), walk::Alike::kNo);
  }
}

// Companions: those of one session who wait for each other and share what they know.

/// a, c, ... are companions, b, d, ... strangers to them and companions of each other.
World make_companies(int contenders, World::Options options = {}) {
  options.company = true;
  World world(options);
  for (int i = 0; i < 2; ++i) world.add_client();
  for (int i = 0; i < contenders; ++i) {
    world.add_slot(std::string(1, static_cast<char>('a' + i)), i % 2);
  }
  return world;
}

World make_company_line(int contenders) {
  World world = make_companies(contenders);
  for (int i = 0; i < contenders; ++i) {
    world.start(i);
    settle(world);
  }
  return world;
}

TEST(Exploration, H07_CompanionsTakeTurns) {
  constexpr World::Options kCompany{.company = true};
  expect_all_is_well(make_world(3, kCompany, Sessions::kShared), {});
  expect_all_is_well(make_world(2, kCompany, Sessions::kShared), {.cuts = 2});
  expect_all_is_well(make_world(3, kCompany, Sessions::kShared), {.cancels = 2});
  expect_all_is_well(make_world(3, kCompany, Sessions::kShared), {.cuts = 1, .cancels = 1});
  expect_all_is_well(make_world(2, kCompany, Sessions::kShared, true), {.cuts = 2});
}

TEST(Exploration, H07_CompanionsAmongStrangers) {
  expect_all_is_well(make_companies(3), {.cuts = 1});
  expect_all_is_well(make_companies(3), {.crashes = 1});
  expect_all_is_well(make_company_line(4), {.cancels = 1});
  expect_all_is_well(make_company_line(4), {.crashes = 1});
  expect_all_is_well(make_company_line(4), {.cuts = 1});
  expect_all_is_well(make_company_line(3), {.cuts = 1, .cancels = 1});
}

TEST(Exploration, H07_FiveCompanionsArriveReleaseCancelAndCrashInEveryOrder) {
  constexpr World::Options kCompany{.company = true};
  walk::expect_all_is_well_when_settled(SettledLine(make_companies(5)), walk::Alike::kNo);
  walk::expect_all_is_well_when_settled(SettledLine(make_world(5, kCompany, Sessions::kShared)),
                                        walk::Alike::kYes);
}

TEST(Exploration, H05_AnOperatorDeletesACompanionAtAnyMoment) {
  constexpr World::Options kCompany{.company = true};
  expect_all_is_well(make_world(2, kCompany, Sessions::kShared), {.deletions = 2, .heartbeats = 1});
  expect_all_is_well(make_world(3, kCompany, Sessions::kShared), {.deletions = 1});
  expect_all_is_well(make_company_line(3), {.deletions = 1, .heartbeats = 1});
}

TEST(Exploration, H09_TheLeaseOfCompanionsEnds) {
  constexpr World::Options kCompany{.company = true};
  expect_all_is_well(make_world(2, kCompany, Sessions::kShared), {.lease_ends = 2});
  expect_all_is_well(make_world(2, kCompany, Sessions::kShared), {.cuts = 1, .lease_ends = 1});
}

TEST(Exploration, H35_H39_CompanionsInADirectoryThatEndsOrGoes) {
  World world = make_world(2, {.company = true}, Sessions::kShared);
  expect_all_is_well(world, {.removals = 2});
  world.set_counter(queue::kSpentFrom - 1);
  expect_all_is_well(world, {.cancels = 1});
}

TEST(ExplorationFinds, H27_AWakeTakenForAGrantAmongFiveWhoComeAndGo) {
  walk::expect_found(walk::Settled(SettledLine(make_world(5, {.mutant = Mutant::kWakeIsGrant})),
                                   walk::Alike::kYes),
                     "e holds although");
}

/// Everyone in a line of six leaves in the given order, by a release or, while waiting, a cancel.
std::vector<int> grants_of(queue::Relist relist, const std::vector<int>& leaving) {
  World world = make_line(6, {.relist = relist});
  for (const int slot : leaving) {
    const bool holds = world.slots()[static_cast<std::size_t>(slot)].holding;
    holds ? world.release(slot) : world.cancel(slot, Code::kTimedOut);
    settle(world);
    world.check();
  }
  EXPECT_TRUE(world.violations().empty());
  EXPECT_TRUE(world.leader().entries.empty());
  return world.grants();
}

TEST(Exploration, H72_WithAndWithoutTheShortcutTheSameOnesAreGrantedInTheSameOrder) {
  std::vector<int> leaving{0, 1, 2, 3, 4, 5};
  do {
    ASSERT_EQ(grants_of(queue::Relist::kWhenNeeded, leaving),
              grants_of(queue::Relist::kAlways, leaving));
  } while (std::next_permutation(leaving.begin(), leaving.end()));
}

// A net that catches nothing is worth nothing: each classic mistake has to be found.

TEST(ExplorationFinds, H26_ACompanionThatLeavesUntold) {
  expect_found(make_world(2, {.mutant = Mutant::kLeavesUntold, .company = true}, Sessions::kShared),
               {}, "waits for a companion that has left");
}

TEST(ExplorationFinds, H02_ACompanionsListFromBeforeOurCreate) {
  expect_found(make_companies(5, {.mutant = Mutant::kListWithoutUs}), {}, "is ahead");
}

TEST(ExplorationFinds, H02_ASearchWithoutSync) {
  const World world =
      make_world(1, {.mutant = Mutant::kSearchWithoutSync}, Sessions::kOneEach, true);
  expect_found(world, {.cuts = 1, .cancels = 1}, "orphan");
}

// The belt beside P7: one guid for the whole attempt, so a twin is recognised when it surfaces.
TEST(Exploration, H02_AnAttemptThatGoesOnSurvivesEvenASearchWithoutSync) {
  const World world =
      make_world(2, {.mutant = Mutant::kSearchWithoutSync}, Sessions::kOneEach, true);
  expect_all_is_well(world, {.cuts = 1});
}

TEST(ExplorationFinds, H27_AWakeTakenForAGrant) {
  expect_found(make_line(3, {.mutant = Mutant::kWakeIsGrant}), {.cancels = 1}, "is ahead");
}

TEST(ExplorationFinds, H05_AListWithoutOurselvesThatGrants) {
  expect_found(make_world(1, {.mutant = Mutant::kOwnAbsenceIgnored}), {.deletions = 1},
               "holds without a node");
}

TEST(ExplorationFinds, H06_ACancelThatOwesNothing) {
  expect_found(make_world(1, {.mutant = Mutant::kCancelOwesNothing}), {.cancels = 1}, "orphan");
}

TEST(ExplorationFinds, H21_ADeleteThatIsSentOnce) {
  expect_found(make_world(1, {.mutant = Mutant::kDebtNotRetried}), {.cuts = 1}, "orphan");
}

TEST(ExplorationFinds, H26_AWatchThatWaitsForANodeThatIsGone) {
  expect_found(make_world(2, {.mutant = Mutant::kDeafToNoNode}), {}, "will not wake it");
}

TEST(ExplorationFinds, H04_ANameTakenForAnIdentity) {
  expect_found(make_world(2, {.mutant = Mutant::kNameIsIdentity, .repeat_guids = true}),
               {.cuts = 1}, "=> ");
}

TEST(ExplorationFinds, H12_AGrantOnAnUnprovenLease) {
  expect_found(make_world(2, {.mutant = Mutant::kGrantWithoutProof}), {.lease_ends = 1}, "=> ");
}

}  // namespace
}  // namespace latchkey::mini
