#include "latchkey/name_lock.hpp"

#include <thread>

#include <gmock/gmock.h>

#include "integration/sweep_fixture.hpp"
#include "latchkey/inspect.hpp"

/// The lock that is one node (M8).
namespace latchkey::test_support {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using wire::Op;

class NameLockTest : public MutexTest {
 protected:
  [[nodiscard]] NameLock lock_of(const Session& session) const { return NameLock(session, node); }
  [[nodiscard]] Lease take_name(const Session& session) const {
    auto lease = lock_of(session).lock(soon());
    if (!lease) throw std::runtime_error(lease.error().message());
    return std::move(*lease);
  }
  [[nodiscard]] std::optional<Stat> stat() {
    static_cast<void>(witness.session().sync(node, soon()));
    return *witness.synced().exists(node, soon());
  }
  [[nodiscard]] bool is_free() {
    return eventually([&] { return !stat().has_value(); });
  }

  const std::string node = directory + "/name";
};

INSTANTIATE_TEST_SUITE_P(Standalone, NameLockTest, testing::Values(ServiceKind::kStandalone));
INSTANTIATE_TEST_SUITE_P(Ensemble, NameLockTest, testing::Values(ServiceKind::kEnsemble));
INSTANTIATE_TEST_SUITE_P(Embedded, NameLockTest, testing::Values(ServiceKind::kEmbedded));

TEST_P(NameLockTest, AGuardIsRefusedBecauseTheNameReturns) {
  auto lease = NameLock(open(), node).lock(soon());
  ASSERT_TRUE(ok(lease));
  Multi multi;
  EXPECT_TRUE(fails_with(lease->guard(multi), Code::kInvalidOption, "token"));
  EXPECT_TRUE(ok(lease->check(soon())));
}

TEST_P(NameLockTest, AnUncontendedLockIsOneCreateAndItsReleaseOneDelete) {
  Proxied one = open_proxied(quick(60s));
  make_node(witness.session(), directory);
  one.proxy->log().clear();

  Lease lease = take_name(one.session);
  EXPECT_EQ(lease.node(), node);
  EXPECT_EQ(stat()->czxid, lease.token().zxid());
  EXPECT_EQ(stat()->ephemeral_owner, one.session.id());
  EXPECT_TRUE(ok(lease.check(soon())));
  one.proxy->log().clear();
  ASSERT_TRUE(ok(lease.release(soon())));

  EXPECT_THAT(requests(*one.proxy), ElementsAre(Op::kDelete));
  EXPECT_TRUE(is_free());
}

TEST_P(NameLockTest, ItCostsNoListAndNoWatch) {
  Proxied one = open_proxied(quick(60s));
  make_node(witness.session(), directory);
  one.proxy->log().clear();

  ASSERT_TRUE(ok(take_name(one.session).release(soon())));

  EXPECT_THAT(requests(*one.proxy), ElementsAre(Op::kCreate2, Op::kDelete));
}

TEST_P(NameLockTest, H39_MissingLevelsAreMade) {
  Session session = open();
  auto lease = NameLock(session, node + "/deep/er").lock(soon());
  EXPECT_TRUE(ok(lease));
}

TEST_P(NameLockTest, TheNodeSaysWhoHoldsIt) {
  Session session = open();
  auto lease = NameLock(session, node, {.reason = "nightly run"}).lock(soon());
  ASSERT_TRUE(ok(lease));

  const auto data = witness.synced().get(node, soon());

  ASSERT_TRUE(ok(data));
  EXPECT_THAT(data->data, HasSubstr("reason=nightly run\n"));
  EXPECT_THAT(data->data, HasSubstr("\nattempt="));
}

TEST_P(NameLockTest, TryLockIsBusyWhileItExists) {
  Session session = open();
  Lease holder = take_name(open());

  EXPECT_TRUE(fails_with(lock_of(session).try_lock(), Code::kBusy, node));

  ASSERT_TRUE(ok(holder.release(soon())));
  EXPECT_TRUE(ok(lock_of(session).try_lock()));
}

TEST_P(NameLockTest, APlainNodeIsSomebodyElses) {
  Session session = open();
  make_node(witness.session(), directory);
  make_node(witness.session(), node);
  EXPECT_TRUE(fails_with(lock_of(session).try_lock(), Code::kBusy, node));
  Waiter waiter(lock_of(session));
  ASSERT_TRUE(eventually([&] { return witness.watches_below(node) == 1; }));

  ASSERT_TRUE(ok(witness.session().remove(node, soon())));

  EXPECT_TRUE(waiter.holds());
}

TEST_P(NameLockTest, H07_TwoAttemptsOfOneSessionExcludeEachOther) {
  Session session = open();
  Lease first = take_name(session);
  EXPECT_TRUE(fails_with(lock_of(session).try_lock(), Code::kBusy));
  Waiter second(lock_of(session));
  ASSERT_TRUE(eventually([&] { return witness.watches_below(node) > 0; }));

  first.release();

  ASSERT_TRUE(second.holds());
  EXPECT_GT(second.lease().token(), first.token());
  second.lease().release();
  EXPECT_TRUE(is_free());
  EXPECT_TRUE(witness.is_quiet(directory));
}

TEST_P(NameLockTest, ATimeOutSaysWhatWasWaitedFor) {
  Session session = open();
  const Lease first = take_name(session);

  EXPECT_TRUE(fails_with(lock_of(open()).lock(deadline_in(10s)), Code::kTimedOut,
                         "still waiting for " + node + " to go"));
}

TEST_P(NameLockTest, ManyWhoRaceNeverHoldTogether) {
  Section section;
  std::atomic<int> failures = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 5; ++i) {
    threads.emplace_back([&, session = open()] {
      for (int hold = 0; hold < 6; ++hold) {
        auto lease = lock_of(session).lock(deadline_in(60s));
        if (!lease) {
          ++failures;
          continue;
        }
        section.enter(*lease);
        pause_between_looks();
        section.leave();
      }
    });
  }
  threads.clear();

