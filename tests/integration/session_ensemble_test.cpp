#include <gmock/gmock.h>

#include "integration/own_server.hpp"
#include "latchkey/mutex.hpp"
#include "support/raw_client.hpp"

/// What only several servers can do: lose a leader, lag behind, hand a session on.
namespace latchkey::test_support {
namespace {

using testing::ElementsAre;
using wire::Op;

TEST(SessionEnsemble, SurvivesTheDeathOfTheLeader) {
  Ensemble& ensemble = shared_ensemble();
  const std::size_t leader = ensemble.leader();
  Session session = open_session(ensemble.connect_string(), quick(30s));
  const std::string path = fresh_path();
  make_node(session, path, "mine", Lifetime::kEphemeral);
  const std::int64_t id = session.id();

  ensemble.member(leader).kill();

  // Until a new leader is there connections break again and again.
  ASSERT_TRUE(eventually([&] { return bool(session.set(path, "later", soon())); }));
  EXPECT_EQ(session.id(), id);
  EXPECT_EQ(session.get(path, soon())->stat.ephemeral_owner, id);
}

TEST(SessionEnsemble, LeavesAFollowerThatWasStoppedAndKeepsItsNodes) {
  Ensemble& ensemble = shared_ensemble();
  const std::size_t follower = ensemble.followers().at(0);
  const std::size_t other = ensemble.leader();
  FaultProxy proxy(ensemble.connect_string(follower));
  States states;
  Session session = open_session(proxy.connect_string() + "," + ensemble.connect_string(other),
                                 watched(states, quick(12s)));
  const std::string path = fresh_path();
  make_node(session, path, "mine", Lifetime::kEphemeral);
  proxy.cut_all();  // Half of the runs start at the other server; now nearly all are here.

  ensemble.member(follower).pause();
  const auto node = session.get(path, soon());

  ASSERT_TRUE(ok(node));
  EXPECT_EQ(node->stat.ephemeral_owner, session.id());
}

TEST(SessionEnsemble, MovesFromServerToServerWithWatchesAndNodes) {
  Ensemble& ensemble = shared_ensemble();
  FaultProxy proxy(ensemble.connect_string(0));
  Session session = open_session(proxy.connect_string(), quick(10s));
  Session writer = open_session(ensemble.connect_string(), quick(10s));
  const std::string path = fresh_path();
  make_node(session, path, "0", Lifetime::kEphemeral);
  Events events;

  for (std::size_t i = 1; i < 4; ++i) {
    ASSERT_TRUE(ok(session.get(path, soon(), note(events))));
    proxy.retarget(ensemble.connect_string(i % 3));
    proxy.cut_all();
    ASSERT_TRUE(ok(session.sync(path, soon())));
    ASSERT_TRUE(ok(writer.sync(path, soon())));
    ASSERT_TRUE(ok(writer.set(path, std::to_string(i), soon())));
    ASSERT_TRUE(events.wait_for(i));
  }

  EXPECT_EQ(session.get(path, soon())->stat.ephemeral_owner, session.id());
  EXPECT_EQ(proxy.log().count([](const TrafficRecord& record) {
    return record.op == Op::kNotification && record.direction == Direction::kToClient;
  }),
            3U);
}

TEST(SessionEnsemble, SyncShowsWhatAnotherServerHasAcknowledged) {
  Ensemble& ensemble = shared_ensemble();
  const auto followers = ensemble.followers();
  Session here = open_session(ensemble.connect_string(followers.at(0)));
  Session there = open_session(ensemble.connect_string(followers.at(1)));
  const std::string path = fresh_path();
  make_node(there, path);

  for (int i = 0; i < 50; ++i) {
    const std::string data = std::to_string(i);
    ASSERT_TRUE(ok(there.set(path, data, soon())));
    here.async(Sync{path}, soon(), [](const auto&) {});
    EXPECT_EQ(here.get(path, soon())->data, data);
  }
}

TEST(SessionEnsemble, ARollingRestartCostsNoSession) {
  Ensemble& ensemble = shared_ensemble();
  States states;
  Session session = open_session(ensemble.connect_string(), watched(states, quick(40s)));
  const std::string path = fresh_path();
  make_node(session, path, "mine", Lifetime::kEphemeral);
  const std::int64_t id = session.id();

  ensemble.rolling_restart();

  ASSERT_TRUE(eventually([&] { return bool(session.set(path, "x", soon())); }));
  EXPECT_EQ(session.id(), id);
  EXPECT_TRUE(reaches(states, kSuspended));
}

TEST(SessionEnsemble, H11_AFollowerCutFromItsLeaderDoesNotKeepALeaseAlive) {
  Ensemble& ensemble = shared_ensemble();
  const std::size_t follower = ensemble.followers().at(0);
  Session holder = open_session(ensemble.connect_string(follower), quick(6s));
  Session idle = open_session(ensemble.connect_string(follower), quick(20s));
  const std::string path = fresh_path();
  Mutex mutex(holder, path);
  auto lease = mutex.lock(soon());
  ASSERT_TRUE(ok(lease));

  ensemble.cut_from_leader(follower);

  // The follower goes on answering reads, and the lock's node is there to see all the while.
  ASSERT_TRUE(eventually([&] { return lease->state() == LeaseState::kLost; }));
  const auto own = idle.exists(lease->node(), soon());
  ASSERT_TRUE(ok(own));
  EXPECT_TRUE(own->has_value());
  EXPECT_TRUE(lease->lost().stop_requested() ||
              eventually([&] { return lease->lost().stop_requested(); }));
  ensemble.heal(follower);
}

TEST(SessionEnsemble, H11_HeartbeatsGoThroughTheLeaderWhileSomethingIsHeld) {
  Ensemble& ensemble = shared_ensemble();
  FaultProxy proxy(ensemble.connect_string(ensemble.followers().at(0)));
  Session session = open_session(proxy.connect_string(), quick(12s));
  Mutex mutex(session, fresh_path());
  auto lease = mutex.lock(soon());
  ASSERT_TRUE(ok(lease));

  proxy.log().clear();
  ASSERT_TRUE(proxy.log().wait_for(replies_to(Op::kSync), 6, soon()));
  EXPECT_EQ(lease->state(), LeaseState::kHeld);
  ASSERT_TRUE(ok(lease->release(soon())));

  // And with nothing held a ping is enough again.
  proxy.log().clear();
  ASSERT_TRUE(proxy.log().wait_for(replies_to(Op::kPing), 3, soon()));
  EXPECT_EQ(proxy.log().count(requests_of(Op::kSync)), 0U);
}

class SessionWiped : public testing::TestWithParam<ServiceKind> {};

INSTANTIATE_TEST_SUITE_P(Standalone, SessionWiped, testing::Values(ServiceKind::kStandalone));
INSTANTIATE_TEST_SUITE_P(Embedded, SessionWiped, testing::Values(ServiceKind::kEmbedded));

TEST_P(SessionWiped, H20_AServerThatLostItsDataEndsTheSessionInTime) {
  const auto server = own_server(GetParam());
  server->start();
  FaultProxy proxy(server->connect_string(), {.dial = Dial::kOnce});
  States states;
  Session session = open_session(proxy.connect_string(), watched(states, quick(6s)));
  const std::string path = fresh_path();
  make_node(session, path);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(ok(session.set(path, "x", soon())));
  Recorder<Code> codes;

  server->wipe();
  ASSERT_TRUE(reaches(states, kSuspended));
  session.async(Get{path}, soon(), [codes](const Result<Node>& node) {
    codes.add(node ? Code::kBusy : node.error().code());
  });
  server->launch();

  // Three time-outs without a server that takes it back.
  ASSERT_TRUE(reaches(states, SessionState::kExpired));
  EXPECT_THAT(states.all(), ElementsAre(kConnected, kSuspended, SessionState::kExpired));
  ASSERT_TRUE(codes.wait_for(1));
  EXPECT_EQ(codes.last(), Code::kSessionLost);
  server->start();
  Session fresh = open_session(proxy.connect_string());
  EXPECT_TRUE(fails_with(fresh.get(path, soon()), Code::kNoNode));
}

TEST_P(SessionWiped, H20_AWipedServerThatServesRefusesTheOldSession) {
  const auto server = own_server(GetParam());
  server->start();
  FaultProxy proxy(server->connect_string());
  States states;
  SessionOptions options = watched(states, quick(10s));
  options.give_up_after = 120s;
  Session session = open_session(proxy.connect_string(), options);
  const std::string path = fresh_path();
  make_node(session, path);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(ok(session.set(path, "x", soon())));

  server->wipe();
  server->start();
  ASSERT_TRUE(proxy.log().wait_for(
      [](const TrafficRecord& record) {
        return record.op == Op::kCreateSession && record.direction == Direction::kToServer;
      },
      4, soon()));

  // It is dropped at every try, because it has seen more than the server has.
  EXPECT_NE(session.state(), kConnected);
  EXPECT_TRUE(fails_with(session.get(path, deadline_in(200ms)), Code::kTimedOut, path));
  EXPECT_TRUE(session.close(deadline_in(200ms)) || session.state() == SessionState::kClosed);
}

}  // namespace
}  // namespace latchkey::test_support
