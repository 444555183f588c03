#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "latchkey/server.hpp"
#include "support/apache_server.hpp"
#include "support/raw_client.hpp"

// What others see of nodes that go by themselves: with their session, unused, or past their time.
// Scripts cannot wait for that, so these few are played by hand.
namespace latchkey::differential {
namespace {

using namespace std::chrono_literals;
using namespace test_support;
using wire::CreateMode;
using wire::Err;
using wire::Op;

constexpr int kTimeoutMs = 10'000;  // Its nodes are made and watched before it is over.
constexpr std::chrono::milliseconds kReap(500);

std::string apache() {
  static const auto server = [] {
    ApacheOptions options;
    options.tick_ms = 250;
    options.min_session_timeout_ms = 500;
    options.max_session_timeout_ms = 60'000;
    options.container_check_ms = static_cast<int>(kReap.count());
    auto started = std::make_unique<ApacheServer>(options);
    started->start();
    return started;
  }();
  return server->connect_string();
}

Server ours() {
  ServerOptions options;
  options.tick = 250ms;
  options.min_session_timeout = 500ms;
  options.max_session_timeout = 60s;
  options.reap_interval = kReap;
  auto server = Server::start(options);
  if (!server) throw std::runtime_error(server.error().message());
  return std::move(*server);
}

RawClient client_of(const std::string& endpoint, int timeout_ms) {
  RawClient client(endpoint, 60s);
  EXPECT_TRUE(client.connect(timeout_ms));
  return client;
}

void make(RawClient& client, const std::string& path, CreateMode mode = CreateMode::kPersistent) {
  const Op op = mode == CreateMode::kContainer ? Op::kCreateContainer : Op::kCreate;
  const auto reply = client.call(op, create_request(path, mode));
  ASSERT_TRUE(reply);
  ASSERT_EQ(reply->header.err, Err::kOk) << path;
}

/// So many events as texts. Neither server promises an order among the nodes of one session, so
/// they are sorted by path; those of one path stay in the order they came in.
std::vector<std::string> events(RawClient& watcher, std::size_t count) {
  std::vector<std::pair<std::string, std::string>> seen;
  while (seen.size() < count) {
    const auto message = watcher.receive();
    if (!message) break;
    const auto event = message->as<wire::WatcherEvent>();
    seen.emplace_back(event->path, std::to_string(static_cast<int>(event->type)) + " state " +
                                       std::to_string(event->state));
  }
  std::ranges::stable_sort(seen, {}, &std::pair<std::string, std::string>::first);
  std::vector<std::string> texts;
  for (const auto& [path, text] : seen) texts.push_back(path + " " + text);
  return texts;
}

std::string stat_of(RawClient& client, const std::string& path) {
  const auto reply = client.call(Op::kExists, wire::PathWatch{path, false});
  if (!reply || reply->header.err != Err::kOk) return "none";
  const auto stat = reply->as<wire::StatReply>()->stat;
  return std::to_string(stat.cversion) + " " + std::to_string(stat.num_children) + " " +
         std::to_string(stat.version);
}

std::vector<std::string> see_a_session_run_out(const std::string& endpoint) {
  RawClient watcher = client_of(endpoint, 60'000);
  RawClient doomed = client_of(endpoint, kTimeoutMs);
  make(watcher, "/run-out");
  make(watcher, "/run-out/stays");
  for (const char* path : {"/run-out/c", "/run-out/a", "/run-out/stays/b"}) {
    make(doomed, path, CreateMode::kEphemeral);
  }
  for (const char* path : {"/run-out/c", "/run-out/a", "/run-out/none"}) {
    EXPECT_TRUE(watcher.call(Op::kExists, wire::PathWatch{path, true}));
  }
  EXPECT_TRUE(watcher.call(Op::kGetChildren, wire::PathWatch{"/run-out", true}));
  EXPECT_TRUE(watcher.call(
      Op::kAddWatch, wire::AddWatch{"/run-out/stays", wire::AddWatchMode::kPersistentRecursive}));

  std::vector<std::string> all = events(watcher, 4);

  EXPECT_TRUE(doomed.ended());
  all.push_back(stat_of(watcher, "/run-out"));
  all.push_back(stat_of(watcher, "/run-out/stays"));
  return all;
}

std::vector<std::string> see_nodes_reaped(const std::string& endpoint) {
  RawClient watcher = client_of(endpoint, 60'000);
  make(watcher, "/reap");
  EXPECT_TRUE(watcher.call(Op::kAddWatch,
                           wire::AddWatch{"/reap", wire::AddWatchMode::kPersistentRecursive}));
  RawClient maker = client_of(endpoint, 60'000);
  make(maker, "/reap/unused", CreateMode::kContainer);
  make(maker, "/reap/used", CreateMode::kContainer);
  make(maker, "/reap/used/child");
  EXPECT_TRUE(maker.call(Op::kDelete, wire::PathVersion{"/reap/used/child", -1}));
  const wire::Create old = create_request("/reap/old", CreateMode::kTtl);
  EXPECT_TRUE(
      maker.call(Op::kCreateTtl, wire::CreateTtl{old.path, {}, old.acl, CreateMode::kTtl, 100}));

  // Created, the child and its end, and the two that go by themselves.
  std::vector<std::string> all = events(watcher, 7);

  all.push_back(stat_of(watcher, "/reap"));
  all.push_back(stat_of(watcher, "/reap/unused"));
  return all;
}

TEST(DifferentialLeaving, ASessionThatRunsOutIsSeenAlike) {
  Server server = ours();

  const auto expected = see_a_session_run_out(apache());

  EXPECT_EQ(see_a_session_run_out(server.connect_string()), expected);
  EXPECT_EQ(expected.size(), 6U);
}

TEST(DifferentialLeaving, NodesThatAreReapedAreSeenAlike) {
  Server server = ours();

  const auto expected = see_nodes_reaped(apache());

  EXPECT_EQ(see_nodes_reaped(server.connect_string()), expected);
  EXPECT_EQ(expected.size(), 9U);
}

}  // namespace
}  // namespace latchkey::differential
