#include <set>

#include <gmock/gmock.h>

#include "integration/mutex_fixture.hpp"

/// Single faults at exact messages; the sweep over all of them is mutex_sweep_test.cpp.
namespace latchkey::test_support {
namespace {

using testing::ElementsAre;
using wire::Op;

/// Not so long that a test which waits for its end takes for ever, but longer than the others.
constexpr auto kLong = 60s;

TEST_P(MutexTest, H01_ACreateWhoseReplyIsLostIsFoundAndAdopted) {
  Proxied one = open_proxied(quick(kLong));
  make_node(witness.session(), directory);
  const int cut = one.proxy->cut_after_request(Op::kCreate2);

  Lease lease = take(one.session, directory);

  EXPECT_EQ(one.proxy->fired(cut), 1);
  EXPECT_EQ(count(*one.proxy, Op::kCreate2), 1U);
  ASSERT_EQ(witness.queue(directory).size(), 1U);
  EXPECT_EQ(lease.node(), directory + "/" + witness.queue(directory)[0]);
  const auto stat = witness.synced().exists(lease.node(), soon());
  EXPECT_EQ(lease.token().zxid(), (*stat)->czxid);
  EXPECT_EQ((*stat)->ephemeral_owner, one.session.id());
  lease.release();
  EXPECT_TRUE(witness.is_quiet(directory));
}

TEST_P(MutexTest, H02_TheSearchForALostCreateStandsBehindASync) {
  Proxied one = open_proxied(quick(kLong));
  make_node(witness.session(), directory);
  one.proxy->log().clear();
  one.proxy->cut_before_reply(Op::kCreate2);

  Lease lease = take(one.session, directory);

  EXPECT_THAT(requests(*one.proxy), ElementsAre(Op::kCreate2, Op::kGetChildren, Op::kSync,
                                                Op::kGetChildren, Op::kExists));
}

TEST_P(MutexTest, H01_AWaiterThatAdoptsItsNodeKeepsItsPlace) {
  Proxied one = open_proxied(quick(kLong));
  Lease holder = take(open(), directory);
  one.proxy->cut_after_request(Op::kCreate2);
  Waiter second(mutex(one.session));
  ASSERT_TRUE(one.proxy->log().wait_for(replies_to(Op::kGetData), 2, soon()));
  Waiter third(mutex(open()));
  ASSERT_TRUE(witness.queue_reaches(directory, 3));

  holder.release();
  ASSERT_TRUE(second.holds());
  EXPECT_FALSE(third.has_answer());
  second.lease().release();
  EXPECT_TRUE(third.holds());
}

TEST_P(MutexTest, H71_EveryWayTheFirstPairCanBreakEndsInOneNodeAndAGrant) {
  struct Row {
    const char* what;
    int (FaultProxy::*cut)(const Match&);
    Op op;
    std::size_t creates;
    std::size_t searches;
  };
  const Row rows[] = {
      {"before both requests", &FaultProxy::cut_before_request, Op::kCreate2, 2, 1},
      {"between the requests", &FaultProxy::cut_before_request, Op::kGetChildren, 1, 0},
      {"before both replies", &FaultProxy::cut_before_reply, Op::kCreate2, 1, 1},
      {"between the replies", &FaultProxy::cut_after_reply, Op::kCreate2, 1, 0},
      {"before the list's reply", &FaultProxy::cut_before_reply, Op::kGetChildren, 1, 0},
      {"after both replies", &FaultProxy::cut_after_reply, Op::kGetChildren, 1, 0},
  };
  Proxied one = open_proxied(quick(kLong));
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    const std::string path = fresh_path();
    make_node(witness.session(), path);
    one.proxy->log().clear();
    const int cut = (one.proxy.get()->*row.cut)(row.op);

    Lease lease = take(one.session, path);

    EXPECT_TRUE(one.proxy->wait_until_fired(cut));
    EXPECT_EQ(witness.queue(path).size(), 1U);
    EXPECT_EQ(count(*one.proxy, Op::kCreate2), row.creates);
    const auto searches = one.proxy->log().count([&](const TrafficRecord& record) {
      return requests_of(Op::kSync)(record) && record.path == path;
    });
    EXPECT_EQ(searches, row.searches);
    lease.release();
    EXPECT_TRUE(witness.is_quiet(path));
  }
}

TEST_P(MutexTest, H21_ALostDeleteIsSentAgainAndTheNextGetsInWithoutExpiry) {
  Proxied one = open_proxied(quick(kLong));
  Session next = open();
  for (const auto fault : {&FaultProxy::cut_before_request, &FaultProxy::cut_after_request}) {
    Lease lease = take(one.session, directory);
    Waiter waiter(mutex(next));
    ASSERT_TRUE(witness.queue_reaches(directory, 2));
    const int cut = (one.proxy.get()->*fault)(Op::kDelete);

    // NoNode after a delete that may have been carried out is a success.
    EXPECT_TRUE(ok(lease.release(soon())));

    EXPECT_TRUE(one.proxy->wait_until_fired(cut));
    EXPECT_TRUE(waiter.holds());
  }
}

TEST_P(MutexTest, H22_ADebtDiesWithItsSession) {
  Proxied one = open_proxied(quick(8s));
  make_node(witness.session(), directory);
  Lease lease = take(one.session, directory);
  one.proxy->hold(Hold::kBoth);
  EXPECT_NE(lease.release(), Released::kAlreadyOver);

  ASSERT_TRUE(witness.queue_reaches(directory, 0));
  make_node(witness.session(), lease.node());
  one.proxy->cut_all();
  one.proxy->release();
  ASSERT_TRUE(eventually([&] { return one.session.state() == SessionState::kExpired; }));
  Session fresh = open_session(one.proxy->connect_string());
  ASSERT_TRUE(ok(fresh.sync(directory, soon())));

  EXPECT_EQ(count(*one.proxy, Op::kDelete), 0U);
  EXPECT_EQ(witness.queue(directory).size(), 1U);
}

TEST_P(MutexTest, H25_ASessionLetGoInAPartitionBlocksTheNextNoLongerThanItsTimeout) {
  constexpr auto kTimeout = 12s;
  auto one = std::make_unique<Proxied>(service().follower(), quick(kTimeout));
  auto lease = std::make_unique<Lease>(take(one->session, directory));
  Waiter waiter(mutex(open()));
  ASSERT_TRUE(witness.queue_reaches(directory, 2));
  one->proxy->hold(Hold::kBoth);
  const Instant cut_off = BootClock::now();

  lease.reset();
  const std::unique_ptr<FaultProxy> proxy = std::move(one->proxy);
  one.reset();

  EXPECT_LT(BootClock::now() - cut_off, kTimeout / 2) << "H52: letting go does not wait";
  ASSERT_TRUE(waiter.holds());
  EXPECT_LT(waiter.answered_at() - cut_off, 2 * kTimeout);
}

TEST_P(MutexTest, H25_ASessionLetGoInAShortPartitionIsClosedAfterIt) {
  auto one = std::make_unique<Proxied>(service().follower(), quick(kLong));
  auto lease = std::make_unique<Lease>(take(one->session, directory));
  Waiter waiter(mutex(open()));
  ASSERT_TRUE(witness.queue_reaches(directory, 2));
  one->proxy->hold(Hold::kBoth);

  lease.reset();
  const std::unique_ptr<FaultProxy> proxy = std::move(one->proxy);
  one.reset();
  EXPECT_FALSE(waiter.has_answer());
  proxy->release();

  EXPECT_TRUE(waiter.holds());
}

TEST_P(MutexTest, H12_AWaiterWhoseSessionIsGoneGetsAnErrorAndNotTheLock) {
  Proxied one = open_proxied(quick(6s));
  Lease holder = take(open(), directory);
  Waiter waiter(mutex(one.session));
  ASSERT_TRUE(one.proxy->log().wait_for(replies_to(Op::kGetData), 2, soon()));
  one.proxy->hold(Hold::kBoth);
  ASSERT_TRUE(witness.queue_reaches(directory, 1));

  ASSERT_TRUE(ok(holder.release(soon())));
  one.proxy->release();

  ASSERT_FALSE(waiter.holds());
  EXPECT_TRUE(fails_with(waiter.answer(), Code::kSessionLost, directory));
}

TEST_P(MutexTest, H12_AWakeBehindALapsedLeaseIsNotAGrant) {
  Proxied one = open_proxied(quick(20s));
  Lease holder = take(open(), directory);
  Waiter waiter(mutex(one.session));
  ASSERT_TRUE(one.proxy->log().wait_for(replies_to(Op::kGetData), 2, soon()));
  const Lease gauge = take(one.session, directory + "-gauge");
  one.proxy->hold(Hold::kToServer);
  ASSERT_TRUE(eventually([&] { return gauge.state() == LeaseState::kLost; }));

  // The event comes through, but nothing proves that our session still exists.
  ASSERT_TRUE(ok(holder.release(soon())));
  ASSERT_TRUE(one.proxy->log().wait_for(replies_to(Op::kNotification), 1, soon()));
  EXPECT_FALSE(waiter.holds(deadline_in(100ms)));

  one.proxy->release();
  ASSERT_TRUE(waiter.holds());
  EXPECT_EQ(waiter.lease().state(), LeaseState::kHeld);
}

TEST_P(MutexTest, H04_ANewSessionDoesNotTakeOverTheNodeOfTheOldOne) {
  Proxied one = open_proxied(quick(4s));
  Lease old = take(one.session, directory);
  one.proxy->hold(Hold::kBoth);
  ASSERT_TRUE(eventually([&] { return old.state() == LeaseState::kLost; }));

  // The server still keeps the old node when the new session queues up behind it.
  Session fresh = open();
  const Lease lease = take(fresh, directory);

  EXPECT_NE(lease.node(), old.node());
  EXPECT_GT(lease.token(), old.token());
  const auto stat = witness.synced().exists(lease.node(), soon());
  EXPECT_EQ((*stat)->ephemeral_owner, fresh.id());
}

TEST_P(MutexTest, H32_AnEventLostWithItsConnectionIsMadeUpFor) {
  for (const auto fault : {&FaultProxy::cut_before_reply, &FaultProxy::cut_after_reply}) {
    Proxied one = open_proxied(quick(kLong));
    Lease holder = take(open(), directory);
    Waiter waiter(mutex(one.session));
    ASSERT_TRUE(one.proxy->log().wait_for(replies_to(Op::kGetData), 2, soon()));
    const int cut = (one.proxy.get()->*fault)(Op::kNotification);

    holder.release();

    ASSERT_TRUE(waiter.holds());
    EXPECT_TRUE(one.proxy->wait_until_fired(cut));
    EXPECT_EQ(waiter.lease().state() == LeaseState::kLost, false);
    waiter.lease().release();
    EXPECT_TRUE(witness.is_quiet(directory));
  }
}

TEST_P(MutexTest, H32_WaitersSleepThroughAReconnectAndWakeAfterIt) {
  Proxied one = open_proxied(quick(kLong));
  Lease holder = take(open(), directory);
  Waiter second(mutex(one.session));
  ASSERT_TRUE(witness.queue_reaches(directory, 2));
  ASSERT_TRUE(one.proxy->log().wait_for(replies_to(Op::kGetData), 2, soon()));
  Waiter third(mutex(one.session));
  ASSERT_TRUE(witness.queue_reaches(directory, 3));

  one.proxy->cut_all();
  ASSERT_TRUE(one.proxy->log().wait_for(replies_to(Op::kSetWatches), 1, soon()));
  EXPECT_EQ(count(*one.proxy, Op::kCreate2), 2U);
  EXPECT_FALSE(second.has_answer());
  holder.release();

  ASSERT_TRUE(second.holds());
  EXPECT_FALSE(third.has_answer());
  second.lease().release();
  ASSERT_TRUE(third.holds());
  third.lease().release();
  EXPECT_TRUE(witness.is_quiet(directory));
}

TEST_P(MutexTest, H32_AHolderThatLeavesWhileTheWaiterIsAwayWakesItWhenItReturns) {
  Proxied one = open_proxied(quick(kLong));
  Lease holder = take(open(), directory);
  Waiter waiter(mutex(one.session));
  ASSERT_TRUE(one.proxy->log().wait_for(replies_to(Op::kGetData), 2, soon()));
  one.proxy->refuse();
  one.proxy->cut_all();

  ASSERT_TRUE(ok(holder.release(soon())));
  one.proxy->accept();

  EXPECT_TRUE(waiter.holds());
}

TEST_P(MutexTest, H08_NoTwoAttemptsShareAName) {
  Session session = open();
  std::set<std::string> guids;
  for (int i = 0; i < 50; ++i) {
    const std::string node = take(session, directory).node();
    guids.insert(node.substr(directory.size() + 4, 36));
  }
  EXPECT_EQ(guids.size(), 50U);
}

}  // namespace
}  // namespace latchkey::test_support
