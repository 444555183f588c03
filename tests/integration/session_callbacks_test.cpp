#include <algorithm>
#include <atomic>
#include <future>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <gmock/gmock.h>

#include "integration/session_fixture.hpp"
#include "latchkey/asio.hpp"
#include "latchkey/mutex.hpp"

/// User code: where it runs, what it may do, and what it is told.
namespace latchkey::test_support {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using wire::Op;

class SessionCallbacks : public testing::TestWithParam<ServiceKind> {
 protected:
  static Service& service() { return shared_service(GetParam()); }
  static std::string server() { return service().follower(); }
  static Session open(SessionOptions options = quick()) {
    return open_session(server(), std::move(options));
  }
};
INSTANTIATE_TEST_SUITE_P(Standalone, SessionCallbacks, testing::Values(ServiceKind::kStandalone));
INSTANTIATE_TEST_SUITE_P(Embedded, SessionCallbacks, testing::Values(ServiceKind::kEmbedded));

/// An io_context with threads that run it until the object goes.
class Runner {
 public:
  explicit Runner(int threads) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { context.run(); });
  }
  ~Runner() {
    work_.reset();
    for (std::thread& thread : threads_) thread.join();
  }

  asio::io_context context;

 private:
  asio::executor_work_guard<asio::io_context::executor_type> work_{context.get_executor()};
  std::vector<std::thread> threads_;
};

TEST_P(SessionCallbacks, H56_ABlockedHandlerHoldsUpOnlyItsOwnSession) {
  Session blocked = open();
  Session other = open();
  std::promise<void> gate;
  std::shared_future<void> opened = gate.get_future().share();
  Recorder<int> done;

  blocked.async(Get{"/"}, soon(), [opened, done](const auto&) {
    opened.wait();
    done.add(1);
  });
  blocked.async(Get{"/"}, soon(), [done](const auto&) { done.add(2); });
  EXPECT_TRUE(ok(blocked.get("/", soon())));
  Recorder<int> others;
  other.async(Get{"/"}, soon(), [others](const auto&) { others.add(1); });
  EXPECT_TRUE(others.wait_for(1));
  EXPECT_EQ(done.size(), 0U);
  gate.set_value();

  ASSERT_TRUE(done.wait_for(2));
  EXPECT_THAT(done.all(), ElementsAre(1, 2));
}

TEST_P(SessionCallbacks, H56_AHandlerThatThrowsHarmsNobody) {
  Session session = open();
  const std::string path = fresh_path();
  Recorder<int> done;

  session.async(Get{"/"}, soon(), [](const auto&) { throw std::runtime_error("mine"); });
  ASSERT_TRUE(ok(session.exists(path, soon(), [](const WatchEvent&) { throw 42; })));
  make_node(session, path);
  session.async(Get{"/"}, soon(), [done](const auto&) { done.add(1); });

  EXPECT_TRUE(done.wait_for(1));
  EXPECT_TRUE(ok(session.get(path, soon())));
}

TEST_P(SessionCallbacks, H56_H60_AHandlerMayUseTheSessionAndBlockOnIt) {
  Session session = open();
  const std::string path = fresh_path();
  Events events;

  ASSERT_TRUE(ok(session.exists(path, soon(), [session, events](const WatchEvent& event) mutable {
    session.async(Get{event.path}, soon(), [session, events](const Result<Node>& node) mutable {
      events.add(node->data);
      events.add(session.get("/", soon()) ? "blocking works" : "blocking fails");
    });
  })));
  make_node(session, path, "seen");

  ASSERT_TRUE(events.wait_for(2));
  EXPECT_THAT(events.all(), ElementsAre("seen", "blocking works"));
}

TEST_P(SessionCallbacks, H56_AHandlerMayDestroyTheLastHandle) {
  for (int round = 0; round < 10; ++round) {
    auto session = std::make_shared<std::optional<Session>>(open());
    Recorder<int> done;
    States states;
    (*session)->async(Get{"/"}, soon(), [session, done](const auto&) {
      session->reset();
      done.add(1);
    });
    session.reset();
    ASSERT_TRUE(done.wait_for(1));
  }
}

TEST_P(SessionCallbacks, H56_TheLastHandleMayDieWithAWatcherThatWasNeverSet) {
  States states;
  {
    const Session session = open(watched(states));
    Session user = session;
    user.async(Get{fresh_path(), [session](const WatchEvent&) {}}, soon(), [](const auto&) {});
  }

  EXPECT_TRUE(reaches(states, SessionState::kClosed));
}

