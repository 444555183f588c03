#include <chrono>
#include <optional>

#include <gtest/gtest.h>

#include "latchkey/multi_lock.hpp"
#include "latchkey/mutex.hpp"
#include "latchkey/testing.hpp"

/// The simulation as users have it.
namespace latchkey {
namespace {

using namespace std::chrono_literals;
using latchkey::testing::Direction;
using latchkey::testing::Operation;
using latchkey::testing::Simulation;

TEST(Simulation, TimePassesInBlockingCallsAndWhereItIsAsked) {
  Simulation simulation;
  const Session ann = simulation.open("ann");
  const Session bob = simulation.open("bob");
  const Instant began = BootClock::now();

  auto lease = Mutex(ann, "/locks/a").lock(deadline_in(5s));
  ASSERT_TRUE(lease.has_value());
  EXPECT_FALSE(Mutex(bob, "/locks/a").lock(deadline_in(1h)).has_value());

  EXPECT_GE(BootClock::now() - began, 1h);
}

TEST(Simulation, IsolationStaysWithTheNameUntilItIsHealed) {
  Simulation simulation;
  static_cast<void>(simulation.open("bob"));
  simulation.isolate("bob");
  simulation.kill("bob");

  const Session again = simulation.open("bob");
  simulation.run_for(30s);
  EXPECT_NE(again.state(), SessionState::kConnected);

  simulation.heal("bob");
  EXPECT_TRUE(simulation.run_until([&] { return again.state() == SessionState::kConnected; }, 1h));
}

TEST(Simulation, SilenceInOneDirectionIsEnoughToLoseALock) {
  for (const Direction direction : {Direction::kToServers, Direction::kFromServers}) {
    Simulation simulation;
    const Session ann = simulation.open("ann");
    auto lease = Mutex(ann, "/locks/a").lock(deadline_in(5s));
    ASSERT_TRUE(lease.has_value());

    simulation.isolate("ann", direction);

    EXPECT_TRUE(simulation.run_until([&] { return lease->state() == LeaseState::kLost; }, 1min));
  }
}

TEST(Simulation, AnAnswerIsLostAndTheLockIsHeldAllTheSame) {
  Simulation simulation;
  const Session ann = simulation.open("ann");
  simulation.lose_answer("ann", Operation::kMulti);
  simulation.lose_answer("ann", Operation::kCreate);

  auto both = MultiLock(ann, {"/locks/a", "/locks/b"}).lock(deadline_in(1min));
  auto one = Mutex(ann, "/locks/c").lock(deadline_in(1min));

  EXPECT_TRUE(both.has_value());
  EXPECT_TRUE(one.has_value());
}

TEST(Simulation, ASessionIsExpiredOnlyIfTheServerHasIt) {
  Simulation simulation;
  const Session ann = simulation.open("ann");
  EXPECT_FALSE(simulation.expire(ann)) << "it has not connected yet";
  ASSERT_TRUE(simulation.run_until([&] { return ann.state() == SessionState::kConnected; }, 1min));

  EXPECT_TRUE(simulation.expire(ann));

  EXPECT_TRUE(simulation.run_until([&] { return ann.state() == SessionState::kExpired; }, 1min));
}

TEST(Simulation, AFollowerCutFromItsLeaderDoesNotKeepALeaseAlive) {
  Simulation simulation({.seed = 3, .followers = 1});
  simulation.stop_server(0);
  const Session ann = simulation.open("ann");
  simulation.start_server(0);
  auto lease = Mutex(ann, "/locks/a").lock(deadline_in(1min));
  ASSERT_TRUE(lease.has_value());

  simulation.part_from_leader(1);
  simulation.stop_server(0);

  EXPECT_TRUE(simulation.run_until([&] { return lease->state() == LeaseState::kLost; }, 1min));
}

TEST(Simulation, ASuspendedProcessFindsItsLockLostWhenItWakes) {
  Simulation simulation;
  const Session ann = simulation.open("ann");
  const Session bob = simulation.open("bob");
  auto lease = Mutex(ann, "/locks/a").lock(deadline_in(5s));
  ASSERT_TRUE(lease.has_value());

  simulation.suspend("ann", 1min);
  auto next = Mutex(bob, "/locks/a").lock(deadline_in(50s));
  ASSERT_TRUE(next.has_value());

  EXPECT_TRUE(simulation.run_until([&] { return lease->state() == LeaseState::kLost; }, 2min));
}

TEST(Simulation, EqualSeedsTellTheSameStory) {
  const auto story = [](std::uint64_t seed) {
    Simulation simulation({.seed = seed, .followers = 2});
    const Session ann = simulation.open("ann");
    simulation.slow_down("ann", 20ms);
    static_cast<void>(Mutex(ann, "/locks/a").lock(deadline_in(5s)));
    simulation.run_for(10s);
    return simulation.trace();
  };

  EXPECT_EQ(story(7), story(7));
  EXPECT_NE(story(7), story(8));
}

using SimulationDeathTest = ::testing::Test;

TEST(SimulationDeathTest, WhatCannotBeMeantIsAnAssertion) {
  Simulation simulation;
  const Session ann = simulation.open("ann");

  EXPECT_DEATH(simulation.kill("anm"), "process_was_opened");
  EXPECT_DEATH(Simulation(), "thread_has_a_simulation");
  EXPECT_DEATH(simulation.stop_server(1), "server_exists");
  EXPECT_DEATH(simulation.part_from_leader(0), "follower_exists");
  simulation.post("ann", 1s, [&] { EXPECT_DEATH(simulation.run_for(1s), "inside_a_callback"); });
  simulation.run_for(2s);
  simulation.kill("ann");
  EXPECT_DEATH(static_cast<void>(Mutex(ann, "/a").lock(deadline_in(1s))), "process_was_killed");
}

}  // namespace
}  // namespace latchkey
