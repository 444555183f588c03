#include <memory>
#include <set>

#include <gmock/gmock.h>

#include "integration/mutex_fixture.hpp"

/// What a lock costs on the wire, and when the caller waits for what.
namespace latchkey::test_support {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;
using wire::Op;

TEST_P(MutexTest, AnUncontendedLockIsOneFlushAndItsReleaseOneDelete) {
  Proxied one = open_proxied(quick(60s));  // Neither ping nor heartbeat comes in between.
  make_node(witness.session(), directory);
  one.proxy->log().clear();

  Lease lease = take(one.session, directory);
  lease.release();

  ASSERT_TRUE(one.proxy->log().wait_for(replies_to(Op::kDelete), 1, soon()));
  EXPECT_THAT(requests(*one.proxy), ElementsAre(Op::kCreate2, Op::kGetChildren, Op::kDelete));
  const std::vector<TrafficRecord> records = one.proxy->log().records();
  EXPECT_EQ(records[0].op, Op::kCreate2);
  EXPECT_EQ(records[1].op, Op::kGetChildren);
  EXPECT_EQ(records[0].flush, records[1].flush);
}

/// A loop in a hurry lets go and queues again in one transaction, whose answer has no Stat.
TEST_P(MutexTest, H16_InALoopTheTokenIsTheCreatingTransactionToo) {
  constexpr int kRounds = 40;
  Proxied one = open_proxied(quick(60s));
  Mutex loop = mutex(one.session);
  for (int i = 0; i < kRounds; ++i) {
    auto lease = loop.lock(soon());
    ASSERT_TRUE(lease) << lease.error();
    if (i % 4 == 3) {
      const auto stat = one.session.exists(lease->node(), soon());
      ASSERT_TRUE(stat && *stat);
      EXPECT_EQ(lease->token(), Token((*stat)->czxid));
      EXPECT_TRUE(lease->check(soon()));
    }
  }
  RecordProperty("transactions", static_cast<int>(one.proxy->log().count(requests_of(Op::kMulti))));
  EXPECT_TRUE(witness.is_quiet(directory));
}

/// The delete of a transaction finds nothing, which undoes the new entry as well.
TEST_P(MutexTest, H05_WhoIsRobbedOfItsEntryInALoopHoldsTheNextOneAllTheSame) {
  const Session ours = open();
  Mutex loop = mutex(ours);
  for (int i = 0; i < 20; ++i) {
    auto lease = loop.lock(soon());
    ASSERT_TRUE(lease) << lease.error();
    if (i % 4 != 3) continue;
    ASSERT_TRUE(witness.session().remove(lease->node(), soon()));
    lease->release();
  }
  EXPECT_TRUE(witness.is_quiet(directory));
}

TEST_P(MutexTest, AHoldLongerThanAHeartbeatCostsOneWatchOnItsOwnNode) {
  Proxied one = open_proxied(quick(10s));
  make_node(witness.session(), directory);
  one.proxy->log().clear();

  Lease lease = take(one.session, directory);
  ASSERT_TRUE(one.proxy->log().wait_for(replies_to(Op::kSync), 3, soon()));
  EXPECT_EQ(lease.state(), LeaseState::kHeld);
  lease.release();

  ASSERT_TRUE(one.proxy->log().wait_for(replies_to(Op::kDelete), 1, soon()));
  EXPECT_THAT(requests(*one.proxy),
              ElementsAre(Op::kCreate2, Op::kGetChildren, Op::kGetData, Op::kDelete));
  for (const TrafficRecord& record : one.proxy->log().records()) {
    EXPECT_TRUE(record.op != Op::kGetData || record.path == lease.node()) << record.path;
  }
  EXPECT_TRUE(witness.is_quiet(directory));
}

TEST_P(MutexTest, AWaiterCostsAWatchOnItselfAndOneOnItsPredecessor) {
  Proxied one = open_proxied();
  Lease holder = take(open(), directory);
  one.proxy->log().clear();

  Waiter second(mutex(one.session));
  ASSERT_TRUE(one.proxy->log().wait_for(replies_to(Op::kGetData), 2, soon()));
  // The holder watches its own node, too, once it has held for a while.
  EXPECT_EQ(service().watches_of(one.session.id()), 2);
  holder.release();
  ASSERT_TRUE(second.holds());

  // The event says enough: no list (P4).
  EXPECT_THAT(requests(*one.proxy),
              ElementsAre(Op::kCreate2, Op::kGetChildren, Op::kGetData, Op::kGetData));
  std::vector<std::string> watched;
  for (const TrafficRecord& record : one.proxy->log().records()) {
    if (requests_of(Op::kGetData)(record)) watched.push_back(record.path);
  }
  EXPECT_THAT(watched, UnorderedElementsAre(holder.node(), second.lease().node()));
}

/// The second looks when the first holds, and what it is shown serves the others.
TEST_P(MutexTest, H07_ThreadsOfOneSessionShareOneListAndWatchNobody) {
  constexpr int kOthers = 12;
  Proxied one = open_proxied();
  Lease first = take(one.session, directory);
  one.proxy->log().clear();
  std::vector<std::unique_ptr<Waiter>> others;
  for (int i = 1; i <= kOthers; ++i) {
    others.push_back(std::make_unique<Waiter>(mutex(one.session)));
    ASSERT_TRUE(witness.queue_reaches(directory, static_cast<std::size_t>(i) + 1));
  }

  Token last = first.token();
  first.release();
  for (const auto& next : others) {
    ASSERT_TRUE(next->holds());
    EXPECT_LT(last, next->lease().token());
    last = next->lease().token();
    next->lease().release();
  }

  EXPECT_LE(one.proxy->log().count(requests_of(Op::kGetChildren)), 2);
  std::set<std::string> watched;
  for (const TrafficRecord& record : one.proxy->log().records()) {
    if (!requests_of(Op::kGetData)(record)) continue;
    EXPECT_TRUE(watched.insert(record.path).second) << "twice: " << record.path;
  }
  EXPECT_TRUE(witness.is_quiet(directory));
}

TEST_P(MutexTest, H07_AStrangerBetweenThreadsOfOneSessionIsNotPassedOver) {
  const Session ours = open();
  Lease first = take(ours, directory);
  Waiter stranger(mutex(open()));
  ASSERT_TRUE(witness.queue_reaches(directory, 2));
  Waiter second(mutex(ours));
  ASSERT_TRUE(witness.queue_reaches(directory, 3));

  first.release();
  ASSERT_TRUE(stranger.holds());
  EXPECT_FALSE(second.has_answer());
  stranger.lease().release();
  ASSERT_TRUE(second.holds());
  EXPECT_LT(stranger.lease().token(), second.lease().token());
}

TEST_P(MutexTest, ALocksOwnRequestsAreReportedLikeAnyOther) {
  Recorder<OperationReport> reports;
  SessionOptions options = quick(60s);  // No heartbeat, which would set a watch.
  options.on_operation = reports.adder();
  const Session session = open(options);
  make_node(witness.session(), directory);

  Lease lease = take(session, directory);
  ASSERT_TRUE(ok(lease.release(soon())));

  ASSERT_TRUE(reports.wait_for(3));
  const std::vector<OperationReport> all = reports.all();
  EXPECT_EQ(all[0].operation, "create2");
  EXPECT_EQ(all[1].operation, "getChildren");
  EXPECT_EQ(all[1].path, directory);
  EXPECT_EQ(all[2].operation, "delete");
  EXPECT_EQ(all[2].path, lease.node());
  EXPECT_TRUE(all[2].ok);
}

TEST_P(MutexTest, ReleaseDoesNotWaitForTheServer) {
  Proxied one = open_proxied();
  Lease lease = take(one.session, directory);
  const int stop = one.proxy->stop_at_reply(Op::kDelete);

  EXPECT_EQ(lease.release(), Released::kNow);

  EXPECT_EQ(lease.state(), LeaseState::kReleased);
  EXPECT_FALSE(lease.lost().stop_requested());
  ASSERT_TRUE(one.proxy->wait_until_fired(stop));
  one.proxy->release();
}

TEST_P(MutexTest, ReleaseWithADeadlineWaitsForTheServer) {
  Proxied one = open_proxied();
  Lease lease = take(one.session, directory);
  const int stop = one.proxy->stop_at_reply(Op::kDelete);

  EXPECT_TRUE(fails_with(lease.release(deadline_in(50ms)), Code::kTimedOut, lease.node()));
  EXPECT_EQ(lease.state(), LeaseState::kReleased);
  ASSERT_TRUE(one.proxy->wait_until_fired(stop));
  one.proxy->release();

  Lease again = take(one.session, directory);
  EXPECT_TRUE(ok(again.release(soon())));
  EXPECT_TRUE(witness.queue(directory).empty());
}

TEST_P(MutexTest, OneSessionHandsOverBeforeTheServerHasSeenTheDelete) {
  Proxied one = open_proxied();
  Lease first = take(one.session, directory);
  Waiter second(mutex(one.session));
  ASSERT_TRUE(one.proxy->log().wait_for(replies_to(Op::kGetData), 2, soon()));
  const int stop = one.proxy->stop_at_request(Op::kDelete);

  first.release();

  ASSERT_TRUE(second.holds());
  ASSERT_TRUE(one.proxy->wait_until_fired(stop));
  EXPECT_EQ(witness.queue(directory).size(), 2U);
  // A third one of this session, too, takes the ended hold for gone; a stranger does not.
  Session stranger = open();
  EXPECT_TRUE(fails_with(mutex(stranger).try_lock(), Code::kBusy));
  one.proxy->release();
  second.lease().release();
  EXPECT_TRUE(witness.is_quiet(directory));
}

TEST_P(MutexTest, OneSessionHandsOverWhileTheSecondIsStillFindingItsPlace) {
  // The hold ends when the answer that shows it, or sets the watch on it, is on its way.
  for (const Op late : {Op::kGetChildren, Op::kGetData}) {
    Proxied one = open_proxied(quick(60s));
    Lease first = take(one.session, directory);
    // Of the two watches the second is the one on the predecessor.
    const int delay = one.proxy->delay_reply({late, late == Op::kGetData ? 2 : 1}, 300ms);
    const int stop = one.proxy->stop_at_request(Op::kDelete);
    Waiter second(mutex(one.session));
    ASSERT_TRUE(one.proxy->wait_until_fired(delay));

    first.release();

    ASSERT_TRUE(one.proxy->wait_until_fired(stop));
    ASSERT_TRUE(second.holds()) << "the delete has not reached the server";
    EXPECT_EQ(witness.queue(directory).size(), 2U);
    one.proxy->release();
    second.lease().release();
    EXPECT_TRUE(witness.is_quiet(directory));
  }
}

TEST_P(MutexTest, ABusySessionWatchesItsHoldsToo) {
  Proxied one = open_proxied(quick(10s));
  Lease lease = take(one.session, directory);
  std::jthread others([&](const std::stop_token& stop) {
    // Every request proves the lease, so that no heartbeat is ever due.
    while (!stop.stop_requested()) take(one.session, directory + "-other").release();
  });
  const auto own_watch = [&](const TrafficRecord& record) {
    return requests_of(Op::kGetData)(record) && record.path == lease.node();
  };
  ASSERT_TRUE(one.proxy->log().wait_for(own_watch, 1, soon()));

  ASSERT_TRUE(ok(witness.session().remove(lease.node(), soon())));

  EXPECT_TRUE(eventually([&] { return lease.state() == LeaseState::kLost; }));
}

TEST_P(MutexTest, WhoeverHasGivenUpAlreadyAsksNothingOfTheServer) {
  Proxied one = open_proxied();
  one.proxy->log().clear();
  std::stop_source stopped;
  stopped.request_stop();
  Mutex lock = mutex(one.session);

  EXPECT_TRUE(fails_with(lock.lock(deadline_in(-1s)), Code::kTimedOut, directory));
  EXPECT_TRUE(fails_with(lock.try_lock(deadline_in(0s)), Code::kTimedOut, directory));
  EXPECT_TRUE(fails_with(lock.lock(soon(), stopped.get_token()), Code::kCancelled, directory));

  ASSERT_TRUE(ok(one.session.sync("/", soon())));
  EXPECT_TRUE(requests(*one.proxy).empty());
}

TEST_P(MutexTest, H41_ABadPathIsRefusedBeforeAnythingIsSent) {
  Proxied one = open_proxied();
  one.proxy->log().clear();

  for (const char* bad : {"", "locks", "/locks/", "//a", "/a//b", "/./a", "/a/..", "/a\x01"}) {
    Mutex lock(one.session, bad);
    EXPECT_TRUE(fails_with(lock.lock(soon()), Code::kInvalidPath)) << bad;
    EXPECT_TRUE(fails_with(lock.try_lock(), Code::kInvalidPath)) << bad;
  }
  for (const char* bad : {"a/b", "a_lock_b", "a\nb"}) {
    Mutex lock(one.session, directory, {.name = bad});
    EXPECT_TRUE(fails_with(lock.lock(soon()), Code::kInvalidOption)) << bad;
  }

  ASSERT_TRUE(ok(one.session.sync("/", soon())));
  EXPECT_TRUE(requests(*one.proxy).empty());
}

TEST_P(MutexTest, H41_APathTooLongForAFrameIsRefusedAndNothingIsLeft) {
  Session session = open();
  Mutex lock(session, "/" + std::string(2U << 20U, 'x'));

  EXPECT_TRUE(fails_with(lock.lock(soon()), Code::kTooLarge));
  EXPECT_EQ(session.state(), SessionState::kConnected);
}

}  // namespace
}  // namespace latchkey::test_support
