#include <algorithm>

#include <gtest/gtest.h>

#include "scenario/expect_explored.hpp"
#include "scenario/explorer.hpp"
#include "scenario/settled_line.hpp"

/// Hand-overs without a list: queue/farewell.hpp. Everyone who has somebody left ahead looks.
namespace latchkey::mini::farewell {
namespace {

constexpr std::size_t kAlways = 1;

enum class Sessions { kOneEach, kTwo, kShared };

World make_world(int contenders, World::Options options = {}, Sessions sessions = {},
                 bool last_lags = false) {
  options.farewell_from = kAlways;
  World world(options);
  const int clients =
      sessions == Sessions::kOneEach ? contenders : (sessions == Sessions::kTwo ? 2 : 1);
  for (int i = 0; i < clients; ++i) world.add_client(last_lags && i == clients - 1);
  for (int i = 0; i < contenders; ++i) {
    world.add_slot(std::string(1, static_cast<char>('a' + i)), i % clients);
  }
  return world;
}

/// Three have held and left: the first by the list of its create, the second because it saw the
/// first leave, the third by a list after the wake, and it was the first to say farewell. The
/// fourth holds, `waiters` wait behind it, and `late` have not come yet.
constexpr int kLeft = 3;
World make_deep(int waiters, World::Options options = {}, Sessions sessions = {},
                bool last_lags = false, int late = 0) {
  World world = make_world(kLeft + 1 + waiters + late, options, sessions, last_lags);
  for (int i = 0; i < kLeft + 1 + waiters; ++i) {
    world.start(i);
    settle(world);
  }
  for (int i = 0; i < kLeft; ++i) {
    world.release(i);
    settle(world);
  }
  return world;
}

World make_deep_with_late(int waiters, int late) {
  return make_deep(waiters, {}, Sessions::kOneEach, false, late);
}

void expect_all_is_well(const World& world, Troubles troubles) {
  expect_all_is_well_in(Explorer(world, troubles));
}

void expect_found(const World& world, Troubles troubles, const std::string& what) {
  expect_found_in(Explorer(world, troubles), what);
}

std::size_t count(const std::vector<std::string>& lines, const std::string& what) {
  return static_cast<std::size_t>(
      std::ranges::count_if(lines, [&](const std::string& line) { return line.ends_with(what); }));
}

TEST(FarewellExploration, EachHandOverIsOneReadAndNoList) {
  World world = make_deep(2);
  ASSERT_TRUE(world.slots()[kLeft].holding);
  ASSERT_EQ(world.leader().data.text, "left 3");
  world.keep_transcript();

  for (int i = kLeft; i < kLeft + 2; ++i) {
    world.release(i);
    settle(world);
    ASSERT_TRUE(world.slots()[static_cast<std::size_t>(i) + 1].holding);
  }

  const std::vector<std::string> said = world.take_transcript();
  EXPECT_EQ(count(said, "-> read"), 2U);
  EXPECT_EQ(count(said, "-> list"), 0U);
  EXPECT_EQ(world.leader().data.text, "left 5");
}

TEST(FarewellExploration, AllTakeTurns) {
  expect_all_is_well(make_deep(3), {.heartbeats = 1});
  expect_all_is_well(make_deep_with_late(1, 2), {});
  expect_all_is_well(make_deep_with_late(2, 1), {.cuts = 1});
  expect_all_is_well(make_deep_with_late(2, 1), {.cancels = 1});
}

TEST(FarewellExploration, H21_AConnectionLostTwiceAtAnyMoment) {
  expect_all_is_well(make_deep(1), {.cuts = 3});
  expect_all_is_well(make_deep(2), {.cuts = 2});
}

TEST(FarewellExploration, ALaggingServerShowsAnOlderFarewell) {
  expect_all_is_well(make_deep(2, {}, Sessions::kOneEach, true), {.cuts = 2});
  expect_all_is_well(make_deep(2, {}, Sessions::kOneEach, true), {.cuts = 1, .cancels = 1});
}

TEST(FarewellExploration, H27_AnyoneLeavesOrCrashes) {
  expect_all_is_well(make_deep(3), {.cancels = 2});
  expect_all_is_well(make_deep(3), {.crashes = 1});
  expect_all_is_well(make_deep(2), {.cuts = 1, .cancels = 1});
  expect_all_is_well(make_deep(2), {.cuts = 1, .crashes = 1});
}

TEST(FarewellExploration, H05_AnOperatorDeletesAnyone) {
  expect_all_is_well(make_deep(2), {.deletions = 2});
  expect_all_is_well(make_deep(1), {.cuts = 1, .deletions = 1, .heartbeats = 1});
}

TEST(FarewellExploration, H09_H12_ALeaseEnds) {
  expect_all_is_well(make_deep(1), {.lease_ends = 2});
  expect_all_is_well(make_deep(1), {.cuts = 1, .lease_ends = 1});
}

TEST(FarewellExploration, H34_AnOperatorTouchesAnyEntry) {
  expect_all_is_well(make_deep(2), {.cancels = 1, .touches = 1});
}

TEST(FarewellExploration, AUserWritesIntoTheDirectoryAndIsNotWrittenOver) {
  expect_all_is_well(make_deep(2), {.writes = 2});
  expect_all_is_well(make_deep(2), {.cuts = 1, .writes = 1});
  expect_all_is_well(make_deep(2), {.cancels = 1, .writes = 1});
}

TEST(FarewellExploration, H07_AmongCompanions) {
  for (const Sessions sessions : {Sessions::kTwo, Sessions::kShared}) {
    const World world = make_deep(3, {.company = true}, sessions);
    expect_all_is_well(world, {.cuts = 1});
    expect_all_is_well(world, {.cancels = 1});
    expect_all_is_well(world, {.deletions = 1, .heartbeats = 1});
    expect_all_is_well(world, {.cuts = 1, .cancels = 1});
    expect_all_is_well(make_deep(2, {}, sessions), {.cuts = 1, .cancels = 1});
  }
  expect_all_is_well(make_deep(2, {.company = true}, Sessions::kTwo), {.crashes = 1});
}

TEST(FarewellExploration, H27_SixArriveReleaseCancelAndCrashInEveryOrder) {
  walk::expect_all_is_well_when_settled(SettledLine(make_world(6)), walk::Alike::kYes);
  walk::expect_all_is_well_when_settled(
      SettledLine(make_world(5, {.company = true}, Sessions::kTwo)), walk::Alike::kNo);
}

/// Everyone in a line of six leaves in the given order, by a release or, while waiting, a cancel.
std::vector<int> grants_of(World world, const std::vector<int>& leaving) {
  for (int i = 0; i < 6; ++i) {
    world.start(i);
    settle(world);
  }
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

TEST(FarewellExploration, H72_WithFarewellsTheSameOnesAreGrantedInTheSameOrder) {
  std::vector<int> leaving{0, 1, 2, 3, 4, 5};
  do {
    ASSERT_EQ(grants_of(make_world(6), leaving),
              grants_of(make_world(6, {.relist = queue::Relist::kAlways}), leaving));
  } while (std::next_permutation(leaving.begin(), leaving.end()));
}

TEST(FarewellExplorationFinds, H72_AnybodysFarewellTakenForTheNeighbours) {
  expect_found(make_deep(2, {.mutant = Mutant::kAnyFarewell}), {.cancels = 1}, "is ahead");
}

TEST(FarewellExplorationFinds, AFarewellThatIsWrittenOverSomethingElse) {
  World world = make_world(4, {.mutant = Mutant::kDataNotMinded});
  world.write_data("mine");
  expect_found(world, {}, "written over");
}

}  // namespace
}  // namespace latchkey::mini::farewell
