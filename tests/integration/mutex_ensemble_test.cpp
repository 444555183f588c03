#include <algorithm>

#include <gmock/gmock.h>

#include "integration/mutex_fixture.hpp"
#include "integration/own_server.hpp"

/// What only several servers can do to a lock, and a server that has lost its memory.
namespace latchkey::test_support {
namespace {

using wire::Op;

class MutexEnsembleTest : public testing::Test {
 protected:
  [[nodiscard]] Session open(std::chrono::milliseconds timeout = 60s) {
    return open_session(ensemble.connect_string(), quick(timeout));
  }
  [[nodiscard]] Session open_at(std::size_t member, std::chrono::milliseconds timeout = 60s) {
    return open_session(ensemble.connect_string(member), quick(timeout));
  }
  /// Someone holds and someone waits; after the blow the one must still hold and the other get it.
  void expect_to_survive(Session& holding, Session& waiting, const std::function<void()>& blow) {
    Witness witness(shared_service(ServiceKind::kEnsemble));
    Lease lease = take(holding, directory);
    Waiter waiter(Mutex(waiting, directory));
    ASSERT_TRUE(witness.queue_reaches(directory, 2));
    ASSERT_TRUE(eventually([&] { return witness.watches_below(directory) >= 2; }));
    // Proven just now: the servers may take a while.
    ASSERT_TRUE(ok(holding.sync("/", soon())));

    blow();

    ASSERT_TRUE(eventually([&] { return lease.state() == LeaseState::kHeld; }));
    EXPECT_FALSE(waiter.has_answer());
    ASSERT_TRUE(ok(lease.release(soon())));
    ASSERT_TRUE(waiter.holds());
    EXPECT_GT(waiter.lease().token(), lease.token());
    ASSERT_TRUE(ok(waiter.lease().release(soon())));
    EXPECT_TRUE(witness.is_quiet(directory));
  }

