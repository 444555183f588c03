#include <csignal>
#include <optional>

#include <gmock/gmock.h>

#include "integration/own_server.hpp"
#include "latchkey/mutex.hpp"
#include "support/child.hpp"
#include "support/temp_dir.hpp"

/// Sessions and the life of processes: fork, exec, signals, pauses and the ways to an end.
namespace latchkey::test_support {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using wire::Op;

class SessionProcess : public testing::TestWithParam<ServiceKind> {
 protected:
  static std::string server() { return shared_service(GetParam()).connect_string(); }

  static std::vector<std::string> peer(const std::string& deed, const std::string& connect,
                                       const std::string& path, const std::string& ca = {}) {
    std::vector<std::string> command{LATCHKEY_SESSION_PEER, deed, connect, path};
    if (!ca.empty()) command.push_back(ca);
    return command;
  }

  static std::vector<std::string> lines(Child& child) {
    std::vector<std::string> all;
    while (auto line = child.next_line(soon())) all.push_back(*line);
    return all;
  }
};
INSTANTIATE_TEST_SUITE_P(Standalone, SessionProcess, testing::Values(ServiceKind::kStandalone));
INSTANTIATE_TEST_SUITE_P(Embedded, SessionProcess, testing::Values(ServiceKind::kEmbedded));

TEST_P(SessionProcess, H53_AForkedChildFailsFastAndLeavesTheParentAlone) {
  FaultProxy proxy(server());
  // What the parent's threads were holding looks like a leak in the child, which has no threads.
  Child child(peer("fork", proxy.connect_string(), fresh_path()),
              {.environment = {"ASAN_OPTIONS=detect_leaks=0"}});

  EXPECT_THAT(
      lines(child),
      ElementsAre("lock ok", "child async Forked", "child get Forked", "child create Forked",
                  "child wait Forked", "child close Forked", "child state closed",
                  "child lease lost", "child lock Forked", "child try_lock Forked", "child own ok",
                  "child own close ok", "child ended 0", "parent get ok", "parent lease held",
                  "parent release ok", "parent close ok"));
  EXPECT_EQ(child.wait(soon()), (ExitStatus{0, 0}));
  // The parent's connection has seen one close, the parent's own, and it was never broken.
  EXPECT_EQ(proxy.connections_accepted(), 2);
  EXPECT_EQ(proxy.log().count([](const TrafficRecord& record) {
    return record.connection == 1 && record.op == Op::kCloseSession &&
           record.direction == Direction::kToServer;
  }),
            1U);
}

TEST_P(SessionProcess, H54_NoDescriptorIsInheritedByExec) {
  Child plain({"ls", "/proc/self/fd"});
  const std::vector<std::string> expected = lines(plain);

  Child child(peer("exec", server(), "/"));

  EXPECT_EQ(lines(child), expected);
}

#if !defined(__SANITIZE_ADDRESS__)
// Not with the undefined-behaviour sanitizer: it needs descriptors itself to look at an object.
TEST_P(SessionProcess, RunningOutOfDescriptorsIsAnErrorAndPasses) {
  FaultProxy proxy(server());
  Child child(peer("shortage", proxy.connect_string(), "/"));
  ASSERT_EQ(child.next_line(soon()), "open Unreachable");
  ASSERT_EQ(child.next_line(soon()), "open again ok");
  ASSERT_EQ(child.next_line(soon()), "short");

  proxy.cut_all();
  ASSERT_TRUE(eventually([&] { return proxy.connections_open() == 0; }));
  ASSERT_TRUE(child.write("cut\n"));

  EXPECT_THAT(lines(child), ElementsAre("get TimedOut", "get again ok"));
  EXPECT_EQ(child.wait(soon()), (ExitStatus{0, 0}));
}
#endif

TEST_P(SessionProcess, H57_ASignalStormDisturbsNothingAndReachesNoThreadOfOurs) {
  Child child(peer("signals", server(), fresh_path()));

  EXPECT_THAT(lines(child), ElementsAre("failed 0", "signals here only"));
  EXPECT_EQ(child.wait(soon()), (ExitStatus{0, 0}));
}

TEST_P(SessionProcess, H13_AProcessThatWasPausedTooLongKnowsItAtTheFirstLook) {
  const std::string path = fresh_path();
  Child child(peer("hold", server(), path));
  ASSERT_EQ(child.next_line(soon()), "lock ok");
  ASSERT_TRUE(child.write("?\n"));
  ASSERT_EQ(child.next_line(soon()), "lease held");
  Session session = open_session(server());
  Mutex mutex(session, path);

  child.pause();
  const auto next = mutex.lock(soon());  // The paused holder's session expires meanwhile.
  ASSERT_TRUE(ok(next));
  ASSERT_TRUE(child.write("?\n"));
  child.resume();

  EXPECT_EQ(child.next_line(soon()), "lease lost");
  child.close_stdin();
  EXPECT_EQ(child.wait(soon()), (ExitStatus{0, 0}));
}

TEST_P(SessionProcess, H13_AKilledProcessLosesItsNodesWithItsTimeOut) {
  const std::string path = fresh_path();
  Child child(peer("hold", server(), path));
  ASSERT_EQ(child.next_line(soon()), "lock ok");
  Session session = open_session(server());

  child.signal(SIGKILL);

  EXPECT_TRUE(eventually([&] {
    const auto queue = session.children(path, soon());
    return queue ? queue->names.empty() : queue.error() == Code::kNoNode;
  }));
}

TEST_P(SessionProcess, H52_StaticSessionsAndLeasesMayOutliveMain) {
  const std::string path = fresh_path();
  for (int i = 0; i < 5; ++i) {
    Child child(peer("statics", server(), path));

    EXPECT_THAT(lines(child), ElementsAre("leaving"));
    EXPECT_EQ(child.wait(soon()), (ExitStatus{0, 0}));
  }
}

TEST_P(SessionProcess, H52_AProcessMayEndInTheMiddleOfItsWork) {
  for (int i = 0; i < 10; ++i) {
    Child child(peer("busy", server(), "/"));

    EXPECT_THAT(lines(child), ElementsAre("leaving"));
    EXPECT_EQ(child.wait(soon()), (ExitStatus{0, 0}));
  }
}

TEST_P(SessionProcess, H52_AProcessMayEndInTheMiddleOfItsWorkOverTls) {
  const TempDir folder;
  const TlsFiles files = make_tls_files(folder.path());
  const auto secure = own_server(GetParam(), OwnTls{files.server, files.ca});
  secure->start();
  FaultProxy proxy(secure->connect_string(), {.framing = Framing::kOpaque});
  for (int i = 0; i < 4; ++i) {
    Child child(peer("busy", proxy.connect_string(), "/", files.ca.string()));
    ASSERT_EQ(child.next_line(soon()), "leaving");

    // New handshakes all the time while the program is on its way out.
    std::optional<ExitStatus> end;
    const Deadline limit = soon();
    while (!end && !limit.has_passed(BootClock::now())) {
      proxy.cut_all();
      end = child.wait(deadline_in(20ms));
    }

    EXPECT_EQ(end, (ExitStatus{0, 0}));
  }
}

/// Brings a session of its own into a state and destroys every handle, the lease last.
enum class State { kConnecting, kConnected, kWorking, kSuspended, kClosed, kExpired };

void destroy_in(State state, const std::string& server) {
  FaultProxy proxy(server);
  if (state == State::kConnecting) proxy.hold(Hold::kBoth);
  States states;
  // Longer than what is allowed below, but where a time-out has to pass first.
  const bool passes = state == State::kConnecting || state == State::kExpired;
  auto started = Session::start(proxy.connect_string(), watched(states, quick(passes ? 6s : 60s)));
  ASSERT_TRUE(ok(started));
  std::optional<Session> session = *started;
  started = Error(Code::kClosed);
  std::optional<Mutex> mutex;
  std::optional<Lease> lease;
  if (state != State::kConnecting) {
    mutex.emplace(*session, fresh_path());
    auto locked = mutex->lock(soon());
    ASSERT_TRUE(ok(locked));
    lease.emplace(std::move(*locked));
  }
  Recorder<bool> answers;
  const bool working = state == State::kWorking || state == State::kConnecting;
  for (int i = 0; i < (working ? 200 : 0); ++i) {
    session->async(Get{"/"}, soon(), [answers](const auto& node) { answers.add(bool(node)); });
  }
  if (state == State::kSuspended || state == State::kExpired) {
    proxy.refuse();
    proxy.cut_all();
    ASSERT_TRUE(reaches(states, SessionState::kSuspended));
  }
  ASSERT_TRUE(state != State::kExpired || reaches(states, SessionState::kExpired));
  ASSERT_TRUE(state != State::kClosed || ok(session->close(soon())));

  const Instant start = BootClock::now();
  session.reset();
  mutex.reset();
  lease.reset();

  EXPECT_LT(BootClock::now() - start, 15s);
  EXPECT_TRUE(answers.wait_for(working ? 200 : 0));
  proxy.release();
}

TEST_P(SessionProcess, H52_DestructionNeverWaitsInAnyState) {
  for (const State state : {State::kConnecting, State::kConnected, State::kWorking,
                            State::kSuspended, State::kClosed, State::kExpired}) {
    destroy_in(state, server());
  }
}

TEST_P(SessionProcess, H52_LeasesAndMutexesKeepTheSessionTheyNeed) {
  std::optional<Session> session = open_session(server());
  const std::int64_t id = session->id();
  Mutex mutex(*session, fresh_path());

  session.reset();
  auto lease = mutex.lock(soon());

  ASSERT_TRUE(ok(lease));
  EXPECT_EQ(shared_service(GetParam()).connections_of(id), 1);
  EXPECT_TRUE(ok(lease->release(soon())));
}

}  // namespace
}  // namespace latchkey::test_support
