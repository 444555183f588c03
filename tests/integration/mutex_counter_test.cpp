#include <memory>

#include <gmock/gmock.h>

#include "integration/mutex_fixture.hpp"
#include "integration/own_server.hpp"
#include "latchkey/multi_lock.hpp"
#include "latchkey/semaphore.hpp"
#include "queue/counter.hpp"

/// A lock directory whose sequence counter nears its end, on a real server (H35), which starts with
/// data that a test has written.
namespace latchkey::test_support {
namespace {

using testing::HasSubstr;

class MutexCounterTest : public testing::TestWithParam<ServiceKind> {
 protected:
  /// The next entry of /locks gets this number.
  void start_at(std::int32_t next) {
    SeededData data;
    data.create("/locks", 1);
    data.create("/locks/seed", next);
    data.remove("/locks/seed");
    start_with(data);
  }
  /// The next lease of the semaphore /pool gets this number.
  void start_semaphore_at(std::int32_t next) {
    SeededData data;
    data.create("/pool", 1);
    data.create("/pool/locks", 1);
    data.create("/pool/leases", 2);
    data.create("/pool/leases/seed", next);
    data.remove("/pool/leases/seed");
    start_with(data);
  }
  /// A new server, each time.
  void start_with(const SeededData& data) {
    server.reset();
    server = own_server(GetParam());
    server->seed(data);
    server->start();
  }
  [[nodiscard]] Session open() { return open_session(server->connect_string(), patient()); }

  std::unique_ptr<OwnServer> server;
  const std::string directory = "/locks";
};

INSTANTIATE_TEST_SUITE_P(Standalone, MutexCounterTest, testing::Values(ServiceKind::kStandalone));
INSTANTIATE_TEST_SUITE_P(Embedded, MutexCounterTest, testing::Values(ServiceKind::kEmbedded));

TEST_P(MutexCounterTest, H35_AnEmptyDirectoryNearTheEndOfItsCounterIsMadeAnew) {
  for (const std::int32_t next : {queue::kSpentFrom, INT32_MAX - 1, INT32_MAX}) {
    start_at(next);
    Session session = open();

    Lease lease = take(session, directory);

    EXPECT_THAT(lease.node(), HasSubstr("-lock-0000000000")) << next;
    EXPECT_TRUE(fails_with(Mutex(session, directory).try_lock(), Code::kBusy));
  }
}

TEST_P(MutexCounterTest, H35_NewcomersHoldBackUntilTheOldQueueHasDrained) {
  start_at(queue::kSpentFrom - 1);
  Session first = open();
  Session second = open();
  Session third = open();
  Lease old = take(first, directory);
  EXPECT_THAT(old.node(), HasSubstr("-lock-2146435070"));

  Mutex late(second, directory);
  EXPECT_TRUE(fails_with(late.lock(deadline_in(5s)), Code::kTimedOut, "sequence counter"));
  EXPECT_TRUE(fails_with(late.try_lock(), Code::kBusy));
  Waiter one(Mutex(second, directory));
  Waiter two(Mutex(third, directory));
  ASSERT_TRUE(
      eventually([&] { return server->word("wchp").find(directory) != std::string::npos; }));
  EXPECT_EQ(old.state(), LeaseState::kHeld);
  EXPECT_FALSE(one.has_answer());
  old.release();

  ASSERT_TRUE(eventually([&] { return one.has_answer() || two.has_answer(); }));
  Waiter& winner = one.has_answer() ? one : two;
  Waiter& other = one.has_answer() ? two : one;
  ASSERT_TRUE(winner.holds());
  EXPECT_GT(winner.lease().token(), old.token());
  EXPECT_FALSE(other.has_answer());
  winner.lease().release();
  ASSERT_TRUE(other.holds());
  EXPECT_GT(other.lease().token(), winner.lease().token());
  EXPECT_THAT(other.lease().node(), HasSubstr("-lock-000000000"));
}

TEST_P(MutexCounterTest, H35_AMultiLockSaysWhatToDoAndLeavesNothing) {
  start_at(queue::kSpentFrom);
  Session session = open();
  const MultiLock both(session, {"/other", directory});

  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(fails_with(both.lock(soon()), Code::kCounterExhausted, "once with a Mutex"));
    EXPECT_TRUE(fails_with(both.try_lock(), Code::kCounterExhausted, directory));
  }
  EXPECT_TRUE(eventually([&] { return session.call(Ephemerals{"/"}, soon())->empty(); }));

  ASSERT_TRUE(ok(take(session, directory).release(soon())));  // As it says.
  auto lease = both.lock(soon());
  ASSERT_TRUE(ok(lease));
  EXPECT_THAT(lease->nodes().back(), HasSubstr("-lock-000000000"));
}

TEST_P(MutexCounterTest, H35_ASemaphoreMakesItsLeasesAnewWhenTheyAreAllBack) {
  for (const std::int32_t next : {queue::kSpentFrom, INT32_MAX - 1}) {
    start_semaphore_at(next);
    Session session = open();
    const Semaphore pool(session, "/pool", {.size = 2});

    auto both = pool.permits(2).lock(soon());

    ASSERT_TRUE(ok(both)) << next;
    EXPECT_THAT(both->nodes(), testing::Each(HasSubstr("-lease-000000000"))) << next;
    EXPECT_TRUE(fails_with(pool.permits(1).try_lock(), Code::kBusy));
  }
}

TEST_P(MutexCounterTest, H35_WhoeverHasAnOldLeaseIsWaitedFor) {
  start_semaphore_at(queue::kSpentFrom - 1);
  Session first = open();
  Session second = open();
  auto old = Semaphore(first, "/pool", {.size = 2}).permits(1).lock(soon());
  ASSERT_TRUE(ok(old));
  EXPECT_THAT(old->node(), HasSubstr("-lease-2146435070"));

  // A permit is free, but its number would be beyond the limit.
  Waiter next(Semaphore(second, "/pool", {.size = 2}).permits(1));
  ASSERT_TRUE(eventually([&] { return first.children("/pool/locks", soon())->names.size() == 1; }));
  EXPECT_TRUE(fails_with(Semaphore(first, "/pool", {.size = 2}).permits(1).lock(deadline_in(300ms)),
                         Code::kTimedOut));
  EXPECT_FALSE(next.has_answer());
  EXPECT_EQ(old->state(), LeaseState::kHeld);
  old->release();

  ASSERT_TRUE(next.holds());
  EXPECT_GT(next.lease().token(), old->token());
  EXPECT_THAT(next.lease().node(), HasSubstr("-lease-000000000"));
}

TEST_P(MutexCounterTest, H35_AForeignChildInTheWayIsNamed) {
  start_at(queue::kSpentFrom);
  Session session = open();
  make_node(session, "/locks/somebody's note");

  EXPECT_TRUE(fails_with(Mutex(session, directory).lock(deadline_in(6s)), Code::kTimedOut,
                         "somebody's note"));
}

}  // namespace
}  // namespace latchkey::test_support