  Ensemble& ensemble = shared_ensemble();
  const std::string directory = fresh_path();
};

TEST_F(MutexEnsembleTest, HoldsAndWaitsSurviveTheDeathOfTheLeader) {
  Session holding = open();
  Session waiting = open();
  expect_to_survive(holding, waiting, [&] {
    ensemble.member(ensemble.leader()).kill();
    ensemble.wait_for_quorum();
    ASSERT_TRUE(ok(holding.sync("/", soon())));
  });
}

TEST_F(MutexEnsembleTest, AHoldMovesWithItsSessionWhenItsFollowerStops) {
  const std::size_t follower = ensemble.followers().at(0);
  const std::size_t other = ensemble.followers().at(1);
  FaultProxy proxy(ensemble.connect_string(follower));
  Session holding = open_session(proxy.connect_string(), quick(60s));
  Session waiting = open_at(other);
  expect_to_survive(holding, waiting, [&] {
    proxy.retarget(ensemble.connect_string(other));
    ensemble.member(follower).stop();
    ASSERT_TRUE(ok(holding.sync("/", soon())));
    EXPECT_TRUE(eventually([&] { return proxy.connections_open() == 1; }));
  });
}

TEST_F(MutexEnsembleTest, AWaitMovesWithItsSessionWhenItsFollowerStops) {
  const std::size_t follower = ensemble.followers().at(0);
  FaultProxy proxy(ensemble.connect_string(follower));
  Session holding = open_at(ensemble.leader());
  Session waiting = open_session(proxy.connect_string(), quick(30s));
  expect_to_survive(holding, waiting, [&] {
    proxy.retarget(ensemble.connect_string(ensemble.leader()));
    ensemble.member(follower).kill();
    ASSERT_TRUE(proxy.log().wait_for(replies_to(Op::kSetWatches), 1, soon()));
  });
}

TEST_F(MutexEnsembleTest, HoldsAndWaitsSurviveARestartOfOneServerAfterTheOther) {
  Session holding = open();
  Session waiting = open();
  expect_to_survive(holding, waiting, [&] {
    ensemble.rolling_restart();
    ASSERT_TRUE(ok(holding.sync("/", soon())));
    ASSERT_TRUE(ok(waiting.sync("/", soon())));
  });
}

TEST_F(MutexEnsembleTest, H11_AHolderBehindAFollowerThatIsCutOffLosesBeforeAnotherHolds) {
  const std::size_t cut = ensemble.followers().at(0);
  const std::size_t other = ensemble.followers().at(1);
  Session behind = open_at(cut, 8s);
  Session current = open_at(other);
  Session reader = open_at(cut);
  Lease lease = take(behind, directory);
  std::atomic<Instant::rep> lost_at = 0;
  const std::stop_callback on_loss(lease.lost(),
                                   [&] { lost_at = BootClock::now().time_since_epoch().count(); });
  Waiter next(Mutex(current, directory));
  ASSERT_TRUE(eventually([&] {
    const auto queue = current.children(directory, soon());
    return queue && queue->names.size() == 2;
  }));

  ensemble.cut_from_leader(cut);

  ASSERT_TRUE(next.holds());
  // That is the trap: where the old holder looks, its node is still there.
  EXPECT_TRUE(reader.exists(lease.node(), soon())->has_value());
  ASSERT_TRUE(eventually([&] { return lost_at != 0; }));
  EXPECT_LT(Instant(Duration(lost_at.load())), next.answered_at());
  EXPECT_EQ(lease.state(), LeaseState::kLost);
  ensemble.heal(cut);
}

TEST_F(MutexEnsembleTest, H32_AWaiterThatMovesToALaggingServerWaitsOnAndGetsIt) {
  const std::size_t behind = ensemble.followers().at(0);
  const std::size_t current = ensemble.followers().at(1);
  FaultProxy proxy(ensemble.connect_string(current));
  Session waiting = open_session(proxy.connect_string(), quick(30s));
  Session holding = open_at(current);
  Lease holder = take(holding, directory);
  Waiter second(Mutex(waiting, directory));
  ASSERT_TRUE(proxy.log().wait_for(replies_to(Op::kGetData), 2, soon()));

  // The event is on its way when the connection breaks; the next server has not heard of it.
  ensemble.cut_from_leader(behind);
  const int cut = proxy.cut_before_reply(Op::kNotification);
  proxy.retarget(ensemble.connect_string(behind));
  ASSERT_TRUE(ok(holder.release(soon())));
  ASSERT_TRUE(proxy.wait_until_fired(cut));
  ensemble.heal(behind);

  EXPECT_TRUE(second.holds());
}

class MutexWipedTest : public testing::TestWithParam<ServiceKind> {};

INSTANTIATE_TEST_SUITE_P(Standalone, MutexWipedTest, testing::Values(ServiceKind::kStandalone));
INSTANTIATE_TEST_SUITE_P(Embedded, MutexWipedTest, testing::Values(ServiceKind::kEmbedded));

TEST_P(MutexWipedTest, H20_AServerThatWasWipedEndsHoldsOnTimeAndWaitsInTheEnd) {
  const std::string directory = fresh_path();
  constexpr auto kTimeout = 8s;
  const auto server = own_server(GetParam());
  server->start();
  Session session = open_session(server->connect_string(), quick(kTimeout));
  Lease lease = take(session, directory);
  Waiter waiter(Mutex(session, directory));
  std::stop_token lost = lease.lost();
  // So that the new server's numbers are behind what the client has seen.
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(ok(session.set("/", "x", soon())));

  server->wipe();
  const Instant wiped = BootClock::now();
  EXPECT_TRUE(eventually([&] { return lost.stop_requested(); }));
  EXPECT_LT(BootClock::now() - wiped, kTimeout);
  server->start();

  // Three time-outs without a server that takes the session back.
  ASSERT_FALSE(waiter.holds(deadline_in(60s)));
  EXPECT_TRUE(fails_with(waiter.answer(), Code::kSessionLost, directory));
  Session fresh = open_session(server->connect_string(), patient());
  EXPECT_TRUE(ok(Mutex(fresh, directory).try_lock()));
}

}  // namespace
}  // namespace latchkey::test_support
