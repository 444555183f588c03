#include <poll.h>

#include <csignal>
#include <filesystem>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/process.hpp"
#include "latchkey/mutex.hpp"
#include "latchkey/server.hpp"
#include "support/child.hpp"
#include "support/eventually.hpp"
#include "support/hex.hpp"
#include "support/raw_client.hpp"
#include "support/sockets.hpp"
#include "support/temp_dir.hpp"

// Sessions that end with their process, and those that must not.
namespace latchkey::test_support {
namespace {

using namespace std::chrono_literals;
using wire::Err;
using wire::Op;

/// Longer than any test waits.
constexpr int kBondTimeoutMs = 600'000;
/// Soon over, but not before somebody whom a busy machine keeps waiting has sent a heartbeat.
constexpr int kShortMs = 5'000;

/// A process that test programs are made into, and its session.
class Peer {
 public:
  Peer(const std::string& connect, int timeout_ms, const char* manner = "")
      : Peer({LATCHKEY_BOUND_PEER, connect, std::to_string(timeout_ms), manner}) {}
  /// It takes up the session that `other` has.
  Peer(const std::string& connect, int timeout_ms, const Peer& other)
      : Peer({LATCHKEY_BOUND_PEER, connect, std::to_string(timeout_ms), "takes",
              std::to_string(other.session_.session_id), other.password_}) {}
  [[nodiscard]] const wire::ConnectResponse& session() const { return session_; }
  [[nodiscard]] Child& process() { return process_; }
  void kill() {
    process_.signal(SIGKILL);
    EXPECT_TRUE(process_.wait(deadline_in(20s)));
  }

 private:
  explicit Peer(const std::vector<std::string>& words) : process_(words) {
    const auto line = process_.wait_for_line("session ", deadline_in(20s));
    if (!line) throw std::runtime_error("the other process has no session");
    std::istringstream(line->substr(8)) >> session_.session_id >> password_;
    session_.password = from_digits(password_);
  }

