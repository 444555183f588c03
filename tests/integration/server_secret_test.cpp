#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "latchkey/server.hpp"
#include "support/embedded_server.hpp"
#include "support/raw_client.hpp"
#include "support/temp_dir.hpp"

// What a session's id and password let a stranger guess of another's.
namespace latchkey {
namespace {

using test_support::EmbeddedServer;
using test_support::RawClient;
using test_support::TempDir;

constexpr int kSessions = 400;
constexpr int kIdBits = 62;  // Ids are positive, and far from the numbers that mark containers.
constexpr int kWordBits = 64;

/// One of the numbers that every session gets, session by session.
using Column = std::vector<std::uint64_t>;

/// Session ids, and the two halves of passwords.
std::array<Column, 3> open_sessions(const std::string& endpoint) {
  std::array<Column, 3> columns;
  for (int i = 0; i < kSessions; ++i) {
    const auto session = RawClient(endpoint).connect(40'000);
    EXPECT_TRUE(session && session->password && session->password->size() == 16);
    if (testing::Test::HasFailure()) break;
    std::array<std::uint64_t, 2> halves{};
    std::memcpy(halves.data(), session->password->data(), sizeof halves);
    columns[0].push_back(static_cast<std::uint64_t>(session->session_id));
    columns[1].push_back(halves[0]);
    columns[2].push_back(halves[1]);
  }
  return columns;
}

/// Every bit is set in half of them, up to eight standard deviations. That is to say: never wrong,
/// and false for a constant, a clock and the upper bits of a counter.
void expect_even(const Column& words, int bits, const std::string& what) {
  const double count = static_cast<double>(words.size());
  for (int bit = 0; bit < bits; ++bit) {
    int ones = 0;
    for (const std::uint64_t word : words) ones += static_cast<int>(word >> bit & 1U);
    EXPECT_NEAR(ones, count / 2, 4 * std::sqrt(count)) << what << ", bit " << bit;
  }
}

/// From one to the next every bit changes half of the time, and no step is made twice: none counts.
void expect_unforeseeable(const Column& words, int bits, const std::string& what) {
  expect_even(words, bits, what);
  Column changes;
  std::set<std::uint64_t> steps;
  for (std::size_t i = 1; i < words.size(); ++i) {
    changes.push_back(words[i] ^ words[i - 1]);
    EXPECT_TRUE(steps.insert(words[i] - words[i - 1]).second) << what << " " << i << " counts on";
    if (testing::Test::HasFailure()) return;
  }
  expect_even(changes, bits, what + ", changes");
}

/// The sessions of several runs. None repeats anything of another.
class Sessions {
 public:
  void add(const std::string& endpoint, const std::string& run) {
    const std::array<Column, 3> columns = open_sessions(endpoint);
    expect_unforeseeable(columns[0], kIdBits, run + ": ids");
    expect_unforeseeable(columns[1], kWordBits, run + ": passwords");
    expect_unforeseeable(columns[2], kWordBits, run + ": passwords, second half");
    for (std::size_t i = 0; i < columns.size(); ++i) {
      for (std::size_t k = 0; k < columns[i].size() && !testing::Test::HasFailure(); ++k) {
        EXPECT_TRUE(seen_.insert(columns[i][k]).second)
            << run << ": session " << k << " has what was given out before, column " << i;
      }
    }
  }

 private:
  std::set<std::uint64_t> seen_;
};

Server started_with_secrets(const ServerOptions& options) {
  Result<Server> server = Server::start(options);
  if (!server) throw std::runtime_error(server.error().message());
  return std::move(*server);
}

TEST(ServerSecret, H87_NoPasswordOrIdIsForeseeableOrRepeatsOverARestart) {
  Sessions sessions;
  TempDir folder;
  for (const bool is_stored : {false, true}) {
    const std::string where = is_stored ? "folder" : "memory";
    ServerOptions options;
    if (is_stored) options.data_folder = folder.path() / "data";
    Server server = started_with_secrets(options);
    sessions.add(server.connect_string(), where + ", first run");
    ASSERT_TRUE(server.restart());
    sessions.add(server.connect_string(), where + ", second run");
  }
}

/// Randomness that begins alike in every process would show only here.
TEST(ServerSecret, H87_NoPasswordOrIdRepeatsInAnotherProcess) {
  Sessions sessions;
  EmbeddedServer server(LATCHKEY_COMMAND);
  server.start();
  sessions.add(server.connect_string(), "a process");
  server.kill();
  server.start();
  sessions.add(server.connect_string(), "the next on its folder");
  EmbeddedServer other(LATCHKEY_COMMAND);
  other.start();
  sessions.add(other.connect_string(), "another one");
}

}  // namespace
}  // namespace latchkey
