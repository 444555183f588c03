#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "latchkey/mutex.hpp"
#include "latchkey/server.hpp"
#include "latchkey/session.hpp"
#include "support/eventually.hpp"
#include "support/raw_client.hpp"
#include "support/sockets.hpp"
#include "support/temp_dir.hpp"

namespace latchkey {
namespace {

using namespace std::chrono_literals;
using test_support::create_request;
using test_support::eventually;
using test_support::RawClient;
using test_support::TempDir;
using wire::CreateMode;
using wire::Err;
using wire::Op;

Server started(ServerOptions options = {}) {
  Result<Server> server = Server::start(std::move(options));
  if (!server) throw std::runtime_error(server.error().message());
  return std::move(*server);
}

Session session_on(const Server& server, std::chrono::milliseconds timeout = 10s) {
  SessionOptions options;
  options.timeout = timeout;
  Result<Session> session = Session::open(server.connect_string(), options, deadline_in(20s));
  if (!session) throw std::runtime_error(session.error().message());
  return *session;
}

TEST(ServerLife, AUsersTestTakesALockOnAFreePort) {
  Server server = started();
  Session session = session_on(server);

  Mutex mutex(session, "/locks/a");
  auto lease = mutex.lock(deadline_in(20s));

  ASSERT_TRUE(lease) << lease.error();
  EXPECT_GT(server.port(), 0);
  EXPECT_EQ(server.connect_string(), "127.0.0.1:" + std::to_string(server.port()));
}

TEST(ServerLife, TwoServersOnFreePortsAreApart) {
  Server one = started();
  Server two = started();
  Session first = session_on(one);
  Session second = session_on(two);

  ASSERT_TRUE(first.create("/only-here", "", {}, deadline_in(20s)));

  EXPECT_NE(one.port(), two.port());
  EXPECT_EQ(second.exists("/only-here", deadline_in(20s)).value(), std::nullopt);
}

TEST(ServerLife, ServesOnAUnixSocketOfATemporaryFolder) {
  std::filesystem::path path;
  {
    Result<Server> server = Server::start_in_temp_folder();
    ASSERT_TRUE(server) << server.error();
    path = server->unix_path();
    EXPECT_EQ(server->port(), 0);
    EXPECT_EQ(server->connect_string(), "unix:" + path.string());
    struct stat status {};
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0600U);

    Session session = session_on(*server);
    EXPECT_TRUE(session.create("/a", "", {}, deadline_in(20s)));
  }
  EXPECT_FALSE(std::filesystem::exists(path.parent_path()));
}

TEST(ServerLife, ATcpAddressComesBeforeAnInheritedUnixSocketForWhoeverConnects) {
  const TempDir dir;
  const std::string unix_address = "unix:" + (dir.path() / "inherited.sock").string();
  const auto socket = test_support::listen_on(test_support::Endpoint(unix_address));
  ServerOptions options;
  options.inherited = {::dup(socket.get())};
  options.listen = {"127.0.0.1:0"};

  Server server = started(options);

  EXPECT_EQ(server.addresses().front(), unix_address);
  EXPECT_EQ(server.connect_string(), "127.0.0.1:" + std::to_string(server.port()));
}

TEST(ServerLife, RestartKeepsPortNodesAndSessionsInMemoryToo) {
  Server server = started();
  Session session = session_on(server, 30s);
  CreateOptions ephemeral;
  ephemeral.lifetime = Lifetime::kEphemeral;
  ASSERT_TRUE(session.create("/mine", "data", ephemeral, deadline_in(20s)));
  const std::uint16_t port = server.port();
  const std::int64_t id = session.id();

  const Result<void> again = server.restart();

  ASSERT_TRUE(again) << again.error();
  EXPECT_EQ(server.port(), port);
  const auto node = session.get("/mine", deadline_in(20s));
  ASSERT_TRUE(node) << node.error();
  EXPECT_EQ(node->data, "data");
  EXPECT_EQ(node->stat.ephemeral_owner, id);
  EXPECT_EQ(session.id(), id);
}

TEST(ServerLife, RestartKeepsWhatIsInTheFolder) {
  const TempDir folder;
  ServerOptions options;
  options.data_folder = folder.path() / "data";
  std::int64_t id = 0;
  {
    Server server = started(options);
    Session session = session_on(server);
    ASSERT_TRUE(session.create("/kept", "1", {}, deadline_in(20s)));
    ASSERT_TRUE(server.restart());
    ASSERT_TRUE(session.get("/kept", deadline_in(20s)));
    ASSERT_TRUE(session.set("/kept", "2", deadline_in(20s)));
    id = session.id();
    ASSERT_TRUE(server.stop());
  }
  Server server = started(options);
  Session session = session_on(server);

  EXPECT_EQ(session.get("/kept", deadline_in(20s)).value().data, "2");
  EXPECT_NE(session.id(), id);
  EXPECT_NE(server.recovered().find("zxid"), std::string::npos) << server.recovered();
}

/// While it lives, no file of this process can be written to.
class FullDisk {
 public:
  FullDisk() : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &limit_);
    const rlimit none{0, limit_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &none);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &limit_);
    std::signal(SIGXFSZ, handler_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  void (*handler_)(int);
  rlimit limit_{};
};