  EXPECT_EQ(failures, 0);
  EXPECT_EQ(section.holds(), 30);
  EXPECT_EQ(section.overlaps(), 0);
  EXPECT_EQ(section.disorders(), 0);
  EXPECT_TRUE(witness.is_quiet(directory));
}

TEST_P(NameLockTest, ABadPathIsRefusedBeforeAnythingIsSent) {
  Proxied one = open_proxied();
  one.proxy->log().clear();
  for (const char* bad : {"", "name", "/", "/a/"}) {
    EXPECT_TRUE(fails_with(NameLock(one.session, bad).lock(soon()), Code::kInvalidPath)) << bad;
  }
  ASSERT_TRUE(ok(one.session.sync("/", soon())));
  EXPECT_TRUE(requests(*one.proxy).empty());
}

TEST_P(NameLockTest, ATopLevelNodeNeedsNoDirectory) {
  Session session = open();
  NameLock lock(session, directory);
  ASSERT_TRUE(ok(lock.lock(soon())));
  EXPECT_TRUE(eventually([&] { return !witness.synced().exists(directory, soon())->has_value(); }));
}

TEST_P(NameLockTest, SomebodyMayAskTheHolderToLetGo) {
  Session session = open(quick(60s));
  Lease lease = take_name(session);
  const std::stop_token asked = lease.release_requested();

  ASSERT_TRUE(ok(witness.session().set(node, "__REVOKE__", soon())));

  ASSERT_TRUE(eventually([&] { return asked.stop_requested(); }));
  EXPECT_EQ(lease.state(), LeaseState::kHeld) << "a wish, and the node is still known as ours";
  EXPECT_TRUE(ok(lease.release(soon())));
}

// ---- Loss ---------------------------------------------------------------------------------------

TEST_P(NameLockTest, ANodeDeletedByAnotherHandIsALossAtOnce) {
  make_node(witness.session(), directory);  // A container would go between the two nodes.
  Proxied one = open_proxied(quick(60s));
  Lease lease = take_name(one.session);
  static_cast<void>(lease.release_requested());  // It watches its node from now on.
  ASSERT_TRUE(one.proxy->log().wait_for(replies_to(Op::kGetData), 1, soon()));

  ASSERT_TRUE(ok(witness.session().remove(node, soon())));
  make_node(witness.session(), node, "another's", Lifetime::kEphemeral);

  ASSERT_TRUE(eventually([&] { return lease.state() == LeaseState::kLost; }));
  EXPECT_EQ(lease.release(), Released::kAlreadyOver);
  ASSERT_TRUE(ok(one.session.sync(node, soon())));
  EXPECT_EQ(count(*one.proxy, Op::kDelete), 0U);
  EXPECT_EQ(stat()->ephemeral_owner, witness.session().id());
  ASSERT_TRUE(ok(witness.session().remove(node, soon())));
}

