#include <optional>

#include <gtest/gtest.h>

#include "latchkey/mutex.hpp"
#include "testing/world.hpp"

namespace latchkey::testing {
namespace {

using namespace std::chrono_literals;

/// One server and a client that is connected to it.
class FaultTest : public ::testing::Test {
 protected:
  FaultTest() { EXPECT_TRUE(session.wait_connected(deadline_in(5s))); }

  [[nodiscard]] SimHost& host() { return world.host_of(session); }
  [[nodiscard]] std::size_t entries() {
    const auto children = other.children("/locks/a", deadline_in(5s));
    return children ? children->names.size() : 0;
  }

  World world{{.seed = 3}};
  Process& ann = world.start_process("ann");
  Session session = world.open(ann);
  Session other = world.open(world.start_process("other"));
  Mutex mutex{session, Path("/locks/a")};
};

TEST_F(FaultTest, ACutConnectionIsReplacedAndTheSessionStays) {
  const LinkId before = host().link();
  const std::int64_t id = session.id();

  world.cut(host());
  ASSERT_TRUE(world.run_until([&] { return session.state() == SessionState::kSuspended; }, 1s));
  ASSERT_TRUE(world.run_until([&] { return session.state() == SessionState::kConnected; }, 5s));

  EXPECT_NE(host().link(), before);
  EXPECT_EQ(session.id(), id);
  EXPECT_EQ(world.count(Fault::kCut), 1U);
}

TEST_F(FaultTest, ASilentDirectionKeepsTheConnectionAndDelaysWhatIsSent) {
  const LinkId before = host().link();
  world.partition(ann, 0, Silence::kReplies);
  std::optional<bool> created;

  session.async(Create{"/a", "", {}}, deadline_in(60s),
                [&](const Result<Created>& done) { created = done.has_value(); });
  world.run_for(1s);

  EXPECT_FALSE(created);
  EXPECT_TRUE(other.exists("/a", deadline_in(1s))->has_value());
  EXPECT_EQ(host().link(), before);
  world.heal(ann, 0);
  world.run_for(1s);
  EXPECT_EQ(created, true);
}

TEST_F(FaultTest, H01_ALostReplyToTheCreateLeavesOneEntryAndAGrant) {
  ASSERT_TRUE(mutex.lock(deadline_in(5s)));  // The directory is there from now on.
  world.drop_next(ann, Way::kReply, std::vector{wire::Op::kCreate, wire::Op::kCreate2});

  const auto lease = mutex.lock(deadline_in(20s));

  ASSERT_TRUE(lease) << lease.error();
  EXPECT_EQ(entries(), 1U);
  EXPECT_GE(world.count(Fault::kDropReply), 1U);
}

TEST_F(FaultTest, ALostRequestHasNoEffect) {
  world.drop_next(ann, Way::kRequest, wire::Op::kSetData);
  ASSERT_TRUE(session.create("/a", "old", {}, deadline_in(5s)));

  const auto set = session.set("/a", "new", deadline_in(5s));

  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().effect(), Effect::kUnknown);
  EXPECT_EQ(other.get("/a", deadline_in(5s))->data, "old");
}

TEST_F(FaultTest, AMessageThatIsHeldUpHoldsUpThoseBehindIt) {
  ASSERT_TRUE(session.create("/a", "", {}, deadline_in(5s)));
  world.hold_next(ann, Way::kRequest, wire::Op::kGetData, 700ms);
  const Instant before = world.now();
  std::vector<Duration> answered;

  session.async(Get{"/a", {}}, deadline_in(5s),
                [&](const Result<Node>&) { answered.push_back(world.now() - before); });
  session.async(Exists{"/a", {}}, deadline_in(5s), [&](const Result<std::optional<Stat>>&) {
    answered.push_back(world.now() - before);
  });
  world.run_for(2s);

  ASSERT_EQ(answered.size(), 2U);
  EXPECT_GE(answered[0], 700ms);
  EXPECT_GE(answered[1], 700ms);
}

TEST_F(FaultTest, ARefusedClientFindsNoServerUntilTheRefusalEnds) {
  world.refuse(ann, 0, Refusal::kOn);
  world.cut(host());
  world.run_for(3s);
  EXPECT_EQ(session.state(), SessionState::kSuspended);

  world.refuse(ann, 0, Refusal::kOff);

  EXPECT_TRUE(session.wait_connected(deadline_in(10s)));
}

TEST_F(FaultTest, AFaultCountsWhenItStrikes) {
  world.refuse(ann, 0, Refusal::kOn);
  world.run_for(1s);
  EXPECT_EQ(world.count(Fault::kRefuse), 0U);
  world.cut(host());
  world.run_for(3s);
  EXPECT_EQ(world.count(Fault::kRefuse), 1U);
  world.refuse(ann, 0, Refusal::kOff);
  ASSERT_TRUE(session.wait_connected(deadline_in(10s)));

  world.partition(ann, 0, Silence::kReplies);
  world.slow_down(ann, 0, 10ms);
  EXPECT_EQ(world.count(Fault::kPartition), 0U);
  EXPECT_EQ(world.count(Fault::kSlow), 0U);
  world.run_for(5s);
  EXPECT_EQ(world.count(Fault::kPartition), 1U);
  EXPECT_EQ(world.count(Fault::kSlow), 1U);

  world.set_clock_rate(ann, 1.004);
  EXPECT_EQ(world.count(Fault::kClockRate), 0U);
  world.set_clock_rate(ann, 1.25);
  EXPECT_EQ(world.count(Fault::kClockRate), 1U);
}

TEST_F(FaultTest, H09_AHolderThatIsPausedBeyondItsTimeoutFindsItsLeaseLost) {
  const auto lease = mutex.lock(deadline_in(5s));
  ASSERT_TRUE(lease);
  Mutex theirs(other, Path("/locks/a"));

  world.pause(ann, 30s);
  const auto next = theirs.lock(deadline_in(25s));

  ASSERT_TRUE(next) << next.error();
  EXPECT_GT(next->token(), lease->token());
  LeaseState state = LeaseState::kHeld;
  world.run_as(ann, [&] { state = lease->state(); });
  EXPECT_EQ(state, LeaseState::kLost);
}

TEST_F(FaultTest, AClockThatStandsStillLetsAHolderBelieveInADeadLease) {
  const auto lease = mutex.lock(deadline_in(5s));
  ASSERT_TRUE(lease);
  Mutex theirs(other, Path("/locks/a"));

  world.suspend(ann, 30s);
  const auto next = theirs.lock(deadline_in(25s));

  ASSERT_TRUE(next) << next.error();
  // Beyond what any lease can stand; only the token helps.
  LeaseState state = LeaseState::kLost;
  world.run_as(ann, [&] { state = lease->state(); });
  EXPECT_NE(state, LeaseState::kLost);
  EXPECT_GT(next->token(), lease->token());
}

TEST_F(FaultTest, AFastClockRunsAheadOfTheTrueOne) {
  world.set_clock_rate(ann, 2.0);
  const Instant before = ann.now();

  world.run_for(10s);

  EXPECT_EQ(ann.now() - before, 20s);
  world.jump_clock(ann, 1h);
  EXPECT_EQ(ann.now() - before, 20s + 1h);
  EXPECT_EQ(session.state(), SessionState::kConnected);
}

TEST_F(FaultTest, AnExpiredSessionLosesItsLease) {
  const auto lease = mutex.lock(deadline_in(5s));
  ASSERT_TRUE(lease);

  EXPECT_TRUE(world.expire(session.id()));
  world.run_for(5s);

  EXPECT_EQ(session.state(), SessionState::kExpired);
  EXPECT_EQ(lease->state(), LeaseState::kLost);
  EXPECT_EQ(entries(), 0U);
}

TEST_F(FaultTest, AKilledProcessLosesItsLockToTheNext) {
  auto lease = mutex.lock(deadline_in(5s));
  ASSERT_TRUE(lease);
  Mutex theirs(other, Path("/locks/a"));

  world.kill(ann, Tell::kNo);

  EXPECT_TRUE(theirs.lock(deadline_in(40s)));
}

}  // namespace
}  // namespace latchkey::testing
