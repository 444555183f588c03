#include <algorithm>

#include <gtest/gtest.h>

#include "scenario/expect_explored.hpp"
#include "scenario/explorer.hpp"

/// Entries that are made in the transaction that deletes an older one of their session, and inherit
/// its list: queue/estate.hpp.
namespace latchkey::mini::estate {
namespace {

/// Contenders "a", "b", ..., one for each number: that of its client.
World make_world(const std::vector<int>& clients, World::Options options = {},
                 bool last_lags = false) {
  options.company = true;
  options.estates = true;
  World world(options);
  const int count = *std::ranges::max_element(clients) + 1;
  for (int i = 0; i < count; ++i) world.add_client(last_lags && i == count - 1);
  char name = 'a';
  for (const int client : clients) world.add_slot(std::string(1, name++), client);
  return world;
}

/// The first one holds, and its list has shown the second one behind it. The third is of the first
/// one's client: its heir, if it comes in time. Further ones are strangers.
constexpr int kHolder = 0;
constexpr int kBehind = 1;
constexpr int kHeir = 2;
constexpr int kStranger = 3;
World make_heir(int strangers, World::Options options = {}, bool last_lags = false) {
  std::vector<int> clients{0, 1, 0};
  for (int i = 0; i < strangers; ++i) clients.push_back(2 + i);
  World world = make_world(clients, options, last_lags);
  world.start(kHolder);
  world.serve(0);
  world.start(kBehind);
  world.serve(1);
  settle(world);
  return world;
}

void expect_all_is_well(const World& world, Troubles troubles) {
  expect_all_is_well_in(Explorer(world, troubles));
}

std::size_t count(const std::vector<std::string>& lines, const std::string& what) {
  return static_cast<std::size_t>(std::ranges::count_if(
      lines, [&](const std::string& line) { return line.find(what) != line.npos; }));
}

bool holds(const World& world, int slot) {
  return world.slots()[static_cast<std::size_t>(slot)].holding;
}

TEST(EstateExploration, WhoComesBackAloneNeedsNoList) {
  World world = make_world({0, 0});
  world.start(0);
  settle(world);
  world.keep_transcript();

  world.release(0);
  world.start(1);
  settle(world);

  ASSERT_TRUE(holds(world, 1));
  const std::vector<std::string> said = world.take_transcript();
  EXPECT_EQ(count(said, "-> list"), 0U);
  EXPECT_EQ(count(said, "-> delete"), 0U) << "it left with the create";
}

TEST(EstateExploration, WhoComesBackBehindOthersWatchesTheLastOfThemAtOnce) {
  World world = make_heir(0);
  ASSERT_TRUE(holds(world, kHolder));
  world.keep_transcript();

  world.release(kHolder);
  world.start(kHeir);

  const std::vector<std::string> flush = world.take_transcript();
  EXPECT_EQ(count(flush, "-> create"), 1U);
  EXPECT_EQ(count(flush, "c -> watch"), 1U);
  settle(world);
  ASSERT_TRUE(holds(world, kBehind));
  world.release(kBehind);
  settle(world);
  ASSERT_TRUE(holds(world, kHeir));
  EXPECT_EQ(count(world.take_transcript(), "c -> list"), 0U);
}

TEST(EstateExploration, H72_SomebodyCameInBetweenAndIsFoundByAList) {
  World world = make_heir(1);
  world.start(kStranger);
  settle(world);
  world.keep_transcript();

  world.release(kHolder);
  world.start(kHeir);
  settle(world);
  world.release(kBehind);
  settle(world);

  EXPECT_TRUE(holds(world, kStranger));
  EXPECT_FALSE(holds(world, kHeir));
  EXPECT_EQ(count(world.take_transcript(), "c -> list"), 1U);
}

/// With others of its session in line, who comes back is known by their list (queue::Company).
TEST(EstateExploration, WhoComesBackBehindCompanionsNeedsNoListEither) {
  World world = make_world({0, 0, 0, 0, 0});
  for (int slot = 0; slot < 3; ++slot) world.start(slot);
  settle(world);
  ASSERT_TRUE(holds(world, 0));
  world.keep_transcript();

  for (int slot = 0; slot < 4; ++slot) {
    world.release(slot);
    if (slot < 2) world.start(slot + 3);
    settle(world);
    ASSERT_TRUE(holds(world, slot + 1));
  }
  EXPECT_EQ(count(world.take_transcript(), "-> list"), 0U);
}

TEST(EstateExploration, AllTakeTurns) {
  expect_all_is_well(make_world({0, 0, 0, 1}), {});
  expect_all_is_well(make_world({0, 0, 0, 0}), {});
  expect_all_is_well(make_world({0, 1, 0}), {.heartbeats = 1});
  expect_all_is_well(make_world({0, 0, 0}), {.cuts = 1});
  expect_all_is_well(make_heir(1), {.heartbeats = 1});
}

TEST(EstateExploration, H01_H21_AConnectionLostTwiceAtAnyMoment) {
  expect_all_is_well(make_heir(0), {.cuts = 2});
  expect_all_is_well(make_heir(1), {.cuts = 1});
  expect_all_is_well(make_world({0, 0}), {.cuts = 2});
}

TEST(EstateExploration, H02_ALaggingServer) {
  expect_all_is_well(make_heir(1, {}, true), {.cuts = 1});
}

TEST(EstateExploration, H27_AnyoneLeavesOrCrashes) {
  expect_all_is_well(make_heir(1), {.cancels = 1});
  expect_all_is_well(make_heir(0), {.cancels = 2});
  expect_all_is_well(make_heir(1), {.crashes = 1});
  expect_all_is_well(make_heir(0), {.cuts = 1, .cancels = 1});
}

TEST(EstateExploration, H05_AnOperatorDeletesAnyone) {
  expect_all_is_well(make_heir(0), {.deletions = 2, .heartbeats = 1});
  expect_all_is_well(make_heir(1), {.deletions = 1});
  expect_all_is_well(make_world({0, 0}), {.cuts = 1, .deletions = 1});
}

/// What `./dev test` and the sanitizers see of the five above that take long.
TEST(EstateExplorationSmall, H01_H02_H05_H21_H27_OneTroubleAndNoStranger) {
  expect_all_is_well(make_world({0, 0, 0}), {});
  expect_all_is_well(make_world({0, 1, 0}), {.heartbeats = 1});
  expect_all_is_well(make_heir(0), {.cuts = 1});
  expect_all_is_well(make_heir(0, {}, true), {.cuts = 1});
  expect_all_is_well(make_heir(0), {.cancels = 1});
  expect_all_is_well(make_heir(0), {.crashes = 1});
  expect_all_is_well(make_heir(0), {.deletions = 1});
}

TEST(EstateExploration, H09_H12_ALeaseEnds) {
  expect_all_is_well(make_heir(0), {.lease_ends = 2});
  expect_all_is_well(make_heir(0), {.cuts = 1, .lease_ends = 1});
}

/// Three of one client: the one who comes back may be due by the answer to its create.
TEST(EstateExploration, H05_H06_H09_H39_CompanionsWhoComeBack) {
  expect_all_is_well(make_world({0, 0, 0}), {.deletions = 1, .heartbeats = 1});
  expect_all_is_well(make_world({0, 0, 0}), {.cancels = 1});
  expect_all_is_well(make_world({0, 0, 0}), {.lease_ends = 1});
  expect_all_is_well(make_world({0, 0, 0}), {.removals = 1});
  expect_all_is_well(make_world({0, 0, 0}), {.crashes = 1});
}

TEST(EstateExploration, H34_AnOperatorTouchesAnyEntry) {
  expect_all_is_well(make_heir(0), {.cancels = 1, .touches = 1});
}

TEST(EstateExploration, H39_TheDirectoryIsRemovedWheneverItIsEmpty) {
  expect_all_is_well(make_heir(0), {.removals = 1});
  expect_all_is_well(make_world({0, 0}), {.cuts = 1, .removals = 1});
}

TEST(EstateExploration, AmongFarewells) {
  expect_all_is_well(make_heir(1, {.farewell_from = 1}), {});
  expect_all_is_well(make_heir(0, {.farewell_from = 1}), {.cuts = 1, .cancels = 1});
}

TEST(EstateExplorationFinds, H72_AGapThatIsIgnored) {
  expect_found_in(Explorer(make_heir(1, {.mutant = Mutant::kGapIgnored}), {}), "is ahead");
}

}  // namespace
}  // namespace latchkey::mini::estate