TEST_P(NameLockTest, H32_ANodeReplacedWhileWeWereAwayIsALoss) {
  make_node(witness.session(), directory);  // A container would go between the two nodes.
  Proxied one = open_proxied(quick(60s));
  Lease lease = take_name(one.session);
  static_cast<void>(lease.release_requested());  // It watches its node from now on.
  ASSERT_TRUE(one.proxy->log().wait_for(replies_to(Op::kGetData), 1, soon()));
  one.proxy->refuse();
  one.proxy->cut_all();

  ASSERT_TRUE(ok(witness.session().remove(node, soon())));
  make_node(witness.session(), node, "another's", Lifetime::kEphemeral);
  one.proxy->accept();

  ASSERT_TRUE(eventually([&] { return lease.state() == LeaseState::kLost; }));
  ASSERT_TRUE(ok(one.session.sync(node, soon())));
  EXPECT_EQ(count(*one.proxy, Op::kDelete), 0U);
  ASSERT_TRUE(ok(witness.session().remove(node, soon())));
}

TEST_P(NameLockTest, H09_ALostLeaseOfALivingSessionIsTakenAway) {
  Proxied one = open_proxied(quick(20s));  // What is left of it behind the lease is for us.
  Lease lease = take_name(one.session);
  one.proxy->hold(Hold::kBoth);
  ASSERT_TRUE(eventually([&] { return lease.state() == LeaseState::kLost; }));
  one.proxy->release();

  ASSERT_TRUE(ok(one.session.sync(node, soon())));
  EXPECT_TRUE(is_free());
  EXPECT_EQ(one.session.state(), SessionState::kConnected);
  EXPECT_TRUE(ok(lock_of(one.session).try_lock()));
}

TEST_P(NameLockTest, H12_AWaiterWhoseSessionIsGoneGetsAnError) {
  Proxied one = open_proxied(quick(10s));
  Lease holder = take_name(open());
  Waiter waiter(lock_of(one.session));
  ASSERT_TRUE(one.proxy->log().wait_for(replies_to(Op::kGetData), 1, soon()));
  one.proxy->hold(Hold::kBoth);
  ASSERT_TRUE(eventually([&] { return service().connections_of(one.session.id()) == 0; },
                         deadline_in(60s)));
  one.proxy->cut_all();
  one.proxy->release();

  ASSERT_FALSE(waiter.holds());
  EXPECT_TRUE(fails_with(waiter.answer(), Code::kSessionLost, node));
}

// ---- The name returns ---------------------------------------------------------------------------

TEST_P(NameLockTest, H22_ALostDeleteIsNotRepeatedOnceAnotherHasTheName) {
  Proxied one = open_proxied(quick(60s));
  Lease lease = take_name(one.session);
  one.proxy->refuse();
  const int cut = one.proxy->cut_after_request(Op::kDelete);
  lease.release();
  ASSERT_TRUE(one.proxy->wait_until_fired(cut));

  Lease next = take_name(open());
  one.proxy->accept();
  ASSERT_TRUE(one.proxy->log().wait_for(replies_to(Op::kGetData), 1, soon()));
  ASSERT_TRUE(ok(one.session.sync(node, soon())));

  EXPECT_EQ(count(*one.proxy, Op::kDelete), 1U);
  EXPECT_EQ(stat()->czxid, next.token().zxid());
  EXPECT_TRUE(ok(next.check(soon())));
}

TEST_P(NameLockTest, H21_ADeleteThatNeverArrivedIsSentAgain) {
  Proxied one = open_proxied(quick(60s));
  Lease lease = take_name(one.session);
  const int cut = one.proxy->cut_before_request(Op::kDelete);

  EXPECT_TRUE(ok(lease.release(soon())));

  EXPECT_TRUE(one.proxy->wait_until_fired(cut));
  EXPECT_TRUE(is_free());
}

TEST_P(NameLockTest, H01_ACreateWhoseReplyIsLostIsFoundAndAdopted) {
  Proxied one = open_proxied(quick(60s));
  make_node(witness.session(), directory);
  one.proxy->log().clear();
  one.proxy->cut_after_request(Op::kCreate2);

  Lease lease = take_name(one.session);

  EXPECT_THAT(requests(*one.proxy), ElementsAre(Op::kCreate2, Op::kSync, Op::kGetData));
  EXPECT_EQ(stat()->czxid, lease.token().zxid());
}

