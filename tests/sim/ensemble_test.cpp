#include <optional>

#include <gtest/gtest.h>

#include "latchkey/mutex.hpp"
#include "testing/world.hpp"

namespace latchkey::testing {
namespace {

using namespace std::chrono_literals;

/// A leader and two followers; ann talks to the first follower, bob to the leader.
class EnsembleTest : public ::testing::Test {
 protected:
  EnsembleTest() {
    EXPECT_TRUE(ann.wait_connected(deadline_in(5s)));
    EXPECT_TRUE(bob.wait_connected(deadline_in(5s)));
  }

  [[nodiscard]] Deadline soon() { return deadline_in(5s); }

  World world{{.seed = 5, .followers = 2}};
  Process& anns = world.start_process("ann");
  Process& bobs = world.start_process("bob");
  Session ann = world.open(anns, {}, {1});
  Session bob = world.open(bobs, {}, {0});
};

TEST_F(EnsembleTest, AFollowerThatLagsShowsAnOldState) {
  world.lag(0, 10);
  ASSERT_TRUE(bob.create("/a", "", {}, soon()));
  world.run_for(1s);

  EXPECT_FALSE(ann.exists("/a", soon())->has_value());
  EXPECT_LT(world.follower(0).position(), world.log().end());
  world.lag(0, 0);
  EXPECT_TRUE(ann.exists("/a", soon())->has_value());
}

TEST_F(EnsembleTest, H02_ASyncCatchesUpWithTheLeader) {
  world.lag(0, 10);
  ASSERT_TRUE(bob.create("/a", "", {}, soon()));

  ASSERT_TRUE(ann.sync("/", soon()));

  EXPECT_TRUE(ann.exists("/a", soon())->has_value());
}

TEST_F(EnsembleTest, AClientReadsItsOwnWritesFromAFollowerThatLags) {
  world.lag(0, 10);

  ASSERT_TRUE(ann.create("/a", "x", {}, soon()));

  EXPECT_EQ(ann.get("/a", soon())->data, "x");
}

TEST_F(EnsembleTest, AWatchAtAFollowerFiresWhenTheFollowerLearnsOfTheChange) {
  ASSERT_TRUE(bob.create("/a", "", {}, soon()));
  ASSERT_TRUE(ann.sync("/", soon()));
  int fired = 0;
  ASSERT_TRUE(ann.get("/a", soon(), [&](const WatchEvent&) { ++fired; }));
  world.lag(0, 10);

  ASSERT_TRUE(bob.set("/a", "new", soon()));
  world.run_for(1s);
  EXPECT_EQ(fired, 0);
  world.lag(0, 0);
  world.run_for(1s);

  EXPECT_EQ(fired, 1);
}

TEST_F(EnsembleTest, AClientThatHasSeenMoreThanAFollowerIsTurnedAway) {
  Session both = world.open(world.start_process("both"), {}, {1, 2});
  world.lag(0, 10);
  world.lag(1, 10);
  ASSERT_TRUE(both.create("/a", "", {}, soon()));
  const std::size_t here =
      world.follower(0).tree().applied_zxid() > world.follower(1).tree().applied_zxid() ? 0 : 1;
  for (int i = 0; i < 4; ++i) {
    world.cut(world.host_of(both));
    world.run_for(2s);
  }

  EXPECT_EQ(both.state(), SessionState::kConnected);
  EXPECT_GE(world.follower(here).connections(), 1U);
}

TEST_F(EnsembleTest, H11_AFollowerCutFromItsLeaderAnswersReadsWhileTheSessionRunsOut) {
  Mutex mine(ann, Path("/locks/a"));
  Mutex theirs(bob, Path("/locks/a"));
  const auto lease = mine.lock(soon());
  ASSERT_TRUE(lease);
  ASSERT_TRUE(ann.exists(lease->node(), soon())->has_value());

  world.part_from_leader(0);
  EXPECT_TRUE(ann.exists(lease->node(), deadline_in(1s))->has_value());
  const auto next = theirs.lock(deadline_in(60s));

  ASSERT_TRUE(next) << next.error();
  EXPECT_EQ(lease->state(), LeaseState::kLost);
}

TEST_F(EnsembleTest, AFollowerWithoutALeaderDropsItsClientsAfterTheSyncLimit) {
  world.part_from_leader(0);
  world.run_for(4s);
  EXPECT_TRUE(world.follower(0).is_listening());

  world.run_for(4s);

  EXPECT_FALSE(world.follower(0).is_listening());
  EXPECT_EQ(world.follower(0).connections(), 0U);
  world.rejoin_leader(0);
  EXPECT_TRUE(ann.wait_connected(deadline_in(10s)));
}

TEST_F(EnsembleTest, H04_AWriteOverTheOldConnectionOfAMovedSessionIsRefused) {
  struct Refusals final : Observer {
    void on_sent(const Message& message) override {
      if (message.way == Way::kReply && message.err == wire::Err::kSessionMoved) ++count;
    }
    int count = 0;
  } refusals;
  world.watch(refusals);
  Process& movers = world.start_process("mover");
  Session mover = world.open(movers, {}, {1, 2});
  ASSERT_TRUE(mover.wait_connected(soon()));
  const std::size_t old = world.follower(1).connections() == 1 ? 2 : 1;
  world.partition(movers, old, Silence::kBoth);
  mover.async(Create{"/late", "", {}}, deadline_in(60s), [](const Result<Created>&) {});
  ASSERT_TRUE(world.run_until([&] { return mover.state() == SessionState::kSuspended; }, 20s));
  ASSERT_TRUE(mover.wait_connected(deadline_in(20s)));

  world.heal(movers, old);  // What was stuck on its way arrives now.
  world.run_for(1s);

  EXPECT_EQ(refusals.count, 1);
  EXPECT_FALSE(bob.exists("/late", soon())->has_value());
  world.unwatch(refusals);
}

TEST_F(EnsembleTest, AnExpiredSessionsConnectionEndsWhenTheFollowerHearsOfIt) {
  world.lag(0, 10);
  EXPECT_TRUE(world.expire(ann.id()));
  world.run_for(1s);
  EXPECT_EQ(ann.state(), SessionState::kConnected);

  world.lag(0, 0);
  world.run_for(1s);

  EXPECT_EQ(ann.state(), SessionState::kExpired);
}

TEST_F(EnsembleTest, SessionsOutliveTheLeader) {
  ASSERT_TRUE(ann.create("/a", "", {}, soon()));
  world.crash(0, Crash::kProcess);
  world.run_for(1s);
  EXPECT_EQ(ann.state(), SessionState::kSuspended);
  world.restart(0);

  ASSERT_TRUE(ann.wait_connected(deadline_in(20s)));

  EXPECT_TRUE(ann.exists("/a", soon())->has_value());
  EXPECT_TRUE(ann.create("/b", "", {}, soon()));
}

TEST_F(EnsembleTest, SessionsOutliveAFollower) {
  world.crash(1, Crash::kProcess);
  world.run_for(1s);
  world.restart(1);

  EXPECT_TRUE(ann.wait_connected(deadline_in(20s)));
  EXPECT_TRUE(ann.create("/b", "", {}, soon()));
}

TEST_F(EnsembleTest, CredentialsGivenToAFollowerCountForReadsThere) {
  ASSERT_TRUE(ann.call(Authenticate{"digest", "ann:secret"}, soon()));

  const auto who = ann.call(WhoAmI{}, soon());

  ASSERT_TRUE(who) << who.error();
  EXPECT_EQ(who->size(), 2U);
}

TEST_F(EnsembleTest, H11_ADeposedLeaderAnswersReadsAndSyncsFromAnOldStateUntilItKnows) {
  world.depose(0, 4s);
  world.run_for(100ms);
  ASSERT_TRUE(bob.wait_connected(deadline_in(2s)));
  ASSERT_TRUE(bob.create("/later", "", {}, soon()));

  EXPECT_TRUE(ann.sync("/", deadline_in(1s)));
  EXPECT_FALSE(ann.exists("/later", deadline_in(1s))->has_value());
  EXPECT_FALSE(ann.create("/never", "", {}, deadline_in(500ms)));
  world.run_for(4s);

  ASSERT_TRUE(ann.wait_connected(deadline_in(10s)));
  EXPECT_TRUE(ann.exists("/later", soon())->has_value());
  EXPECT_FALSE(ann.exists("/never", soon())->has_value());
}

TEST_F(EnsembleTest, H11_TouchesOfAFollowerThatIsCutOffReachTheLeaderOnlyAfterTheCut) {
  const auto deadline = [&] { return *world.leader().service().deadline_of(ann.id()); };
  ASSERT_TRUE(ann.exists("/", soon()));
  world.run_for(1s);
  world.part_from_leader(0);
  world.run_for(100ms);
  const Instant before = deadline();

  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(ann.exists("/", deadline_in(1s)));
    world.run_for(700ms);
  }
  EXPECT_EQ(deadline(), before);
  world.rejoin_leader(0);
  world.run_for(100ms);

  EXPECT_GT(deadline(), before);
}

}  // namespace
}  // namespace latchkey::testing