TEST(ServerLife, H83_ARestartTriesAgainAfterTheDiskHasEndedTheServer) {
  const TempDir folder;
  ServerOptions options;
  options.data_folder = folder.path() / "data";
  Server server = started(options);
  Session session = session_on(server, 30s);
  ASSERT_TRUE(session.create("/kept", "1", {}, deadline_in(20s)));
  {
    const FullDisk full;
    EXPECT_FALSE(session.create("/lost", "1", {}, deadline_in(5s)));
    EXPECT_EQ(server.wait().error(), Code::kStorage);
    EXPECT_EQ(server.restart().error(), Code::kStorage);
  }

  const Result<void> again = server.restart();

  ASSERT_TRUE(again) << again.error();
  EXPECT_EQ(session.get("/kept", deadline_in(20s)).value().data, "1");
}

TEST(ServerLife, H81_ARestartedServerGivesEverySessionItsFullTimeOut) {
  constexpr int kTimeoutMs = 8'000;  // We may be kept waiting between two calls.
  const TempDir folder;
  ServerOptions options;
  options.data_folder = folder.path() / "data";
  options.listen = {test_support::loopback(test_support::free_port())};
  options.tick = 20ms;
  options.min_session_timeout = 100ms;
  wire::ConnectResponse session;
  {
    Server server = started(options);
    RawClient client(server.connect_string());
    session = client.connect(kTimeoutMs).value();
    ASSERT_EQ(client.call(Op::kCreate, create_request("/e", CreateMode::kEphemeral))->header.err,
              Err::kOk);
    ASSERT_TRUE(server.stop());
  }
  // Down for longer than the session may be silent.
  const Instant back = BootClock::now() + std::chrono::milliseconds(kTimeoutMs * 5 / 4);
  ASSERT_TRUE(eventually([&] { return BootClock::now() >= back; }));

  Server server = started(options);
  RawClient client(server.connect_string());
  const auto attached = client.connect(kTimeoutMs, session);

  ASSERT_TRUE(attached);
  EXPECT_EQ(attached->session_id, session.session_id);
  EXPECT_EQ(client.call(Op::kExists, wire::PathWatch{"/e", false})->header.err, Err::kOk);
}

TEST(ServerLife, H82_EveryRunBeginsAnEpoch) {
  Server server = started();
  Session session = session_on(server);
  const auto before = session.create("/a", "", {}, deadline_in(20s));
  ASSERT_TRUE(before);

  ASSERT_TRUE(server.restart());
  // A read is sent again if the old connection takes it along; a write would not be.
  ASSERT_TRUE(session.exists("/a", deadline_in(20s)));
  const auto after = session.create("/b", "", {}, deadline_in(20s));

  ASSERT_TRUE(after) << after.error();
  EXPECT_GT(after->stat->czxid >> 32, before->stat->czxid >> 32);
}