TEST_P(NameLockTest, H07_ALostCreateIsNotMistakenForThatOfAnotherAttempt) {
  Proxied one = open_proxied(quick(60s));
  Lease holder = take_name(one.session);
  one.proxy->cut_after_request(Op::kCreate2);

  Waiter second(lock_of(one.session));
  ASSERT_TRUE(one.proxy->log().wait_for(replies_to(Op::kGetData), 1, soon()));
  EXPECT_FALSE(second.holds(deadline_in(100ms)));

  holder.release();
  ASSERT_TRUE(second.holds());
}

// ---- Faults and giving up -----------------------------------------------------------------------

class NameLockSweepTest : public SweepTest {
 protected:
  void go_through(const std::string& path) override {
    const std::string node = path + "/name";
    Waiter a(NameLock(first, node));
    ASSERT_NO_FATAL_FAILURE(enter(a));
    Waiter b(NameLock(second, node));
    ASSERT_TRUE(eventually([&] { return witness.watches_below(node) >= 1; }));
    Waiter c(NameLock(first, node));
    ASSERT_NO_FATAL_FAILURE(give_up(c));
    EXPECT_FALSE(b.has_answer());

    ASSERT_NO_FATAL_FAILURE(hand_on(a, b));
    let_go(b);

    EXPECT_TRUE(eventually([&] { return !witness.synced().exists(node, soon())->has_value(); }));
    EXPECT_TRUE(eventually([&] { return witness.watches_below(node) == 0; }));
  }
};

INSTANTIATE_TEST_SUITE_P(Standalone, NameLockSweepTest, testing::Values(ServiceKind::kStandalone));
INSTANTIATE_TEST_SUITE_P(Ensemble, NameLockSweepTest, testing::Values(ServiceKind::kEnsemble));
INSTANTIATE_TEST_SUITE_P(Embedded, NameLockSweepTest, testing::Values(ServiceKind::kEmbedded));

TEST_P(NameLockSweepTest, H01_Create) { sweep(Op::kCreate2); }
TEST_P(NameLockSweepTest, H39_Container) { sweep(Op::kCreateContainer); }
TEST_P(NameLockSweepTest, H26_Watch) { sweep(Op::kGetData); }
TEST_P(NameLockSweepTest, H21_Delete) { sweep(Op::kDelete); }
// These come only after another fault. The first create of all finds no directory.
TEST_P(NameLockSweepTest, H02_SyncOfASearch) {
  sweep(Op::kSync, [this] { proxy.cut_after_request({Op::kCreate2, 2}); });
}
TEST_P(NameLockSweepTest, H21_SyncAfterALostDelete) {
  sweep(Op::kSync, [this] { proxy.cut_before_request(Op::kDelete); });
}

TEST_P(NameLockTest, H06_AStopRequestAtAnyStepLeavesNothing) {
  Proxied one = open_proxied(quick(60s));
  Session keeper = open();
  make_node(witness.session(), directory);
  for (const bool cut : {false, true}) {
    for (const Op op : {Op::kCreate2, Op::kGetData}) {
      for (const bool at_reply : {false, true}) {
        SCOPED_TRACE(testing::Message() << static_cast<int>(op) << at_reply << cut);
        std::optional<Lease> holder;
        if (op == Op::kGetData) holder.emplace(take_name(keeper));
        const int stop = at_reply ? one.proxy->stop_at_reply(op) : one.proxy->stop_at_request(op);
        Waiter waiter(lock_of(one.session));
        ASSERT_TRUE(one.proxy->wait_until_fired(stop));

        waiter.cancel();

        ASSERT_FALSE(waiter.holds());
        EXPECT_TRUE(fails_with(waiter.answer(), Code::kCancelled, node));
        if (cut) one.proxy->cut_all();
        one.proxy->release();
        one.proxy->disarm_all();
        if (holder) holder->release();
        EXPECT_TRUE(is_free());
        EXPECT_TRUE(eventually([&] { return witness.watches_below(node) == 0; }));
      }
    }
  }
}

TEST_P(NameLockTest, H51_ADeadlineIsKeptWhileNothingCanBeSent) {
  Proxied one = open_proxied(quick(60s));
  one.proxy->refuse();
  one.proxy->cut_all();

  EXPECT_TRUE(fails_with(lock_of(one.session).lock(deadline_in(200ms)), Code::kTimedOut, node));

  one.proxy->accept();
  ASSERT_TRUE(ok(one.session.sync("/", soon())));
  EXPECT_EQ(count(*one.proxy, Op::kCreate2), 0U) << "it was taken back in time";
}

}  // namespace
}  // namespace latchkey::test_support
