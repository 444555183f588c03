#include <fstream>

#include <gmock/gmock.h>

#include "integration/own_server.hpp"
#include "support/temp_dir.hpp"

/// Connect strings, options and servers that cannot be reached.
namespace latchkey::test_support {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;
using wire::Op;

std::string dead_server() { return loopback(free_port()); }

TEST_P(SessionTest, AChrootIsInvisibleToItsUser) {
  Session whole = open();
  const std::string root = fresh_path();
  make_node(whole, root);
  Session session = open_session(service().connect_string() + root);
  Events events;
  const auto add = [&](const std::string& path, WatchMode mode) {
    return session.call(AddWatch{path, mode, note(events)}, soon());
  };

  ASSERT_TRUE(ok(session.exists("/a", soon(), note(events))));
  const auto made = session.create("/a", "x", {.lifetime = Lifetime::kEphemeral}, soon());
  ASSERT_TRUE(ok(made));
  EXPECT_EQ(made->path, "/a");
  const auto numbered = session.create("/n-", {}, {.naming = Naming::kSequential}, soon());
  ASSERT_TRUE(ok(numbered));
  EXPECT_EQ(numbered->path, "/n-0000000001");
  ASSERT_TRUE(ok(add("/", WatchMode::kPersistentRecursive)));
  const auto multi = session.multi({Create{"/m", ""}}, soon());
  ASSERT_TRUE(ok(multi));
  EXPECT_EQ(std::get<Created>(*multi->parts.at(0)).path, "/m");
  EXPECT_THAT(*session.call(Ephemerals{"/"}, soon()), ElementsAre("/a"));
  EXPECT_THAT(session.children("/", soon())->names, UnorderedElementsAre("a", "m", "n-0000000001"));
  EXPECT_EQ(session.call(ChildrenCount{"/"}, soon()).value_or(-1), 3);
  EXPECT_TRUE(fails_with(session.get("/no", soon()), Code::kNoNode, "get /no:"));

  ASSERT_TRUE(events.wait_for(2));
  EXPECT_THAT(events.all(), ElementsAre("created /a", "created /m"));
  ASSERT_TRUE(ok(whole.sync(root, soon())));
  EXPECT_TRUE(whole.exists(root + "/a", soon())->has_value());
}

TEST_P(SessionTest, AChrootMayComeAsAnOptionButNotTwice) {
  Session whole = open();
  const std::string root = fresh_path();
  make_node(whole, root);
  SessionOptions options = quick();
  options.chroot = root;
  Session session = open(options);

  ASSERT_TRUE(ok(session.sync("/", soon())));
  EXPECT_TRUE(ok(session.create("/here", {}, {}, soon())));
  EXPECT_TRUE(fails_with(Session::start(service().connect_string() + "/a", options),
                         Code::kInvalidOption, "chroot"));
  options.chroot = "no-slash";
  EXPECT_TRUE(fails_with(Session::start(service().connect_string(), options), Code::kInvalidPath,
                         "no-slash"));
}

TEST_P(SessionTest, FindsTheLivingServerAmongDeadOnes) {
  const std::string connect =
      dead_server() + "," + dead_server() + "," + service().follower() + "," + dead_server();

  for (int i = 0; i < 4; ++i) {
    const auto session = Session::open(connect, quick(), soon());
    EXPECT_TRUE(ok(session));
  }
}

TEST_P(SessionTest, SpreadsItsSessionsOverTheServers) {
  const std::string server = service().follower();
  FaultProxy first(server);
  FaultProxy second(server);
  const std::string connect = first.connect_string() + "," + second.connect_string();

  for (int i = 0; i < 24; ++i) static_cast<void>(open_session(connect));

  // By chance alone all would go to one of them once in 8 million runs.
  EXPECT_GT(first.connections_accepted(), 0);
  EXPECT_GT(second.connections_accepted(), 0);
}

TEST_P(SessionTest, ResolvesNamesAndTalksIpv6AndUnixSockets) {
  const std::string server = service().follower();
  const std::string port = server.substr(server.rfind(':'));
  const TempDir folder;
  const std::string v6 = "[::1]:" + std::to_string(free_port());
  const FaultProxy six(server, {.listen = v6});
  const FaultProxy local(server, {.listen = "unix:" + (folder.path() / "zk").string()});

  for (const std::string& connect : {"localhost" + port, v6, local.connect_string()}) {
    auto session = Session::open(connect, quick(), soon());
    ASSERT_TRUE(ok(session)) << connect;
    EXPECT_TRUE(ok(session->get("/", soon()))) << connect;
  }
  SessionOptions below = quick();
  below.chroot = "/zookeeper";
  auto session = Session::open(local.connect_string(), below, soon());
  ASSERT_TRUE(ok(session));
  EXPECT_TRUE(ok(session->get("/quota", soon())));
}

TEST_P(SessionTest, RefusesMalformedPathsWithoutSendingAnything) {
  FaultProxy proxy(service().follower());
  Session session = open_session(proxy.connect_string());
  proxy.log().clear();

  for (const std::string bad : {"", "a", "/a/", "//", "/a//b", "/a/./b", "/..",
                                "/a\x01"
                                "b"}) {
    EXPECT_TRUE(fails_with(session.get(bad, soon()), Code::kInvalidPath, bad));
    EXPECT_TRUE(fails_with(session.create(bad, {}, {}, soon()), Code::kInvalidPath));
    EXPECT_TRUE(fails_with(session.multi({Remove{bad}}, soon()), Code::kInvalidPath));
    EXPECT_TRUE(fails_with(session.call(Ephemerals{bad}, soon()), Code::kInvalidPath));
  }

  EXPECT_EQ(proxy.log().count([](const TrafficRecord& record) {
    return record.direction == Direction::kToServer && record.op != Op::kPing;
  }),
            0U);
}

TEST(SessionConnect, RefusesMalformedConnectStrings) {
  for (const char* bad : {"", ",", "host:", "host:0", "host:65536", "host:x", "a,,b", "::1", "[::1",
                          "[::1]x", "a/b,c", "host/a//b", "host /a", "unix:relative", ":2181"}) {
    EXPECT_TRUE(fails_with(Session::start(bad), Code::kInvalidConnectString, bad));
    EXPECT_TRUE(fails_with(Session::open(bad, {}, soon()), Code::kInvalidConnectString, bad));
  }
}

TEST(SessionConnect, RefusesOptionsThatMakeNoSense) {
  const auto expect_refused = [](void (*spoil)(SessionOptions&), std::string_view name) {
    SessionOptions options;
    spoil(options);
    EXPECT_TRUE(fails_with(Session::start("localhost", options), Code::kInvalidOption, name));
  };

  expect_refused([](SessionOptions& o) { o.timeout = 0ms; }, "timeout");
  expect_refused([](SessionOptions& o) { o.timeout = -1ms; }, "timeout");
  expect_refused([](SessionOptions& o) { o.timeout = 24h * 30; }, "timeout");
  expect_refused([](SessionOptions& o) { o.max_requests = 0; }, "max_requests");
  expect_refused([](SessionOptions& o) { o.max_requests = SIZE_MAX; }, "max_requests");
  expect_refused([](SessionOptions& o) { o.max_queued_bytes = SIZE_MAX; }, "max_queued_bytes");
  expect_refused([](SessionOptions& o) { o.max_request_bytes = SIZE_MAX; }, "max_request_bytes");
  expect_refused([](SessionOptions& o) { o.max_reply_bytes = 0; }, "max_reply_bytes");
  expect_refused([](SessionOptions& o) { o.max_request_bytes = 1; }, "max_request_bytes is 1 ");
  expect_refused([](SessionOptions& o) { o.max_reply_bytes = 1'023; }, "max_reply_bytes 1023");
  expect_refused([](SessionOptions& o) { o.credentials = {{"digest", "ann"}}; }, "colon");
  expect_refused([](SessionOptions& o) { o.credentials = {{"", "ann:pw"}}; }, "scheme");
  expect_refused([](SessionOptions& o) { o.give_up_after = 0ms - 1ms; }, "give_up_after");
  expect_refused([](SessionOptions& o) { o.give_up_after = std::chrono::milliseconds::max(); },
                 "give_up_after");
  expect_refused([](SessionOptions& o) { o.retry.cap = std::chrono::milliseconds::max(); },
                 "retry");
  expect_refused([](SessionOptions& o) { o.retry.factor = 1e300; }, "retry");
  expect_refused([](SessionOptions& o) { o.retry.base = -1ms; }, "retry");
  expect_refused([](SessionOptions& o) { o.retry.factor = 0.5; }, "retry");
  expect_refused([](SessionOptions& o) { o.retry.cap = 1ms; }, "retry");
  expect_refused([](SessionOptions& o) { o.retry.count = -1; }, "retry");
}

TEST(SessionConnect, NamesTheAddressThatRefused) {
  const std::string dead = dead_server();
  const Instant start = BootClock::now();

  const auto refused = Session::open(dead, quick(), deadline_in(3s));

  EXPECT_TRUE(fails_with(refused, Code::kUnreachable, dead));
  EXPECT_TRUE(fails_with(refused, Code::kUnreachable, "refused"));
  EXPECT_LT(BootClock::now() - start, 30s);
}

TEST(SessionConnect, NamesTheSocketThatIsNotThere) {
  const TempDir folder;
  const std::string connect = "unix:" + (folder.path() / "nobody").string();

  EXPECT_TRUE(
      fails_with(Session::open(connect, quick(), deadline_in(2s)), Code::kUnreachable, connect));
}

TEST(SessionConnect, NamesTheHostThatDoesNotExist) {
  EXPECT_TRUE(fails_with(Session::open("no-such-host.invalid", quick(), deadline_in(6s)),
                         Code::kUnreachable, "no-such-host.invalid:2181"));
}

TEST_P(SessionTest, GivesUpOnAServerThatSwallowsEverythingAndLeavesNothingBehind) {
  FaultProxy proxy(service().follower());
  proxy.hold(Hold::kBoth);

  const auto refused = Session::open(proxy.connect_string(), quick(), deadline_in(2s));

  EXPECT_TRUE(fails_with(refused, Code::kUnreachable, proxy.connect_string()));
  proxy.release();
  EXPECT_TRUE(eventually([&] { return proxy.connections_open() == 0; }));
}

TEST_P(SessionTest, QueuesRequestsUntilAServerIsThere) {
  FaultProxy proxy(service().follower());
  proxy.refuse();
  auto session = Session::start(proxy.connect_string(), quick());
  ASSERT_TRUE(ok(session));
  EXPECT_EQ(session->state(), SessionState::kConnecting);
  EXPECT_EQ(session->id(), 0);
  Recorder<bool> answers;
  session->async(Get{"/"}, soon(), [answers](const auto& node) { answers.add(bool(node)); });
  EXPECT_TRUE(fails_with(session->get("/", deadline_in(50ms)), Code::kTimedOut, "/"));

  proxy.accept();

  ASSERT_TRUE(answers.wait_for(1));
  EXPECT_TRUE(answers.last());
  EXPECT_TRUE(ok(session->wait_connected(soon())));
}

TEST(SessionConnect, ClosesAtOnceWhatNeverConnected) {
  auto session = Session::start(dead_server(), quick());
  ASSERT_TRUE(ok(session));

  EXPECT_TRUE(ok(session->close(soon())));
  EXPECT_EQ(session->state(), SessionState::kClosed);
  EXPECT_TRUE(fails_with(session->wait_connected(soon()), Code::kClosed));
}

/// A server that stands still for a while with its sockets open.
class SessionPausedServer : public testing::TestWithParam<ServiceKind> {
 protected:
  SessionPausedServer() { server->start(); }

  const std::unique_ptr<OwnServer> server = own_server(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Standalone, SessionPausedServer,
                         testing::Values(ServiceKind::kStandalone));
INSTANTIATE_TEST_SUITE_P(Embedded, SessionPausedServer, testing::Values(ServiceKind::kEmbedded));

TEST_P(SessionPausedServer, IsGivenUpAndNothingIsLeftBehind) {
  server->pause();

  const auto refused = Session::open(server->connect_string(), quick(), deadline_in(2s));

  EXPECT_TRUE(fails_with(refused, Code::kUnreachable, server->connect_string()));
  server->resume();
  EXPECT_TRUE(eventually([&] {
    // One line for each connection; the word's own is one of them.
    const std::string lines = server->word("cons");
    return std::count(lines.begin(), lines.end(), '/') == 1;
  }));
}

TEST_P(SessionPausedServer, TakesMoreThanASocketHolds) {
  Session session = open_session(server->connect_string(), quick(20s));
  const std::string path = fresh_path();
  make_node(session, path);
  server->pause();
  Recorder<bool> answers;

  for (int i = 0; i < 60; ++i) {
    session.async(Set{path, std::string(200'000, 'x')}, soon(),
                  [answers](const auto& stat) { answers.add(bool(stat)); });
  }
  server->resume();

  ASSERT_TRUE(answers.wait_for(60));
  EXPECT_THAT(answers.all(), testing::Each(true));
  EXPECT_EQ(session.get(path, soon())->stat.version, 60);
}

}  // namespace
}  // namespace latchkey::test_support