  Child process_;
  wire::ConnectResponse session_;
  std::string password_;  ///< In hexadecimal digits.
};

/// A number out of /metrics; -1 if it is not there.
int counted_at(const std::string& metrics, const std::string& name) {
  const Deadline deadline = deadline_in(30s);
  const Fd fd = connect_to(Endpoint(metrics), deadline);
  if (!fd || !send_all(fd.get(), "GET /metrics HTTP/1.0\r\n\r\n", deadline)) return -1;
  std::string page;
  while (wait_ready(fd.get(), POLLIN, deadline)) {
    if (receive_some(fd.get(), page) == Received::kEnd) break;
  }
  const std::size_t at = page.find("\nlatchkey_" + name + " ");
  return at == std::string::npos ? -1 : std::stoi(page.substr(at + name.size() + 11));
}

std::size_t our_descriptors() {
  const std::filesystem::directory_iterator entries("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

std::int32_t our_mark() {
  return base::process_mark(base::process_id(), base::start_ticks().value());
}

class ServerBond : public testing::Test {
 protected:
  ServerBond() {
    ServerOptions options;
    options.unix_path = folder_.path() / "socket";
    options.listen = {"127.0.0.1:0"};
    options.metrics = "127.0.0.1:0";
    options.tick = 50ms;
    options.min_session_timeout = 100ms;
    options.max_session_timeout = std::chrono::milliseconds(kBondTimeoutMs);
    server_ = std::make_unique<Server>(Server::start(options).value());
  }

  [[nodiscard]] std::string socket() const { return "unix:" + server_->unix_path().string(); }
  [[nodiscard]] std::string tcp() const { return loopback(server_->port()); }

  [[nodiscard]] int counted(const std::string& name) const {
    return counted_at(server_->metrics_address(), name);
  }
  [[nodiscard]] int ended_with_process() const {
    return counted("sessions_ended_with_process_total");
  }
  [[nodiscard]] int expired() const { return counted("sessions_expired_total"); }

  /// A lock whose holder was killed passes on to us.
  void take_over_from(const std::string& connect, int timeout_ms, const char* after_death) {
    Child holder(
        {LATCHKEY_LOCK_HOLDER, connect, "/lock", std::to_string(timeout_ms), "0", after_death});
    ASSERT_TRUE(holder.wait_for_line("held ", deadline_in(20s)));
    const auto session = Session::open(socket(), {}, deadline_in(20s));
    ASSERT_TRUE(session);
    Mutex mutex(*session, "/lock");

    holder.signal(SIGKILL);

    const auto lease = mutex.lock(deadline_in(60s));
    EXPECT_TRUE(lease) << lease.error();
  }

  const TempDir folder_;
  std::unique_ptr<Server> server_;
};

TEST_F(ServerBond, AKilledHoldersLockPassesOnWithoutTheTimeout) {
  take_over_from(socket(), kBondTimeoutMs, "at-once");

  EXPECT_EQ(ended_with_process(), 1);
  EXPECT_EQ(expired(), 0);
}

TEST_F(ServerBond, WhoAskedForAnOrdinarySessionIsWaitedFor) {
  take_over_from(socket(), kShortMs, "timeout");

  EXPECT_EQ(ended_with_process(), 0);
  EXPECT_EQ(expired(), 1);
}

/// What it runs under the lock may outlive it.
TEST_F(ServerBond, H97_TheCommandsSessionsDoNotEndWithIt) {
  Child command({LATCHKEY_COMMAND, "run", "--connect", socket(), "job", "--", "cat"});
  ASSERT_TRUE(command.write("it runs\n"));
  ASSERT_TRUE(command.wait_for_line("it runs", deadline_in(20s)));

  EXPECT_EQ(counted("sessions"), 1);
  EXPECT_EQ(counted("sessions_bound_to_process"), 0);
  Child holder({LATCHKEY_LOCK_HOLDER, socket(), "/lock", std::to_string(kBondTimeoutMs)});
  ASSERT_TRUE(holder.wait_for_line("held ", deadline_in(20s)));
  EXPECT_EQ(counted("sessions_bound_to_process"), 1) << "a library's does";
}

TEST_F(ServerBond, OverTcpNobodyIsKnownAndTheTimeoutRules) {
  take_over_from(tcp(), kShortMs, "at-once");
  Peer peer(tcp(), kShortMs);
  peer.kill();

  EXPECT_TRUE(eventually([&] { return expired() == 2; }, deadline_in(60s)));
  EXPECT_EQ(ended_with_process(), 0);
}

TEST_F(ServerBond, WhoIsNotWhoItSaysIsWaitedFor) {
  Peer peer(socket(), kShortMs, "lies");
  peer.kill();

  EXPECT_TRUE(eventually([&] { return expired() == 1; }, deadline_in(60s)));
  EXPECT_EQ(ended_with_process(), 0);
}

/// Whoever speaks is not who connected, and lives on.
TEST_F(ServerBond, ASocketThatWasHandedOnMakesAnOrdinarySession) {
  Peer connector(socket(), kBondTimeoutMs, "hands-on");
  EXPECT_EQ(counted("sessions_bound_to_process"), 0);
  Peer other(socket(), kBondTimeoutMs);

  connector.kill();
  other.kill();

  EXPECT_TRUE(eventually([&] { return ended_with_process() == 1; })) << "the other's";
  EXPECT_EQ(counted("sessions"), 1);
}

TEST_F(ServerBond, WhoRunsAnotherProgramOrIsStoppedHasNotEnded) {
  Peer runs(socket(), kBondTimeoutMs, "executes");
  ASSERT_TRUE(runs.process().write("still here\n"));
  ASSERT_TRUE(runs.process().wait_for_line("still here", deadline_in(20s)));
  Peer stopped(socket(), kBondTimeoutMs);
  stopped.process().pause();
  Peer other(socket(), kBondTimeoutMs);

  other.kill();

  EXPECT_TRUE(eventually([&] { return ended_with_process() == 1; }));
  EXPECT_EQ(counted("sessions_bound_to_process"), 2);
  runs.kill();
  stopped.kill();
  EXPECT_TRUE(eventually([&] { return ended_with_process() == 3; }));
}

/// A child cannot use its parent's session, so nobody is left who could.
TEST_F(ServerBond, H53_AForkedChildThatKeepsTheSocketDoesNotKeepTheSession) {
  Peer peer(socket(), kBondTimeoutMs, "forks");
  peer.kill();

  EXPECT_TRUE(eventually([&] { return ended_with_process() == 1; }));
}

TEST_F(ServerBond, ASessionThatAnotherProcessTookUpDoesNotEndWithTheFirst) {
  Peer first(socket(), kBondTimeoutMs);
  Peer second(socket(), kBondTimeoutMs);
  RawClient ordinary(socket());
  RawClient bound(socket());
  ASSERT_EQ(ordinary.connect(kBondTimeoutMs, first.session())->session_id,
            first.session().session_id);
  ASSERT_EQ(bound.connect(kBondTimeoutMs, second.session(), 0, our_mark())->session_id,
            second.session().session_id);

  first.kill();
  second.kill();

  // A third, whose end comes after theirs, has been noticed.
  Peer third(socket(), kBondTimeoutMs);
  third.kill();
  EXPECT_TRUE(eventually([&] { return ended_with_process() >= 1; }));
  EXPECT_EQ(ended_with_process(), 1);
  for (RawClient* client : {&ordinary, &bound}) {
    EXPECT_TRUE(client->call(Op::kExists, wire::PathWatch{"/", false}));
  }
}

/// The socket closes before the process is gone, and after a restart nobody is known.
TEST_F(ServerBond, AfterARestartTheTimeoutRulesUntilTheClientIsBack) {
  Peer lost(socket(), kShortMs);
  ASSERT_TRUE(server_->restart());

  lost.kill();

  EXPECT_TRUE(eventually([&] { return expired() == 1; }, deadline_in(60s)));
  take_over_from(socket(), kBondTimeoutMs, "at-once");
  EXPECT_EQ(ended_with_process(), 1);
}

/// Or the descriptors of a process that opens many would add up.
TEST_F(ServerBond, ASessionThatWasClosedIsForgotten) {
  const std::size_t before = our_descriptors();
  for (int i = 0; i < 100; ++i) {
    RawClient client(socket());
    ASSERT_TRUE(client.connect(kBondTimeoutMs, {}, 0, our_mark()));
    ASSERT_TRUE(client.call(Op::kCloseSession, wire::Empty{}));
  }

  EXPECT_TRUE(eventually([&] { return our_descriptors() < before + 50; }));
  EXPECT_TRUE(eventually([&] { return counted("processes_watched") == 0; }));
}

/// Left, not closed: they are all still there.
TEST_F(ServerBond, H89_SessionsOfOneProcessTakeOneDescriptor) {
  constexpr int kSessions = 400;
  const std::size_t before = our_descriptors();

  for (int i = 0; i < kSessions; ++i) {
    ASSERT_TRUE(RawClient(socket()).connect(kBondTimeoutMs, {}, 0, our_mark()));
  }

  EXPECT_EQ(counted("sessions_bound_to_process"), kSessions);
  EXPECT_EQ(counted("processes_watched"), 1);
  EXPECT_TRUE(eventually([&] { return our_descriptors() < before + 50; })) << our_descriptors();
}

TEST_F(ServerBond, AllSessionsOfAProcessEndWithItThoughOneWasClosedBefore) {
  Peer several(socket(), kBondTimeoutMs, "closes");
  Peer other(socket(), kBondTimeoutMs);
  EXPECT_EQ(counted("sessions_bound_to_process"), 3);
  EXPECT_EQ(counted("processes_watched"), 2);

  several.kill();

  // Counted when they are decided, gone when that is stored.
  EXPECT_TRUE(eventually([&] { return ended_with_process() == 2; }));
  EXPECT_TRUE(eventually([&] { return counted("sessions") == 1; })) << "that of the other process";
  EXPECT_EQ(counted("processes_watched"), 1);
}

// H87: who may not have a session does not say with whom it ends.

TEST_F(ServerBond, H87_WhoGuessesThePasswordWrongDoesNotMoveTheSession) {
  Peer owner(socket(), kBondTimeoutMs);
  wire::ConnectResponse guess = owner.session();
  guess.password->back() ^= 1;
  RawClient thief(socket());

  const auto answer = thief.connect(kBondTimeoutMs, guess, 0, our_mark());

  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->session_id, 0);
  EXPECT_EQ(counted("attach_refused_total"), 1);
  owner.kill();
  EXPECT_TRUE(eventually([&] { return ended_with_process() == 1; })) << "with its own process";
}

/// From one process to a second and back, each time with the mark of the one that has it.
TEST_F(ServerBond, H87_ASessionThatMovesEndsWithTheLastProcessThatTookItUp) {
  Peer first(socket(), kBondTimeoutMs);
  RawClient ours(socket());
  ASSERT_EQ(ours.connect(kBondTimeoutMs, first.session(), 0, our_mark())->session_id,
            first.session().session_id);
  EXPECT_EQ(counted("processes_watched"), 1) << "the first has none left";
  Peer last(socket(), kBondTimeoutMs, first);
  ASSERT_EQ(last.session().session_id, first.session().session_id);

  first.kill();
  EXPECT_TRUE(ours.ended()) << "it was taken from us, by its password";
  EXPECT_EQ(counted("sessions_bound_to_process"), 1);
  last.kill();

  EXPECT_TRUE(eventually([&] { return ended_with_process() == 1; }));
  EXPECT_TRUE(eventually([&] { return counted("sessions") == 0; }));
}

TEST_F(ServerBond, H87_WhoTakesASessionUpUnderAFalseMarkHasAnOrdinaryOne) {
  Peer first(socket(), kBondTimeoutMs);
  RawClient ours(socket());
  const std::int32_t not_ours =
      base::process_mark(base::process_id(), base::start_ticks().value() + 1);

  ASSERT_EQ(ours.connect(kBondTimeoutMs, first.session(), 0, not_ours)->session_id,
            first.session().session_id);

  EXPECT_EQ(counted("sessions_bound_to_process"), 0);
  first.kill();
  EXPECT_TRUE(ours.call(Op::kExists, wire::PathWatch{"/", false}));
}

/// A crowd of processes leaves the connections their descriptors; who comes too late to be watched
/// has an ordinary session.
TEST(ServerBondRoom, H89_ProcessesBeyondTheLimitAreLeftToTheirTimeout) {
  constexpr int kWatched = 12;  // A quarter of the 48 that are not for the journal.
  const TempDir folder;
  const std::string socket = (folder.path() / "socket").string();
  const std::string address = loopback(free_port());
  const std::string metrics = loopback(free_port());
  Child server({"prlimit", "--nofile=64", LATCHKEY_COMMAND, "serve", "--listen", address, "--unix",
                socket, "--metrics", metrics, "--data", (folder.path() / "data").string(),
                "--max-session-timeout", std::to_string(kBondTimeoutMs) + "ms"});
  ASSERT_TRUE(server.wait_for_line("serves on", deadline_in(60s)));
  const auto counted = [&](const std::string& name) { return counted_at(metrics, name); };

  std::vector<std::unique_ptr<Peer>> crowd;
  for (int i = 0; i < kWatched + 2; ++i) {
    crowd.push_back(std::make_unique<Peer>("unix:" + socket, kBondTimeoutMs));
  }

  EXPECT_EQ(counted("sessions"), kWatched + 2);
  EXPECT_EQ(counted("processes_watched"), kWatched);
  EXPECT_EQ(counted("sessions_bound_to_process"), kWatched);
  EXPECT_EQ(counted("bonds_refused_total"), 2);
  EXPECT_TRUE(RawClient(address).connect(10'000));
  crowd.front()->kill();
  ASSERT_TRUE(eventually([&] { return counted("sessions_ended_with_process_total") == 1; }));
  const Peer late("unix:" + socket, kBondTimeoutMs);
  EXPECT_EQ(counted("processes_watched"), kWatched) << "there is room again";
}

}  // namespace
}  // namespace latchkey::test_support