TEST_P(SessionCallbacks, H56_TheLastHandleMayDieWithAHandlerOfABusyQueue) {
  for (int round = 0; round < 50; ++round) {
    States states;
    {
      const Session session = open(watched(states));
      Session user = session;
      for (int i = 0; i < 20; ++i) {
        user.async(Get{"/"}, soon(), [session](const auto&) {});
      }
    }
    ASSERT_TRUE(reaches(states, SessionState::kClosed));
  }
}

TEST_P(SessionCallbacks, H59_ASessionMayBeClosedFromItsOwnCallbacks) {
  Session session = open();
  const std::string path = fresh_path();
  Recorder<bool> closed;
  Events events;

  ASSERT_TRUE(ok(session.exists(path, soon(), [session, closed](const WatchEvent&) mutable {
    closed.add(bool(session.close(soon())));
  })));
  ASSERT_TRUE(ok(session.exists(path + "x", soon(), note(events))));
  make_node(session, path);

  ASSERT_TRUE(closed.wait_for(1));
  EXPECT_TRUE(closed.last());
  EXPECT_EQ(session.state(), SessionState::kClosed);
  ASSERT_TRUE(events.wait_for(1));
  EXPECT_THAT(events.all(), ElementsAre("session over "));
}

TEST_P(SessionCallbacks, H59_ASessionMayBeClosedWhenToldOfItsExpiry) {
  FaultProxy proxy(server());
  SessionOptions options = quick(6s);
  Recorder<bool> closed;
  struct Holder {
    std::mutex mutex;
    std::optional<Session> session;
  };
  auto holder = std::make_shared<Holder>();
  Recorder<SessionState> states;
  options.on_state = [holder, closed, states](SessionState state) {
    states.add(state);
    if (state != SessionState::kExpired) return;
    const std::lock_guard lock(holder->mutex);
    closed.add(bool(holder->session->close(soon())));
    holder->session.reset();
  };
  {
    const std::lock_guard lock(holder->mutex);
    holder->session = open_session(proxy.connect_string(), options);
  }

  proxy.refuse();
  proxy.cut_all();

  ASSERT_TRUE(closed.wait_for(1));
  EXPECT_THAT(states.all(), ElementsAre(SessionState::kConnected, SessionState::kSuspended,
                                        SessionState::kExpired));
}

TEST_P(SessionCallbacks, H60_BlockingOnTheUsersOwnContextIsRefused) {
  Runner runner(1);
  auto session = start(runner.context, server(), quick());
  ASSERT_TRUE(ok(session));
  ASSERT_TRUE(ok(session->wait_connected(soon())));
  Recorder<Code> codes;

  asio::post(runner.context, [session = *session, codes]() mutable {
    codes.add(session.get("/", soon()).error().code());
    codes.add(session.wait_connected(soon()).error().code());
    codes.add(session.close(soon()).error().code());
  });

  ASSERT_TRUE(codes.wait_for(3));
  EXPECT_THAT(codes.all(), Each(Code::kWouldDeadlock));
  EXPECT_TRUE(ok(session->get("/", soon())));
  EXPECT_TRUE(ok(session->close(soon())));
}