TEST(ServerLife, AnExpiredSessionIsGoneWhenTheCallReturns) {
  Server server = started();
  Session watcher = session_on(server);
  RawClient client(server.connect_string());
  const auto session = client.connect(30'000);
  ASSERT_TRUE(session);
  ASSERT_EQ(client.call(Op::kCreate, create_request("/e", CreateMode::kEphemeral))->header.err,
            Err::kOk);

  const Result<void> expired = server.expire_session(session->session_id);

  ASSERT_TRUE(expired) << expired.error();
  EXPECT_EQ(watcher.exists("/e", deadline_in(20s)).value(), std::nullopt);
  EXPECT_TRUE(client.ended());
  EXPECT_EQ(server.expire_session(session->session_id).error(), Code::kNoNode);
}

TEST(ServerLife, WaitReturnsWhenTheServerIsStopped) {
  Server server = started();
  auto ended = std::async(std::launch::async, [&] { return server.wait().has_value(); });

  ASSERT_TRUE(server.stop());

  EXPECT_TRUE(ended.get());
  EXPECT_EQ(server.expire_session(1).error(), Code::kClosed);
  EXPECT_TRUE(server.stop());
}

TEST(ServerLife, WhoeverStopsOrRestartsItNextMayBeAnyThread) {
  Server server = started();
  std::async(std::launch::async, [&] { ASSERT_TRUE(server.stop()); }).get();

  // The system gives this one the number of a thread of the server's that has ended.
  std::async(std::launch::async, [&] {
    const Result<void> again = server.restart();
    EXPECT_TRUE(again) << again.error();
  }).get();

  EXPECT_TRUE(server.stop());
}

TEST(ServerLife, ALogSinkThatWouldWaitForItsOwnThreadIsToldSo) {
  std::promise<Server*> known;
  std::promise<std::vector<Code>> told;
  ServerOptions options;
  options.handshake_timeout = 100ms;
  options.idle_stop = 100ms;
  options.log = [&, server = known.get_future().share()](LogLevel, std::string_view text) {
    if (text.find("nobody was here") == std::string_view::npos) return;
    told.set_value({server.get()->stop().error().code(), server.get()->wait().error().code(),
                    server.get()->expire_session(1).error().code()});
  };
  Server server = started(std::move(options));
  known.set_value(&server);

  EXPECT_THAT(told.get_future().get(), testing::Each(Code::kWouldDeadlock));
  EXPECT_TRUE(server.wait());
}

/// Whoever restarts it waits for the thread that writes the log.
TEST(ServerLife, ALogSinkThatRestartsItWhileSomebodyElseDoesIsToldSo) {
  std::promise<Server*> known;
  std::promise<void> asked;
  std::promise<Code> told;
  ServerOptions options;
  options.handshake_timeout = 100ms;
  options.idle_stop = 100ms;
  options.log = [&, server = known.get_future().share(), other = asked.get_future().share(),
                 once = std::make_shared<std::once_flag>()](LogLevel, std::string_view text) {
    if (text.find("nobody was here") == std::string_view::npos) return;
    std::call_once(*once, [&] {
      Server* const ours = server.get();
      other.get();
      told.set_value(ours->restart().error().code());
    });
  };
  Server server = started(std::move(options));
  auto restarted = std::async(std::launch::async, [&] {
    asked.set_value();
    return server.restart().has_value();
  });
  known.set_value(&server);

  EXPECT_EQ(told.get_future().get(), Code::kWouldDeadlock);
  EXPECT_TRUE(restarted.get());
}

TEST(ServerLife, AnAddressInUseIsSaidSo) {
  Server server = started();
  ServerOptions same;
  same.listen = {server.connect_string()};

  const Result<Server> second = Server::start(same);

  ASSERT_FALSE(second);
  EXPECT_EQ(second.error(), Code::kInUse);
  EXPECT_NE(second.error().message().find(server.connect_string()), std::string::npos)
      << second.error();
}

TEST(ServerLife, AFolderInUseIsSaidSo) {
  const TempDir folder;
  ServerOptions options;
  options.data_folder = folder.path() / "data";
  Server server = started(options);

  const Result<Server> second = Server::start(options);

  ASSERT_FALSE(second);
  EXPECT_EQ(second.error(), Code::kInUse);
}

TEST(ServerLife, AUnixSocketInUseIsSaidSoAndAStaleOneReplaced) {
  const TempDir folder;
  ServerOptions options;
  options.unix_path = folder.path() / "s.sock";
  {
    // What a killed server leaves behind: a name that nobody listens on.
    const auto left =
        test_support::listen_on(test_support::Endpoint("unix:" + options.unix_path.string()));
  }
  ASSERT_TRUE(std::filesystem::exists(options.unix_path));
  {
    Server server = started(options);
    const Result<Server> second = Server::start(options);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error(), Code::kInUse);
    Session session = session_on(server);
    EXPECT_TRUE(session.sync("/", deadline_in(20s)));
  }
  EXPECT_FALSE(std::filesystem::exists(options.unix_path));
}

TEST(ServerLife, AFileThatIsNoSocketIsLeftAlone) {
  const TempDir folder;
  ServerOptions options;
  options.unix_path = folder.path() / "precious";
  std::ofstream(options.unix_path) << "data";

  const Result<Server> server = Server::start(options);

  ASSERT_FALSE(server);
  EXPECT_EQ(server.error(), Code::kInUse);
  EXPECT_EQ(std::filesystem::file_size(options.unix_path), 4U);
}

TEST(ServerLife, OptionsThatMakeNoSenseAreRefused) {
  const auto code_of = [](auto change) {
    ServerOptions options;
    change(options);
    const Result<Server> server = Server::start(options);
    return server ? Code{} : server.error().code();
  };

  EXPECT_EQ(code_of([](ServerOptions& options) { options.tick = 0ms; }), Code::kInvalidOption);
  EXPECT_EQ(code_of([](ServerOptions& options) { options.min_session_timeout = 1h; }),
            Code::kInvalidOption);
  EXPECT_EQ(code_of([](ServerOptions& options) { options.words = {"kill"}; }),
            Code::kInvalidOption);
  EXPECT_EQ(code_of([](ServerOptions& options) { options.super_digest = "ann"; }),
            Code::kInvalidOption);
  EXPECT_EQ(code_of([](ServerOptions& options) { options.listen = {"2181"}; }),
            Code::kInvalidOption);
  EXPECT_EQ(code_of([](ServerOptions& options) { options.listen = {"192.0.2.1:2181"}; }),
            Code::kUnreachable);
  EXPECT_EQ(code_of([](ServerOptions& options) { options.tls.emplace(); }), Code::kTls);
}

TEST(ServerLife, AForkedChildHasNoServerAndDisturbsNothing) {
  auto server = std::make_unique<Server>(started());
  Session session = session_on(*server);

  const pid_t child = ::fork();
  if (child == 0) {
    const bool refused = server->stop().error() == Code::kForked;
    server.reset();
    ::_exit(refused ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);

  EXPECT_EQ(status, 0);
  EXPECT_TRUE(session.create("/after", "", {}, deadline_in(20s)));
}

}  // namespace
}  // namespace latchkey
