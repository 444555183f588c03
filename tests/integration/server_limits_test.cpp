#include <fcntl.h>
#include <sys/file.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "latchkey/server.hpp"
#include "support/embedded_server.hpp"
#include "support/eventually.hpp"
#include "support/raw_client.hpp"
#include "support/sockets.hpp"
#include "support/temp_dir.hpp"

// What a running server holds at most, and what it does without.
namespace latchkey::test_support {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using wire::CreateMode;
using wire::Err;
using wire::Op;

Server started_with_limits(ServerOptions options) {
  Result<Server> server = Server::start(std::move(options));
  if (!server) throw std::runtime_error(server.error().message());
  return std::move(*server);
}

RawClient client_of(const Server& server) {
  RawClient client(server.connect_string(), 60s);
  EXPECT_TRUE(client.connect(60'000));
  return client;
}

Err create(RawClient& client, const std::string& path, std::string data = {},
           CreateMode mode = CreateMode::kPersistent) {
  wire::Create request = create_request(path, mode);
  request.data = std::move(data);
  const Op op = mode == CreateMode::kContainer ? Op::kCreateContainer : Op::kCreate;
  const auto reply = client.call(op, request);
  return reply ? reply->header.err : Err::kConnectionLoss;
}

TEST(ServerBounds, H94_SessionsBeyondTheLimitAreTurnedAway) {
  ServerOptions options;
  options.max_sessions = 2;
  Server server = started_with_limits(options);
  RawClient first = client_of(server);
  RawClient second = client_of(server);

  RawClient third(server.connect_string());
  EXPECT_FALSE(third.connect(10'000));

  EXPECT_EQ(second.call(Op::kCloseSession, wire::Empty{})->header.err, Err::kOk);
  RawClient fourth(server.connect_string());
  EXPECT_TRUE(fourth.connect(10'000));
}

/// Behind a Unix socket the user stands for the address.
TEST(ServerBounds, H94_SessionsOfOneUserAreBoundedConnectedOrNot) {
  const TempDir folder;
  ServerOptions options;
  options.unix_path = folder.path() / "s.sock";
  options.max_sessions_per_address = 2;
  options.metrics = "127.0.0.1:0";
  Server server = started_with_limits(options);
  RawClient first = client_of(server);
  RawClient second = client_of(server);
  second.close();

  RawClient third(server.connect_string());
  EXPECT_FALSE(third.connect(10'000));

  const Endpoint metrics(server.metrics_address());
  EXPECT_THAT(ask_word(metrics, "GET /metrics HTTP/1.0\r\n\r\n", deadline_in(20s)),
              HasSubstr("\nlatchkey_sessions_refused_total 1\n"));
  EXPECT_EQ(first.call(Op::kCloseSession, wire::Empty{})->header.err, Err::kOk);
  RawClient fourth(server.connect_string());
  EXPECT_TRUE(fourth.connect(10'000));
}

TEST(ServerBounds, H94_SessionsFromTheLoopbackCountForNobody) {
  ServerOptions options;
  options.max_sessions_per_address = 1;
  Server server = started_with_limits(options);

  for (int i = 0; i < 5; ++i) EXPECT_TRUE(RawClient(server.connect_string()).connect(10'000));
}

TEST(ServerBounds, WhatOneConnectionMayHoldAllMay) {
  ServerOptions options;
  options.max_buffered = 1'000'000;

  const Result<Server> server = Server::start(options);

  ASSERT_FALSE(server);
  EXPECT_EQ(server.error(), Code::kInvalidOption);
  EXPECT_THAT(server.error().message(), HasSubstr("max_output_per_connection"));
}

TEST(ServerBounds, H94_NodesBeyondTheLimitAreRefused) {
  ServerOptions options;
  options.max_nodes = 6;  // Four are the system's.
  Server server = started_with_limits(options);
  RawClient client = client_of(server);
  EXPECT_EQ(create(client, "/a"), Err::kOk);
  EXPECT_EQ(create(client, "/b"), Err::kOk);

  EXPECT_EQ(create(client, "/c"), Err::kQuotaExceeded);

  EXPECT_TRUE(client.call(Op::kDelete, wire::PathVersion{"/a", -1}));
  EXPECT_EQ(create(client, "/c"), Err::kOk);
}

TEST(ServerBounds, H94_BytesBeyondTheLimitAreRefused) {
  ServerOptions options;
  options.max_bytes = 10'000;
  Server server = started_with_limits(options);
  RawClient client = client_of(server);
  EXPECT_EQ(create(client, "/a", std::string(6'000, 'x')), Err::kOk);

  EXPECT_EQ(create(client, "/b", std::string(6'000, 'x')), Err::kQuotaExceeded);
  const auto set = [&](std::size_t size) {
    return client.call(Op::kSetData, wire::SetData{"/a", std::string(size, 'x'), -1})->header.err;
  };
  EXPECT_EQ(set(11'000), Err::kQuotaExceeded);
  EXPECT_EQ(set(9'000), Err::kOk) << "in place of what was there, it fits";

  EXPECT_TRUE(client.call(Op::kDelete, wire::PathVersion{"/a", -1}));
  EXPECT_EQ(create(client, "/b", std::string(6'000, 'x')), Err::kOk);
}

TEST(ServerBounds, H94_EphemeralNodesBeyondTheLimitAreRefused) {
  ServerOptions options;
  options.max_ephemeral_bytes_per_session = 20'000;
  Server server = started_with_limits(options);
  RawClient first = client_of(server);
  RawClient second = client_of(server);
  const auto make = [](RawClient& client, char letter) {
    const std::string path = "/" + std::string(9'990, letter);
    return client.call(Op::kCreate, create_request(path, CreateMode::kEphemeral))->header.err;
  };
  EXPECT_EQ(make(first, 'a'), Err::kOk);
  EXPECT_EQ(make(first, 'b'), Err::kOk);

  EXPECT_EQ(make(first, 'c'), Err::kQuotaExceeded);

  EXPECT_EQ(make(second, 'c'), Err::kOk) << "it is for each session";
  EXPECT_EQ(create(first, "/persistent"), Err::kOk);
}

TEST(ServerBounds, H94_WatchesBeyondTheLimitsAreRefused) {
  ServerOptions options;
  options.max_watches = 3;
  options.max_watches_per_connection = 2;
  Server server = started_with_limits(options);
  RawClient first = client_of(server);
  RawClient second = client_of(server);
  const auto watch = [](RawClient& client, const char* path) {
    return client.call(Op::kExists, wire::PathWatch{path, true})->header.err;
  };
  EXPECT_EQ(watch(first, "/a"), Err::kNoNode);
  EXPECT_EQ(watch(first, "/b"), Err::kNoNode);

  EXPECT_EQ(watch(first, "/c"), Err::kQuotaExceeded);
  EXPECT_EQ(watch(second, "/a"), Err::kNoNode);
  EXPECT_EQ(watch(second, "/b"), Err::kQuotaExceeded);
}

TEST(ServerBounds, H94_LongWatchedPathsBeyondTheLimitAreRefused) {
  ServerOptions options;
  options.max_watch_bytes = 3'000;
  Server server = started_with_limits(options);
  RawClient first = client_of(server);
  RawClient second = client_of(server);
  const auto watch = [](RawClient& client, char letter) {
    const wire::PathWatch request{"/" + std::string(1'999, letter), true};
    return client.call(Op::kExists, request)->header.err;
  };
  EXPECT_EQ(watch(first, 'a'), Err::kNoNode);

  EXPECT_EQ(watch(second, 'b'), Err::kQuotaExceeded);
}

TEST(ServerBounds, H90_OutputBeyondTheLimitEndsTheConnection) {
  ServerOptions options;
  options.max_output_per_connection = 100'000;
  options.metrics = "127.0.0.1:0";
  Server server = started_with_limits(options);
  RawClient slow = client_of(server);
  RawClient writer = client_of(server);
  const std::string path = "/" + std::string(1'000, 'x');
  ASSERT_EQ(create(writer, path), Err::kOk);
  ASSERT_TRUE(slow.call(Op::kAddWatch, wire::AddWatch{path, wire::AddWatchMode::kPersistent}));
  wire::Multi multi;
  multi.ops.assign(500, {Op::kSetData, wire::SetData{path, "x", -1}});

  // Beyond what the two sockets take, too.
  for (int i = 0; i < 60; ++i) ASSERT_TRUE(writer.call(Op::kMulti, multi));

  EXPECT_TRUE(slow.ended());
  const Endpoint metrics(server.metrics_address());
  EXPECT_THAT(ask_word(metrics, "GET /metrics HTTP/1.0\r\n\r\n", deadline_in(20s)),
              HasSubstr("\nlatchkey_slow_readers_closed_total 1\n"));
}

TEST(ServerBounds, H90_OutputOfAllBeyondTheLimitEndsSomeConnections) {
  ServerOptions options;
  options.max_output_per_connection = 4'000'000;
  options.max_buffered = 4'000'000;
  options.metrics = "127.0.0.1:0";
  Server server = started_with_limits(options);
  RawClient writer = client_of(server);
  ASSERT_EQ(create(writer, "/large", std::string(1'000'000, 'x')), Err::kOk);
  std::vector<RawClient> slow;
  for (int i = 0; i < 10; ++i) {
    slow.push_back(client_of(server));
    for (int k = 0; k < 20; ++k) slow.back().add(Op::kGetData, wire::PathWatch{"/large", false});
    ASSERT_TRUE(slow.back().flush());
  }

  const Endpoint metrics(server.metrics_address());
  const auto page = [&] {
    return ask_word(metrics, "GET /metrics HTTP/1.0\r\n\r\n", deadline_in(20s));
  };
  EXPECT_TRUE(eventually([&] {
    const std::string text = page();
    return !text.empty() && text.find("\nlatchkey_crowded_out_total 0\n") == std::string::npos;
  }));
  EXPECT_THAT(page(), HasSubstr("\nlatchkey_slow_readers_closed_total 0\n"));
  const auto reply = writer.call(Op::kGetData, wire::PathWatch{"/large", false});
  ASSERT_TRUE(reply) << "who reads is served";
  EXPECT_EQ(reply->header.err, Err::kOk);
}

TEST(ServerBounds, H93_UnusedContainersAndOldTtlNodesAreReaped) {
  ServerOptions options;
  options.reap_interval = 20ms;
  Server server = started_with_limits(options);
  RawClient client = client_of(server);
  ASSERT_EQ(create(client, "/used", {}, CreateMode::kContainer), Err::kOk);
  ASSERT_EQ(create(client, "/used/child"), Err::kOk);
  ASSERT_EQ(create(client, "/fresh", {}, CreateMode::kContainer), Err::kOk);
  ASSERT_EQ(create(client, "/old", {}, CreateMode::kContainer), Err::kOk);
  ASSERT_EQ(create(client, "/old/child"), Err::kOk);
  const auto ttl = [&](const char* path, std::int64_t ms) {
    const wire::Create node = create_request(path, CreateMode::kTtl);
    return client.call(Op::kCreateTtl, wire::CreateTtl{path, {}, node.acl, node.mode, ms})
        ->header.err;
  };
  ASSERT_EQ(ttl("/short", 20), Err::kOk);
  ASSERT_EQ(ttl("/long", 1'000'000), Err::kOk);
  ASSERT_TRUE(client.call(Op::kDelete, wire::PathVersion{"/old/child", -1}));

  const auto is_there = [&](const char* path) {
    return client.call(Op::kExists, wire::PathWatch{path, false})->header.err == Err::kOk;
  };
  EXPECT_TRUE(eventually([&] { return !is_there("/old") && !is_there("/short"); }));
  for (const char* path : {"/used", "/fresh", "/long"}) EXPECT_TRUE(is_there(path)) << path;
}

/// Heartbeats cannot be heard while a long answer blocks the connection.
TEST(ServerBounds, H85_ASessionThatReadsALongAnswerSlowlyLives) {
  constexpr int kTimeoutMs = 5'000;
  ServerOptions options;
  options.tick = 50ms;
  options.min_session_timeout = 100ms;
  Server server = started_with_limits(options);
  RawClient writer = client_of(server);
  ASSERT_EQ(create(writer, "/large", std::string(1'000'000, 'x')), Err::kOk);
  RawClient slow(server.connect_string(), 60s);
  const auto session = slow.connect(kTimeoutMs);
  ASSERT_TRUE(session);
  constexpr int kReads = 15;
  for (int i = 0; i < kReads; ++i) slow.add(Op::kGetData, wire::PathWatch{"/large", false});
  ASSERT_TRUE(slow.flush());

  // Some of it now and then, for three time-outs, and a heartbeat each time.
  const auto receive_large = [&] {
    auto reply = slow.receive();
    while (reply && reply->body.empty()) reply = slow.receive();
    return reply.has_value();
  };
  int read = 0;
  const Instant start = BootClock::now();
  const Duration span = 3 * std::chrono::milliseconds(kTimeoutMs);
  ASSERT_TRUE(eventually(
      [&] {
        slow.add(Op::kPing, wire::Empty{});
        static_cast<void>(slow.flush());
        const Duration passed = BootClock::now() - start;
        if (read < (kReads - 1) * passed / span && receive_large()) ++read;
        return passed >= span;
      },
      deadline_in(60s)));

  while (read < kReads && receive_large()) ++read;
  EXPECT_EQ(read, kReads);
  RawClient again(server.connect_string(), 60s);
  const auto attached = again.connect(kTimeoutMs, *session);
  ASSERT_TRUE(attached);
  EXPECT_EQ(attached->session_id, session->session_id);
}

// Descriptors.

TEST(ServerDescriptors, H89_WhenTheyRunOutTheJournalStillHasSome) {
  EmbeddedOptions options;
  options.prefix = {"prlimit", "--nofile=64"};
  EmbeddedServer server(LATCHKEY_COMMAND, options);
  server.start();
  RawClient writer(server.connect_string(), 60s);
  ASSERT_TRUE(writer.connect(60'000));
  std::vector<RawClient> idle;
  for (int i = 0; i < 80; ++i) {
    idle.emplace_back(server.connect_string());
    static_cast<void>(idle.back().dial());
  }

  // More than a segment, so that new files are needed.
  for (int i = 0; i < 40; ++i) {
    ASSERT_EQ(create(writer, "/" + std::to_string(i), std::string(900'000, 'x')), Err::kOk)
        << server.log();
  }

  // It has accepted as many as it can by then, but may not have said so.
  EXPECT_TRUE(eventually([&] {
    return server.log().find("few descriptors left") != std::string::npos;
  })) << server.log();
  EXPECT_TRUE(server.running());
  idle.clear();
  EXPECT_TRUE(
      eventually([&] { return RawClient(server.connect_string()).connect(10'000).has_value(); }));
}

// Names and folders.

TEST(ServerNames, AFolderThatSomebodyElseHasLockedIsNoObstacle) {
  const TempDir folder;
  ServerOptions options;
  options.unix_path = folder.path() / "s.sock";
  const Fd lock(::open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(::flock(lock.get(), LOCK_EX), 0);

  Server server = started_with_limits(options);

  RawClient client = client_of(server);
  EXPECT_EQ(create(client, "/a"), Err::kOk);
  const std::filesystem::directory_iterator names(folder.path());
  EXPECT_EQ(std::distance(begin(names), end(names)), 1) << "only the socket is left there";
}

TEST(ServerNames, AFolderOfApachesOrOfSomebodyElseIsRefused) {
  for (const char* name : {"version-2", "thesis.tex"}) {
    const TempDir folder;
    std::filesystem::create_directory(folder.path() / name);
    ServerOptions options;
    options.data_folder = folder.path();

    const Result<Server> server = Server::start(options);

    ASSERT_FALSE(server) << name;
    EXPECT_EQ(server.error(), Code::kStorage);
    EXPECT_THAT(server.error().message(), HasSubstr(name));
    const std::filesystem::directory_iterator names(folder.path());
    EXPECT_EQ(std::distance(begin(names), end(names)), 1) << "nothing was added";
  }
}

/// What a fencing token is made of never goes back, whatever is done to the journal.
TEST(ServerNames, H19_WithoutItsJournalAServerAsksAndThenItsZxidsStillGrow) {
  const TempDir folder;
  ServerOptions options;
  options.data_folder = folder.path() / "data";
  std::int64_t before = 0;
  {
    Server server = started_with_limits(options);
    RawClient client = client_of(server);
    ASSERT_EQ(create(client, "/a"), Err::kOk);
    before = client.call(Op::kExists, wire::PathWatch{"/a", false})->header.zxid;
  }
  for (const auto& entry : std::filesystem::directory_iterator(options.data_folder)) {
    if (entry.path().filename().string().starts_with("journal-")) {
      std::filesystem::remove(entry.path());
    }
  }

  const Result<Server> refused = Server::start(options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), Code::kDamaged);
  EXPECT_THAT(refused.error().message(), HasSubstr("--cut-damage"));
  options.on_damage = ServerOptions::Damage::kCut;
  Server server = started_with_limits(options);

  RawClient client = client_of(server);
  const auto answer = client.call(Op::kExists, wire::PathWatch{"/a", false});
  EXPECT_EQ(answer->header.err, Err::kNoNode);
  EXPECT_GT(answer->header.zxid, before);
}

TEST(ServerNames, H77_DamageCanBeCutAndWhatCameBeforeItIsThere) {
  const TempDir folder;
  ServerOptions options;
  options.data_folder = folder.path() / "data";
  std::int64_t before = 0;
  {
    Server server = started_with_limits(options);
    RawClient client = client_of(server);
    for (const char* path : {"/a", "/b", "/c"}) ASSERT_EQ(create(client, path), Err::kOk);
    before = client.call(Op::kExists, wire::PathWatch{"/a", false})->header.zxid;
  }
  std::filesystem::path segment;
  for (const auto& entry : std::filesystem::directory_iterator(options.data_folder)) {
    if (entry.path().filename().string().starts_with("journal-")) segment = entry.path();
  }
  {
    // Epoch, session, /a, /b, /c: the last one.
    std::fstream file(segment, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(5 * 512 + 100);
    file.put('\x55');
  }
  ASSERT_EQ(Server::start(options).error(), Code::kDamaged);
  options.on_damage = ServerOptions::Damage::kCut;

  Server server = started_with_limits(options);

  EXPECT_THAT(server.recovered(), HasSubstr("CUT OFF"));
  EXPECT_TRUE(
      std::filesystem::exists(options.data_folder / ("damaged-" + segment.filename().string())));
  RawClient client = client_of(server);
  const auto there = client.call(Op::kExists, wire::PathWatch{"/b", false});
  EXPECT_EQ(there->header.err, Err::kOk);
  EXPECT_GT(there->header.zxid, before);
  EXPECT_EQ(client.call(Op::kExists, wire::PathWatch{"/c", false})->header.err, Err::kNoNode);
}

}  // namespace
}  // namespace latchkey::test_support