TEST_P(SessionCallbacks, RunsOnTheUsersContextWithSeveralThreads) {
  FaultProxy proxy(server());
  Runner runner(3);
  const std::string path = fresh_path();
  auto session = start(runner.context, proxy.connect_string(), quick());
  ASSERT_TRUE(ok(session));
  make_node(*session, path);
  Recorder<std::int32_t> versions;

  for (int i = 0; i < 1'000; ++i) {
    session->async(Set{path, "x"}, soon(), [versions](const Result<Stat>& stat) {
      versions.add(stat ? stat->version : -1);
    });
  }
  ASSERT_TRUE(versions.wait_for(1'000));
  proxy.cut_all();
  EXPECT_TRUE(ok(session->get(path, soon())));

  const std::vector<std::int32_t> all = versions.all();
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
  EXPECT_EQ(all.back(), 1'000);
  EXPECT_TRUE(ok(session->close(soon())));
}

TEST_P(SessionCallbacks, TheUsersContextRunsDryOnceEveryHandleIsGone) {
  asio::io_context context;
  std::int64_t id = 0;
  Recorder<std::string> data;
  {
    auto session = start(context, server(), quick());
    ASSERT_TRUE(ok(session));
    session->async(Get{"/"}, soon(), [data, keep = *session](const Result<Node>& node) {
      data.add(node ? "read" : node.error().message());
    });
    std::thread helper([&] { EXPECT_TRUE(ok(session->wait_connected(soon()))); });
    const Deadline limit = soon();
    while (data.size() == 0 && !limit.has_passed(BootClock::now())) context.run_one_for(10ms);
    helper.join();
    id = session->id();
  }
  EXPECT_THAT(data.all(), ElementsAre("read"));

  context.restart();
  context.run_for(60s);

  EXPECT_TRUE(context.stopped());
  EXPECT_TRUE(eventually([&] { return service().connections_of(id) == 0; }));
}

TEST_P(SessionCallbacks, TheUsersContextMayBeDestroyedWithASessionStillClosing) {
  for (int turns = 0; turns < 12; ++turns) {
    asio::io_context context;
    auto session = start(context, server(), quick());
    ASSERT_TRUE(ok(session));
    session->async(Get{"/"}, soon(), [](const auto&) {});
    for (int i = 0; i < turns; ++i) context.run_one_for(20ms);
    session = Error(Code::kClosed);
  }
}

TEST_P(SessionCallbacks, AnIdleContextStillLetsCallsEndAtTheirDeadline) {
  asio::io_context nobody_runs_it;
  auto session = start(nobody_runs_it, server(), quick());
  ASSERT_TRUE(ok(session));

  EXPECT_TRUE(fails_with(session->get("/", deadline_in(50ms)), Code::kTimedOut));
  EXPECT_TRUE(fails_with(session->wait_connected(deadline_in(50ms)), Code::kUnreachable));
}

TEST_P(SessionCallbacks, ACallerThatWaitsAloneReadsItsAnswerItself) {
  asio::io_context context;
  auto session = start(context, server(), quick(60s));
  ASSERT_TRUE(ok(session));
  {
    std::thread helper([&] { EXPECT_TRUE(ok(session->wait_connected(soon()))); });
    const Deadline limit = soon();
    while (session->state() != SessionState::kConnected && !limit.has_passed(BootClock::now())) {
      context.run_one_for(10ms);
    }
    helper.join();
  }
  const std::string path = fresh_path();

  // Nobody runs the context now.
  EXPECT_TRUE(ok(session->create(path, "x", {}, soon())));
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(ok(session->get(path, soon())));
}

TEST_P(SessionCallbacks, WhoeverReadsForItselfIsRelievedWhenASecondWaits) {
  Session session = open(quick(60s));
  const std::string path = fresh_path();
  Mutex mutex(session, path);
  auto holder = mutex.lock(soon());
  ASSERT_TRUE(ok(holder));
  auto waits = std::async(std::launch::async, [&] { return mutex.lock(soon()); });
  ASSERT_TRUE(eventually([&] { return session.children(path, soon())->names.size() == 2; }));
  std::vector<std::jthread> others;
  for (int i = 0; i < 3; ++i) {
    others.emplace_back([&] {
      for (int n = 0; n < 200; ++n) EXPECT_TRUE(ok(session.get(path, soon())));
    });
  }
  others.clear();

  holder->release();

  EXPECT_TRUE(ok(waits.get()));
}

TEST_P(SessionCallbacks, EveryCallbackRunsOnTheUsersExecutorInOrder) {
  // Never destroyed: the session may still be inside the executor after its last callback has run.
  static auto* const kPool = new Runner(3);
  Recorder<std::string> order;
  std::atomic<int> elsewhere = 0;
  const auto here = [&elsewhere] {
    if (!kPool->context.get_executor().running_in_this_thread()) ++elsewhere;
  };
  SessionOptions options = quick();
  options.executor = [](std::function<void()> task) {
    asio::post(kPool->context, std::move(task));
  };
  options.on_state = [order, here](SessionState state) {
    here();
    order.add(std::string(name(state)));
  };
  Session session = open(options);
  const std::string path = fresh_path();

  ASSERT_TRUE(ok(session.exists(path, soon(), [order, here](const WatchEvent& event) {
    here();
    order.add(std::string(name(event.kind)));
  })));
  session.async(Create{path, "x"}, soon(), [order, here](const auto&) {
    here();
    order.add("create answered");
  });
  ASSERT_TRUE(order.wait_for(3));
  ASSERT_TRUE(ok(session.close(soon())));

  ASSERT_TRUE(order.wait_for(4));
  EXPECT_THAT(order.all(), ElementsAre("connected", "created", "create answered", "closed"));
  EXPECT_EQ(elsewhere, 0);
}

TEST_P(SessionCallbacks, AnExecutorThatRunsTasksAtOnceIsFine) {
  SessionOptions options = quick();
  options.executor = [](const std::function<void()>& task) { task(); };
  Session session = open(options);
  Recorder<Code> codes;

  session.async(Get{"/"}, soon(), [session, codes](const auto&) mutable {
    // On the I/O thread: it must not wait for itself.
    const auto inner = session.get("/", soon());
    codes.add(inner ? Code::kBusy : inner.error().code());
  });

  ASSERT_TRUE(codes.wait_for(1));
  EXPECT_EQ(codes.last(), Code::kWouldDeadlock);
  EXPECT_TRUE(ok(session.get("/", soon())));
}

TEST_P(SessionCallbacks, ReportsEveryOperationWithItsOutcome) {
  FaultProxy proxy(server());
  Recorder<OperationReport> reports;
  SessionOptions options = quick();
  options.on_operation = reports.adder();
  Session session = open_session(proxy.connect_string(), options);
  const std::string path = fresh_path();

  make_node(session, path, "12345");
  proxy.cut_before_reply(Op::kGetData);
  ASSERT_TRUE(ok(session.get(path, soon())));
  EXPECT_TRUE(fails_with(session.set(path, "x", soon(), 9), Code::kBadVersion));
  EXPECT_TRUE(ok(session.call(WhoAmI{}, soon())));
  EXPECT_TRUE(ok(session.call(Authenticate{"digest", "u:hidden"}, soon())));

  ASSERT_TRUE(reports.wait_for(5));
  const std::vector<OperationReport> all = reports.all();
  EXPECT_EQ(all[0].operation, "create2");
  EXPECT_EQ(all[0].path, path);
  EXPECT_TRUE(all[0].ok);
  EXPECT_GT(all[0].latency, 0ns);
  EXPECT_GT(all[0].bytes_sent, path.size() + 5);
  EXPECT_GT(all[0].bytes_received, path.size());
  EXPECT_EQ(all[1].operation, "getData");
  EXPECT_EQ(all[1].attempts, 2);
  EXPECT_EQ(all[2].operation, "setData");
  EXPECT_FALSE(all[2].ok);
  EXPECT_EQ(all[2].code, Code::kBadVersion);
  EXPECT_EQ(all[3].operation, "whoAmI");
  EXPECT_EQ(all[4].operation, "auth");
}

TEST_P(SessionCallbacks, LogsWhatHappensButNoSecrets) {
  FaultProxy proxy(server());
  Recorder<std::string> lines;
  SessionOptions options = quick();
  options.credentials = {{"digest", "user:topsecret"}};
  options.log = [lines](LogLevel, std::string_view line) { lines.add(std::string(line)); };
  Session session = open_session(proxy.connect_string(), options);
  ASSERT_TRUE(ok(session.call(Authenticate{"digest", "other:topsecret"}, soon())));

  proxy.cut_all();
  ASSERT_TRUE(ok(session.get("/", soon())));
  EXPECT_FALSE(session.call(Authenticate{"nonsense", "topsecret"}, soon()));

  ASSERT_TRUE(eventually([&] {
    return testing::Matches(Contains(HasSubstr(proxy.connect_string())))(lines.all());
  })) << testing::PrintToString(lines.all());
  EXPECT_THAT(lines.all(), Each(Not(HasSubstr("topsecret"))));
}

TEST_P(SessionCallbacks, BackPressureMakesBlockingCallersWaitAndAsyncOnesFail) {
  FaultProxy proxy(server());
  SessionOptions options = quick(20s);
  options.max_requests = 4;
  Session session = open_session(proxy.connect_string(), options);
  const int stop = proxy.stop_at_request(Op::kExists);
  Recorder<std::string> outcomes;
  const auto tell = [outcomes](const auto& result) {
    outcomes.add(result ? "ok" : std::string(name(result.error().code())));
  };
  for (int i = 0; i < 4; ++i) session.async(Exists{"/"}, soon(), tell);
  ASSERT_TRUE(proxy.wait_until_fired(stop));

  for (int i = 0; i < 3; ++i) session.async(Exists{"/"}, soon(), tell);
  ASSERT_TRUE(outcomes.wait_for(3));
  EXPECT_THAT(outcomes.all(), Each(std::string("Overloaded")));
  EXPECT_TRUE(fails_with(session.get("/", deadline_in(50ms)), Code::kTimedOut));
  std::vector<std::thread> callers;
  Recorder<bool> blocking;
  for (int i = 0; i < 6; ++i) {
    callers.emplace_back([session, blocking]() mutable {
      for (int k = 0; k < 20; ++k) blocking.add(bool(session.get("/", soon())));
    });
  }
  proxy.release();

  for (std::thread& caller : callers) caller.join();
  EXPECT_THAT(blocking.all(), Each(true));
  EXPECT_EQ(blocking.size(), 120U);
  EXPECT_TRUE(outcomes.wait_for(7));
  EXPECT_EQ(outcomes.size(), 7U);
}

}  // namespace
}  // namespace latchkey::test_support
