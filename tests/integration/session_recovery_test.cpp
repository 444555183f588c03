#include <atomic>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "integration/session_fixture.hpp"

/// Broken connections, silent servers and the ends of sessions.
namespace latchkey::test_support {
namespace {

using testing::ElementsAre;
using wire::Op;

constexpr auto kExpired = SessionState::kExpired;
constexpr auto kClosed = SessionState::kClosed;

TEST_P(SessionTest, TakesTheTimeOutTheServerGrants) {
  Session low = open(quick(10ms));
  Session high = open(quick(10min));
  Session asked = open(quick(3s));

  EXPECT_EQ(low.timeout(), 500ms);
  EXPECT_EQ(high.timeout(), 60s);
  EXPECT_EQ(asked.timeout(), 3s);
}

TEST_P(SessionTest, HeartbeatsKeepAnIdleSessionAlive) {
  FaultProxy proxy(service().follower());
  States states;
  Session session = open_session(proxy.connect_string(), watched(states, quick(6s)));
  const std::int64_t id = session.id();

  // Three in a time-out.
  ASSERT_TRUE(proxy.log().wait_for(replies_to(Op::kPing), 5, soon()));

  EXPECT_EQ(session.state(), kConnected);
  EXPECT_EQ(session.id(), id);
  EXPECT_EQ(proxy.connections_accepted(), 1);
  EXPECT_THAT(states.all(), ElementsAre(kConnected));
}

TEST_P(SessionTest, ReconnectsAfterACutAndKeepsItsNodes) {
  FaultProxy proxy(service().follower());
  States states;
  Session session = open_session(proxy.connect_string(), watched(states));
  const std::string path = fresh_path();
  make_node(session, path, "mine", Lifetime::kEphemeral);
  const std::int64_t id = session.id();

  proxy.cut_all();
  const auto node = session.get(path, soon());

  ASSERT_TRUE(ok(node));
  EXPECT_EQ(node->stat.ephemeral_owner, id);
  EXPECT_EQ(session.id(), id);
  ASSERT_TRUE(states.wait_for(3));
  EXPECT_THAT(states.all(), ElementsAre(kConnected, kSuspended, kConnected));
}

TEST_P(SessionTest, SendsItsCredentialsAgainAfterAReconnect) {
  FaultProxy proxy(service().follower());
  Session session = open_session(proxy.connect_string());
  const std::string path = fresh_path();
  ASSERT_TRUE(ok(session.call(Authenticate{"digest", "dave:pw"}, soon())));
  ASSERT_TRUE(ok(session.create(path, "x", {.acl = creator_acl()}, soon())));

  proxy.cut_all();

  EXPECT_TRUE(ok(session.get(path, soon())));
  EXPECT_TRUE(ok(session.set(path, "y", soon())));
}

TEST_P(SessionTest, SurvivesTheRestartOfEveryServer) {
  States states;
  Session session = open(watched(states, quick(60s)));
  const std::string path = fresh_path();
  make_node(session, path, "mine", Lifetime::kEphemeral);
  const std::int64_t id = session.id();

  service().kill_all();
  ASSERT_TRUE(reaches(states, kSuspended));
  service().start_all();

  const auto node = session.get(path, deadline_in(60s));
  ASSERT_TRUE(ok(node));
  EXPECT_EQ(node->stat.ephemeral_owner, id);
  EXPECT_TRUE(ok(session.set(path, "still", soon())));
}

TEST_P(SessionTest, H03_AWriteCutOffIsToldApartByWhatIsKnown) {
  FaultProxy proxy(service().follower());
  Session session = open_session(proxy.connect_string());
  const std::string path = fresh_path();
  make_node(session, path);
  const auto expect_unknown = [&](const auto& result) {
    ASSERT_TRUE(fails_with(result, Code::kConnectionLoss));
    EXPECT_EQ(result.error().effect(), Effect::kUnknown);
  };
  const auto exists = [&](const std::string& which) {
    return session.exists(which, soon())->has_value();
  };

  proxy.cut_before_request(Op::kCreate2);
  expect_unknown(session.create(path + "/never", {}, {}, soon()));
  EXPECT_FALSE(exists(path + "/never"));
  proxy.cut_after_request(Op::kCreate2);
  expect_unknown(session.create(path + "/done", {}, {}, soon()));
  EXPECT_TRUE(exists(path + "/done"));
  proxy.cut_before_reply(Op::kSetData);
  expect_unknown(session.set(path, "changed", soon()));
  EXPECT_EQ(session.get(path, soon())->data, "changed");
  proxy.cut_before_request(Op::kSetData);
  expect_unknown(session.set(path, "lost", soon()));
  EXPECT_EQ(session.get(path, soon())->data, "changed");
  proxy.cut_after_request(Op::kDelete);
  expect_unknown(session.remove(path + "/done", soon()));
  EXPECT_FALSE(exists(path + "/done"));
  proxy.cut_after_request(Op::kMulti);
  expect_unknown(session.multi({Set{path, "multi"}}, soon()));
  EXPECT_EQ(session.get(path, soon())->data, "multi");
}

TEST_P(SessionTest, H03_AWriteThatNeverLeftIsKnownToHaveNoEffect) {
  FaultProxy proxy(service().follower());
  States states;
  Session session = open_session(proxy.connect_string(), watched(states, quick(10s)));
  const std::string path = fresh_path();
  proxy.refuse();
  proxy.cut_all();
  ASSERT_TRUE(reaches(states, kSuspended));

  const auto unsent = session.create(path, {}, {}, deadline_in(100ms));

  ASSERT_TRUE(fails_with(unsent, Code::kTimedOut, path));
  EXPECT_EQ(unsent.error().effect(), Effect::kNone);
  proxy.accept();
  const auto after = session.exists(path, soon());
  ASSERT_TRUE(ok(after));
  EXPECT_FALSE(after->has_value());
}

TEST_P(SessionTest, H03_ReadsAreSentAgainAndWritesNeverAre) {
  FaultProxy proxy(service().follower());
  Session session = open_session(proxy.connect_string());
  const std::string path = fresh_path();
  make_node(session, path, "data");
  proxy.log().clear();

  proxy.cut_before_reply({Op::kGetData, 1, 3});
  const auto node = session.get(path, soon());
  ASSERT_TRUE(ok(node));
  EXPECT_EQ(proxy.log().count(requests_of(Op::kGetData)), 4U);

  proxy.cut_before_reply(Op::kSetData);
  EXPECT_TRUE(fails_with(session.set(path, "x", soon()), Code::kConnectionLoss));
  ASSERT_TRUE(ok(session.get(path, soon())));
  EXPECT_EQ(proxy.log().count(requests_of(Op::kSetData)), 1U);
}

TEST_P(SessionTest, H03_UnderCutsTheAcknowledgedAndTheDoubtfulWritesAddUp) {
  FaultProxy proxy(service().follower());
  Session session = open_session(proxy.connect_string(), quick(10s));
  const std::string path = fresh_path();
  make_node(session, path);
  std::atomic<int> done = 0;
  std::atomic<int> doubtful = 0;
  std::atomic<int> running = 4;
  std::vector<std::thread> writers;
  for (int i = 0; i < 4; ++i) {
    writers.emplace_back([&, own = session]() mutable {
      for (int k = 0; k < 150; ++k) {
        const auto stat = own.set(path, "x", soon());
        if (stat) ++done;
        if (!stat && stat.error().effect() == Effect::kUnknown) ++doubtful;
        EXPECT_TRUE(stat || stat.error() == Code::kConnectionLoss) << stat.error();
        EXPECT_TRUE(ok(own.get(path, soon())));
      }
      --running;
    });
  }

  for (int k = 0; running > 0; ++k) {
    const int before = done;
    if (k % 2 == 0) proxy.cut_all();
    if (k % 2 == 1) proxy.reset_all();
    EXPECT_TRUE(ok(session.sync(path, soon())));
    // On a slow machine every write would be cut off.
    EXPECT_TRUE(eventually([&] { return done > before || running == 0; }));
  }
  for (std::thread& writer : writers) writer.join();

  const auto node = session.get(path, soon());
  ASSERT_TRUE(ok(node));
  EXPECT_GE(node->stat.version, done);
  EXPECT_LE(node->stat.version, done + doubtful);
  EXPECT_GT(done, 0);
}

TEST_P(SessionTest, AReadIsGivenUpWhenThePolicysCountIsUsedUp) {
  FaultProxy proxy(service().follower());
  SessionOptions options = quick();
  options.retry.count = 2;
  Session session = open_session(proxy.connect_string(), options);
  const int cut = proxy.cut_before_reply({Op::kExists, 1, kForever});

  EXPECT_TRUE(fails_with(session.exists("/", soon()), Code::kConnectionLoss));
  EXPECT_TRUE(eventually([&] { return proxy.fired(cut) == 3; })) << proxy.fired(cut);
}

TEST_P(SessionTest, AReplyOverTheLimitFailsTheReadAndNotTheSession) {
  SessionOptions options = quick();
  options.max_reply_bytes = 4'096;
  options.retry.count = 1;
  Session session = open(options);
  const std::string path = fresh_path();
  make_node(session, path, std::string(10'000, 'x'));

  EXPECT_TRUE(fails_with(session.get(path, soon()), Code::kConnectionLoss, "length"));
  EXPECT_TRUE(ok(session.exists(path, soon())));
}

TEST_P(SessionTest, H51_EveryCallReturnsByItsDeadlineInAPartition) {
  FaultProxy proxy(service().follower());
  Session session = open_session(proxy.connect_string(), quick(60s));
  const std::string path = fresh_path();
  make_node(session, path);
  proxy.hold(Hold::kBoth);

  const Instant start = BootClock::now();
  EXPECT_TRUE(fails_with(session.get(path, deadline_in(100ms)), Code::kTimedOut, path));
  // Time enough to be sent, or nothing would be in doubt.
  const auto write = session.set(path, "x", deadline_in(3s));
  EXPECT_TRUE(fails_with(write, Code::kTimedOut, path));
  EXPECT_EQ(write.error().effect(), Effect::kUnknown);
  EXPECT_TRUE(fails_with(session.sync(path, deadline_in(0ms)), Code::kTimedOut));
  EXPECT_TRUE(fails_with(session.call(WhoAmI{}, deadline_in(50ms)), Code::kTimedOut));
  EXPECT_LT(BootClock::now() - start, 20s);

  proxy.release();
  EXPECT_TRUE(ok(session.get(path, soon())));
}

TEST_P(SessionTest, ADeafServerIsLeftForAnotherConnection) {
  FaultProxy proxy(service().follower());
  States states;
  Session session = open_session(proxy.connect_string(), watched(states, quick(4s)));
  make_node(session, fresh_path(), "mine", Lifetime::kEphemeral);

  proxy.hold(Hold::kBoth);
  ASSERT_TRUE(reaches(states, kSuspended));
  proxy.release();

  EXPECT_TRUE(session.wait_connected(soon()) || session.state() == kExpired);
  EXPECT_GE(proxy.connections_accepted(), 2);
}

TEST_P(SessionTest, H09_APartitionLongerThanTheTimeOutEndsInExpiry) {
  FaultProxy proxy(service().follower());
  States states;
  Session session = open_session(proxy.connect_string(), watched(states, quick(6s)));
  Session other = open();
  const std::string path = fresh_path();
  make_node(session, path, "mine", Lifetime::kEphemeral);
  Events events;
  ASSERT_TRUE(ok(session.exists(path + "x", soon(), note(events))));
  Recorder<Code> outcomes;

  proxy.refuse();
  proxy.cut_all();
  ASSERT_TRUE(reaches(states, kSuspended));
  session.async(Set{path, "x"}, soon(),
                [outcomes](const Result<Stat>& stat) { outcomes.add(stat.error().code()); });
  ASSERT_TRUE(eventually([&] {
    const auto stat = other.exists(path, soon());
    return stat && !*stat;
  }));
  proxy.accept();

  ASSERT_TRUE(outcomes.wait_for(1));
  EXPECT_EQ(outcomes.last(), Code::kSessionLost);
  ASSERT_TRUE(reaches(states, kExpired));
  EXPECT_THAT(states.all(), ElementsAre(kConnected, kSuspended, kExpired));
  ASSERT_TRUE(events.wait_for(1));
  EXPECT_THAT(events.all(), ElementsAre("session over "));
}

TEST_P(SessionTest, H66_AnExpiredSessionStaysOverAndANewOneWorks) {
  FaultProxy proxy(service().follower());
  States states;
  Session session = open_session(proxy.connect_string(), watched(states, quick(4s)));
  const std::int64_t id = session.id();
  proxy.refuse();
  proxy.cut_all();
  ASSERT_TRUE(reaches(states, kSuspended));
  ASSERT_TRUE(reaches(states, kExpired));  // No server took it back: three time-outs.
  proxy.accept();

  EXPECT_TRUE(fails_with(session.get("/", soon()), Code::kSessionLost, "/"));
  EXPECT_TRUE(fails_with(session.wait_connected(soon()), Code::kSessionLost));
  EXPECT_TRUE(fails_with(session.call(Authenticate{"digest", "a:b"}, soon()), Code::kSessionLost));
  // No server has said that its nodes are gone, so close() does not say it either.
  EXPECT_TRUE(fails_with(session.close(soon()), Code::kSessionLost, "without the server's word"));
  EXPECT_EQ(session.state(), kExpired);

  Session fresh = open_session(proxy.connect_string());
  EXPECT_TRUE(ok(fresh.get("/", soon())));
  EXPECT_NE(fresh.id(), id);
}

TEST_P(SessionTest, H25_LettingGoInAShortPartitionStillEndsTheSessionAtTheServer) {
  FaultProxy proxy(service().follower());
  Session other = open();
  const std::string path = fresh_path();
  {
    States states;
    Session session = open_session(proxy.connect_string(), watched(states, quick(60s)));
    make_node(session, path, "mine", Lifetime::kEphemeral);
    proxy.refuse();
    proxy.cut_all();
    ASSERT_TRUE(reaches(states, kSuspended));
  }
  proxy.accept();

  EXPECT_TRUE(eventually([&] {
    const auto stat = other.exists(path, soon());
    return stat && !*stat;
  }));
}

TEST_P(SessionTest, ARefusedCredentialEndsTheSession) {
  States states;
  Session session = open(watched(states));
  Recorder<Code> outcomes;

  const auto refused = session.call(Authenticate{"no-such-scheme", "secret-word"}, soon());

  ASSERT_TRUE(fails_with(refused, Code::kAuthFailed, "no-such-scheme"));
  EXPECT_EQ(refused.error().message().find("secret-word"), std::string::npos);
  ASSERT_TRUE(reaches(states, SessionState::kAuthFailed));
  EXPECT_THAT(states.all(), ElementsAre(kConnected, SessionState::kAuthFailed));
  EXPECT_TRUE(fails_with(session.get("/", soon()), Code::kAuthFailed));
}

TEST_P(SessionTest, ClosingLeavesNothingAtTheServer) {
  States states;
  Session session = open(watched(states));
  const std::int64_t id = session.id();
  ASSERT_TRUE(ok(session.exists(fresh_path(), soon(), [](const WatchEvent&) {})));
  ASSERT_EQ(service().connections_of(id), 1);

  ASSERT_TRUE(ok(session.close(soon())));

  EXPECT_TRUE(eventually([&] { return service().connections_of(id) == 0; }));
  EXPECT_TRUE(eventually([&] { return service().watches_of(id) == 0; }));
  ASSERT_TRUE(states.wait_for(2));
  EXPECT_THAT(states.all(), ElementsAre(kConnected, kClosed));
  EXPECT_TRUE(fails_with(session.get("/", soon()), Code::kClosed));
  EXPECT_TRUE(ok(session.close(soon())));
}

TEST_P(SessionTest, H58_ClosingWithManyPendingRequestsAnswersEachOnce) {
  FaultProxy proxy(service().follower());
  const std::string path = fresh_path();
  constexpr std::size_t kCount = 2'000;
  for (int round = 0; round < 3; ++round) {
    Session session = open_session(proxy.connect_string());
    Recorder<bool> outcomes;
    for (std::size_t i = 0; i < kCount; ++i) {
      session.async(Exists{path}, soon(),
                    [outcomes](const auto& result) { outcomes.add(bool(result)); });
      if (i == kCount / 2 && round == 1) proxy.cut_all();
    }
    if (round == 2) proxy.hold(Hold::kToClient);

    const auto closed = session.close(deadline_in(round == 2 ? 200ms : 60s));

    EXPECT_EQ(bool(closed), round != 2);
    EXPECT_TRUE(outcomes.wait_for(kCount));
    EXPECT_EQ(outcomes.size(), kCount);
    proxy.release();
  }
}

TEST_P(SessionTest, PausesLongerBetweenTriesWhileNobodyAnswers) {
  FaultProxy proxy(service().follower());
  SessionOptions options = quick(30s);
  options.retry = {.base = 50ms, .factor = 2.0, .cap = 400ms};
  Session session = open_session(proxy.connect_string(), options);
  proxy.log().clear();
  const int cut = proxy.cut_before_request({Op::kCreateSession, 1, kForever});

  proxy.cut_all();
  ASSERT_TRUE(proxy.log().wait_until_fired(cut, 6, soon()));
  proxy.disarm(cut);

  std::vector<Instant> tries;
  for (const TrafficRecord& record : proxy.log().records()) {
    if (record.op == Op::kCreateSession && record.direction == Direction::kToServer) {
      tries.push_back(record.at);
    }
  }
  ASSERT_GE(tries.size(), 6U);
  // Each pause is at least half of what the policy says: 50, 100, 200, 400 ms.
  EXPECT_GE(tries[2] - tries[1], 20ms);
  EXPECT_GE(tries[4] - tries[3], 90ms);
  EXPECT_GE(tries[5] - tries[1], 25ms + 50ms + 100ms + 190ms);
  EXPECT_TRUE(ok(session.get("/", soon())));
}

}  // namespace
}  // namespace latchkey::test_support
