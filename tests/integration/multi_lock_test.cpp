#include "latchkey/multi_lock.hpp"

#include <algorithm>
#include <thread>

#include <gmock/gmock.h>

#include "integration/sweep_fixture.hpp"

/// Several locks as one (H49).
namespace latchkey::test_support {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;
using wire::Op;

class MultiLockTest : public MutexTest {
 protected:
  [[nodiscard]] MultiLock both(const Session& session) const { return MultiLock(session, {x, y}); }
  [[nodiscard]] Lease take_both(const Session& session) const {
    auto lease = both(session).lock(soon());
    if (!lease) throw std::runtime_error(lease.error().message());
    return std::move(*lease);
  }
  void make_both() {
    make_node(witness.session(), x);
    make_node(witness.session(), y);
  }
  [[nodiscard]] testing::AssertionResult are_quiet() {
    auto quiet = witness.is_quiet(x);
    return quiet ? witness.is_quiet(y) : quiet;
  }
  [[nodiscard]] std::int64_t czxid(const std::string& node) {
    static_cast<void>(witness.session().sync(node, soon()));  // Its server may lag.
    const auto stat = witness.session().exists(node, soon());
    return stat && *stat ? (*stat)->czxid : 0;
  }

  const std::string x = directory + "-x";
  const std::string y = directory + "-y";
};

INSTANTIATE_TEST_SUITE_P(Standalone, MultiLockTest, testing::Values(ServiceKind::kStandalone));
INSTANTIATE_TEST_SUITE_P(Ensemble, MultiLockTest, testing::Values(ServiceKind::kEnsemble));
INSTANTIATE_TEST_SUITE_P(Embedded, MultiLockTest, testing::Values(ServiceKind::kEmbedded));

TEST_P(MultiLockTest, H49_AnUncontendedLockIsOneTransactionInOneFlush) {
  Proxied one = open_proxied(quick(60s));  // Neither ping nor heartbeat comes in between.
  make_both();
  one.proxy->log().clear();

  Lease lease = take_both(one.session);
  ASSERT_TRUE(ok(lease.release(soon())));

  EXPECT_THAT(requests(*one.proxy), ElementsAre(Op::kMulti, Op::kGetChildren, Op::kGetChildren,
                                                Op::kDelete, Op::kDelete));
  const std::vector<TrafficRecord> records = one.proxy->log().records();
  EXPECT_EQ(records[0].flush, records[1].flush);
  EXPECT_EQ(records[0].flush, records[2].flush);
  EXPECT_TRUE(are_quiet());
}

TEST_P(MultiLockTest, TheTokenIsTheTransactionThatMadeAllNodes) {
  Session session = open();
  make_both();
  // Others write all the time, so that a zxid that is not the transaction's own would show.
  std::jthread busy([&, other = open()](const std::stop_token& stop) mutable {
    while (!stop.stop_requested()) static_cast<void>(other.set(x, "", soon()));
  });
  Token last(0);

  for (int i = 0; i < 30; ++i) {
    const Lease lease = take_both(session);
    ASSERT_EQ(lease.nodes().size(), 2U);
    EXPECT_THAT(lease.nodes()[0], HasSubstr(x + "/_c_"));
    EXPECT_THAT(lease.nodes()[1], HasSubstr(y + "/_c_"));
    for (const std::string& node : lease.nodes()) EXPECT_EQ(czxid(node), lease.token().zxid());
    EXPECT_TRUE(ok(lease.check(soon())));
    EXPECT_GT(lease.token(), last);
    last = lease.token();
  }
}

TEST_P(MultiLockTest, H39_MissingDirectoriesAreMade) {
  Session session = open();
  MultiLock lock(session, {x + "/deep/er", y, x + "/deep/est"});

  auto lease = lock.lock(soon());

  ASSERT_TRUE(ok(lease));
  EXPECT_EQ(lease->nodes().size(), 3U);
  EXPECT_EQ(lock.path(), x + "/deep/er, " + y + ", " + x + "/deep/est");
}

TEST_P(MultiLockTest, EachMemberContendsWithTheMutexOfItsDirectory) {
  Lease holder = take(open(), y);
  Waiter multi(both(open()));
  ASSERT_TRUE(witness.queue_reaches(x, 1));
  ASSERT_TRUE(witness.queue_reaches(y, 2));
  Waiter behind(Mutex(open(), x));
  ASSERT_TRUE(witness.queue_reaches(x, 2));
  EXPECT_FALSE(multi.has_answer());

  holder.release();

  ASSERT_TRUE(multi.holds());
  EXPECT_FALSE(behind.has_answer());
  EXPECT_TRUE(fails_with(Mutex(open(), y).try_lock(), Code::kBusy));
  multi.lease().release();
  ASSERT_TRUE(behind.holds());
  behind.lease().release();
  EXPECT_TRUE(are_quiet());
}

TEST_P(MultiLockTest, TryLockIsAllOrNothing) {
  Session session = open();
  for (const std::string& taken : {x, y}) {
    Lease holder = take(open(), taken);
    EXPECT_TRUE(fails_with(both(session).try_lock(), Code::kBusy, taken));
    EXPECT_TRUE(witness.queue_reaches(taken, 1));
    ASSERT_TRUE(ok(holder.release(soon())));
    EXPECT_TRUE(are_quiet());
  }
  EXPECT_TRUE(ok(both(session).try_lock()));
}

TEST_P(MultiLockTest, BadMembersAreRefusedBeforeAnythingIsSent) {
  Proxied one = open_proxied();
  one.proxy->log().clear();

  EXPECT_TRUE(fails_with(MultiLock(one.session, {}).lock(soon()), Code::kInvalidOption));
  EXPECT_TRUE(
      fails_with(MultiLock(one.session, {x, y, x}).lock(soon()), Code::kInvalidOption, x + " is"));
  EXPECT_TRUE(fails_with(MultiLock(one.session, {x, y + "/"}).lock(soon()), Code::kInvalidPath, y));

  ASSERT_TRUE(ok(one.session.sync("/", soon())));
  EXPECT_TRUE(requests(*one.proxy).empty());
}

TEST_P(MultiLockTest, MoreMembersThanFitIntoAFrameAreRefusedBeforeAnythingIsSent) {
  Proxied one = open_proxied();
  one.proxy->log().clear();
  std::vector<Path> many;
  for (int i = 0; i < 10'000; ++i) many.emplace_back(x + "/" + std::to_string(i));

  EXPECT_TRUE(fails_with(MultiLock(one.session, many).lock(soon()), Code::kTooLarge, "10000"));

  ASSERT_TRUE(ok(one.session.sync("/", soon())));
  EXPECT_TRUE(requests(*one.proxy).empty());
}

TEST_P(MultiLockTest, ManyMembersAreStillOneTransaction) {
  Proxied one = open_proxied();
  std::vector<Path> many;
  for (int i = 0; i < 100; ++i) {
    many.emplace_back(x + "-" + std::to_string(i));
    make_node(witness.session(), many.back().text());
  }

  auto lease = MultiLock(one.session, many).lock(soon());

  ASSERT_TRUE(ok(lease));
  EXPECT_EQ(lease->nodes().size(), many.size());
  EXPECT_EQ(count(*one.proxy, Op::kMulti), 1U);
  EXPECT_TRUE(ok(lease->release(soon())));
  EXPECT_TRUE(witness.is_quiet(x + "-99"));
}

TEST_P(MultiLockTest, H49_WhoeverHoldsAMemberAlreadyTimesOutAndLeavesNothing) {
  Session session = open();
  Lease nested = take(session, y);

  EXPECT_TRUE(fails_with(both(session).lock(deadline_in(300ms)), Code::kTimedOut, y));

  EXPECT_TRUE(witness.is_quiet(x));
  EXPECT_TRUE(witness.queue_reaches(y, 1));
}

TEST_P(MultiLockTest, OneSessionHandsOverToItself) {
  Session session = open();
  Lease first = take_both(session);
  Waiter second(MultiLock(session, {y, x}));
  ASSERT_TRUE(witness.queue_reaches(x, 2));

  first.release();

  ASSERT_TRUE(second.holds());
  EXPECT_THAT(second.lease().nodes(), ElementsAre(HasSubstr(y), HasSubstr(x)));
  second.lease().release();
  EXPECT_TRUE(are_quiet());
}

TEST_P(MultiLockTest, H49_MembersInAnyOrderNeverWaitInACircle) {
  const std::string z = directory + "-z";
  std::vector<std::string> order{x, y, z};
  std::map<std::string, Section> sections;
  for (const std::string& one : order) sections[one];
  std::vector<std::jthread> threads;
  std::atomic<int> failures = 0;
  do {
    threads.emplace_back([&, order, session = open()] {
      for (int i = 0; i < 5; ++i) {
        // Now all three, now two of them.
        std::vector<Path> members{order[0], order[1]};
        if (i % 2 == 0) members.emplace_back(order[2]);
        auto lease = MultiLock(session, members).lock(deadline_in(60s));
        if (!lease) {
          ++failures;
          continue;
        }
        for (const Path& one : members) sections[one.text()].enter(*lease);
        pause_between_looks();
        for (const Path& one : members) sections[one.text()].leave();
      }
    });
  } while (std::next_permutation(order.begin(), order.end()));
  threads.clear();

  EXPECT_EQ(failures, 0);
  int holds = 0;
  for (const auto& [one, section] : sections) {
    EXPECT_EQ(section.overlaps(), 0) << one;
    EXPECT_EQ(section.disorders(), 0) << one;
    holds += section.holds();
    EXPECT_TRUE(witness.is_quiet(one));
  }
  EXPECT_EQ(holds, 6 * (3 * 3 + 2 * 2));
}

// ---- One lost means all lost --------------------------------------------------------------------

TEST_P(MultiLockTest, H49_AMemberDeletedByAnotherHandLosesAll) {
  for (const std::size_t robbed : {0U, 1U}) {
    Proxied one = open_proxied(quick(10s));
    Lease lease = take_both(one.session);
    Waiter next(both(open()));
    ASSERT_TRUE(one.proxy->log().wait_for(replies_to(Op::kGetData), 2, soon()));

    ASSERT_TRUE(ok(witness.session().remove(lease.nodes()[robbed], soon())));

    ASSERT_TRUE(eventually([&] { return lease.state() == LeaseState::kLost; }));
    EXPECT_TRUE(eventually([&] { return lease.lost().stop_requested(); }));
    EXPECT_TRUE(next.holds()) << "what was left of it has been given up";
    EXPECT_EQ(lease.release(), Released::kAlreadyOver);
    EXPECT_EQ(one.session.state(), SessionState::kConnected);
    next.lease().release();
    EXPECT_TRUE(are_quiet());
  }
}

TEST_P(MultiLockTest, H49_AMemberRobbedWhileAnotherWaitsFailsAll) {
  Proxied one = open_proxied();
  Lease holder = take(open(), y);
  Waiter multi(both(one.session));
  // Two watches where it waits, and one on the node that is first already.
  ASSERT_TRUE(one.proxy->log().wait_for(replies_to(Op::kGetData), 3, soon()));

  ASSERT_TRUE(ok(witness.session().remove(x + "/" + witness.queue(x)[0], soon())));

  ASSERT_FALSE(multi.holds());
  EXPECT_TRUE(fails_with(multi.answer(), Code::kLost, x));
  EXPECT_TRUE(witness.queue_reaches(y, 1));
  ASSERT_TRUE(ok(holder.release(soon())));
  EXPECT_TRUE(are_quiet());
}

TEST_P(MultiLockTest, H09_ALostLeaseOfALivingSessionGivesUpEveryMember) {
  Proxied one = open_proxied(quick(20s));  // What is left of it behind the lease is for us.
  Lease lease = take_both(one.session);
  one.proxy->hold(Hold::kBoth);
  ASSERT_TRUE(eventually([&] { return lease.state() == LeaseState::kLost; }));
  one.proxy->release();

  ASSERT_TRUE(ok(one.session.sync(x, soon())));
  EXPECT_TRUE(are_quiet());
  EXPECT_EQ(one.session.state(), SessionState::kConnected);
  EXPECT_TRUE(ok(both(one.session).try_lock()));
}

TEST_P(MultiLockTest, H12_AWaiterWhoseSessionIsGoneGetsAnError) {
  Proxied one = open_proxied(quick(10s));
  Lease holder = take(open(), y);
  Waiter multi(both(one.session));
  ASSERT_TRUE(one.proxy->log().wait_for(replies_to(Op::kGetData), 3, soon()));

  one.proxy->hold(Hold::kBoth);
  ASSERT_TRUE(witness.queue_reaches(x, 0, deadline_in(60s)));
  one.proxy->cut_all();
  one.proxy->release();

  ASSERT_FALSE(multi.holds());
  EXPECT_TRUE(fails_with(multi.answer(), Code::kSessionLost));
}

// ---- Faults -------------------------------------------------------------------------------------

TEST_P(MultiLockTest, H01_ATransactionWhoseReplyIsLostIsFoundAndAdopted) {
  Proxied one = open_proxied(quick(60s));
  make_both();
  one.proxy->log().clear();
  one.proxy->cut_after_request(Op::kMulti);

  Lease lease = take_both(one.session);

  EXPECT_EQ(count(*one.proxy, Op::kMulti), 1U);
  EXPECT_EQ(count(*one.proxy, Op::kExists), 2U);
  for (const std::string& node : lease.nodes()) EXPECT_EQ(czxid(node), lease.token().zxid());
  lease.release();
  EXPECT_TRUE(are_quiet());
}

TEST_P(MultiLockTest, H49_ATransactionOfWhichOnlyAPartIsFoundIsGivenUp) {
  for (const std::string& robbed : {x, y}) {
    Proxied one = open_proxied(quick(60s));
    make_node(witness.session(), robbed);
    one.proxy->log().clear();
    const std::string& other = robbed == x ? y : x;
    if (!*witness.session().exists(other, soon())) make_node(witness.session(), other);
    one.proxy->refuse();
    const int cut = one.proxy->cut_after_request(Op::kMulti);
    Waiter multi(both(one.session));
    ASSERT_TRUE(one.proxy->wait_until_fired(cut));
    ASSERT_TRUE(witness.queue_reaches(robbed, 1));

    ASSERT_TRUE(ok(witness.session().remove(robbed + "/" + witness.queue(robbed)[0], soon())));
    one.proxy->accept();

    ASSERT_FALSE(multi.holds());
    EXPECT_TRUE(fails_with(multi.answer(), Code::kLost, robbed));
    EXPECT_TRUE(are_quiet());
    ASSERT_TRUE(ok(witness.session().remove(x, soon())));
    ASSERT_TRUE(ok(witness.session().remove(y, soon())));
  }
}

class MultiLockSweepTest : public SweepTest {
 protected:
  void go_through(const std::string& path) override {
    const std::string x = path + "-x";
    const std::string y = path + "-y";
    Waiter a(MultiLock(first, {x, y}));
    ASSERT_NO_FATAL_FAILURE(enter(a));
    Waiter b(MultiLock(second, {y, x}));
    ASSERT_TRUE(witness.queue_reaches(x, 2));
    ASSERT_TRUE(witness.is_watched(x + "/" + witness.queue(x).at(0)));
    Waiter c(MultiLock(first, {x, y}));
    ASSERT_TRUE(witness.queue_reaches(x, 3));
    ASSERT_TRUE(witness.queue_reaches(y, 3));
    ASSERT_NO_FATAL_FAILURE(give_up(c));
    EXPECT_FALSE(b.has_answer());

    ASSERT_NO_FATAL_FAILURE(hand_on(a, b));
    let_go(b);

    EXPECT_TRUE(witness.is_quiet(x));
    EXPECT_TRUE(witness.is_quiet(y));
  }
};

INSTANTIATE_TEST_SUITE_P(Standalone, MultiLockSweepTest, testing::Values(ServiceKind::kStandalone));
INSTANTIATE_TEST_SUITE_P(Ensemble, MultiLockSweepTest, testing::Values(ServiceKind::kEnsemble));
INSTANTIATE_TEST_SUITE_P(Embedded, MultiLockSweepTest, testing::Values(ServiceKind::kEmbedded));

TEST_P(MultiLockSweepTest, H01_Multi) { sweep(Op::kMulti); }
TEST_P(MultiLockSweepTest, H71_List) { sweep(Op::kGetChildren); }
TEST_P(MultiLockSweepTest, H39_Container) { sweep(Op::kCreateContainer); }
TEST_P(MultiLockSweepTest, H26_Watch) { sweep(Op::kGetData); }
TEST_P(MultiLockSweepTest, H21_Delete) { sweep(Op::kDelete); }

// These come only after another fault. The first two transactions find a directory missing.
TEST_P(MultiLockSweepTest, H02_SyncOfASearch) {
  sweep(Op::kSync, [this] { proxy.cut_after_request({Op::kMulti, 3}); });
}
TEST_P(MultiLockSweepTest, H04_LookAtWhatASearchHasFound) {
  sweep(Op::kExists, [this] { proxy.cut_after_request({Op::kMulti, 3}); });
}

// ---- Giving up ----------------------------------------------------------------------------------

enum class Link { kFair, kCut };

class MultiLockCancelTest : public MultiLockTest {
 protected:
  /// Stops at a message on the way, gives up there, and looks at what is left.
  void give_up_at(Op op, int nth, bool at_reply, Link weather) {
    SCOPED_TRACE(testing::Message()
                 << (at_reply ? "reply " : "request ") << nth << " of op " << static_cast<int>(op));
    Lease holder = take(keeper, y);
    const Match match(op, nth);
    const int stop = at_reply ? one.proxy->stop_at_reply(match) : one.proxy->stop_at_request(match);
    Waiter waiter(both(one.session));
    ASSERT_TRUE(one.proxy->wait_until_fired(stop));

    waiter.cancel();

    ASSERT_FALSE(waiter.holds());
    EXPECT_TRUE(fails_with(waiter.answer(), Code::kCancelled));
    if (weather == Link::kCut) one.proxy->cut_all();
    one.proxy->release();
    one.proxy->disarm_all();
    EXPECT_TRUE(witness.is_quiet(x));
    EXPECT_TRUE(witness.queue_reaches(y, 1));
    // The holder's own does not count: it watches its node from the first heartbeat on.
    EXPECT_TRUE(eventually([&] { return service().watches_of(id) == 0; }));
    ASSERT_TRUE(ok(holder.release(soon())));
    EXPECT_TRUE(are_quiet());
    EXPECT_EQ(one.session.id(), id) << "nothing was left to the session's end";
  }

  void give_up_everywhere(Link weather) {
    for (const bool at_reply : {false, true}) {
      give_up_at(Op::kMulti, 1, at_reply, weather);
      for (const int nth : {1, 2}) give_up_at(Op::kGetChildren, nth, at_reply, weather);
      for (const int nth : {1, 2, 3}) give_up_at(Op::kGetData, nth, at_reply, weather);
    }
  }

  Session keeper = open(quick(60s));
  Proxied one = open_proxied(quick(60s));
  const std::int64_t id = one.session.id();
};

INSTANTIATE_TEST_SUITE_P(Standalone, MultiLockCancelTest,
                         testing::Values(ServiceKind::kStandalone));
INSTANTIATE_TEST_SUITE_P(Ensemble, MultiLockCancelTest, testing::Values(ServiceKind::kEnsemble));
INSTANTIATE_TEST_SUITE_P(Embedded, MultiLockCancelTest, testing::Values(ServiceKind::kEmbedded));

TEST_P(MultiLockCancelTest, H06_AStopRequestAtAnyStepLeavesNothing) {
  make_both();
  give_up_everywhere(Link::kFair);
}

TEST_P(MultiLockCancelTest, H06_AStopRequestAtAnyStepLeavesNothingThoughTheConnectionBreaks) {
  make_both();
  give_up_everywhere(Link::kCut);
}

TEST_P(MultiLockCancelTest, H51_ADeadlineIsKeptWhileNothingCanBeSent) {
  one.proxy->refuse();
  one.proxy->cut_all();

  EXPECT_TRUE(fails_with(both(one.session).lock(deadline_in(200ms)), Code::kTimedOut));

  one.proxy->accept();
  ASSERT_TRUE(ok(one.session.sync("/", soon())));
  EXPECT_EQ(count(*one.proxy, Op::kMulti), 0U) << "it was taken back in time";
  EXPECT_TRUE(are_quiet());
}

}  // namespace
}  // namespace latchkey::test_support
