#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <latch>

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/thread_pool.hpp>
#include <gmock/gmock.h>

#include "integration/mutex_fixture.hpp"
#include "latchkey/asio.hpp"

/// What a holder is told about its hold, and when.
namespace latchkey::test_support {
namespace {

using wire::Op;

/// When a lease's loss was announced.
class LossClock {
 public:
  explicit LossClock(const Lease& lease)
      : callback_(lease.lost(), [this] { at_ = BootClock::now().time_since_epoch().count(); }) {}

  [[nodiscard]] bool lost() const { return at_ != 0; }
  [[nodiscard]] Instant at() const { return Instant(Duration(at_.load())); }

 private:
  std::atomic<Instant::rep> at_ = 0;
  std::stop_callback<std::function<void()>> callback_;
};

/// Looks until the lease is lost. Whoever looks often enough sees doubt in between, and that nobody
/// has been told of a loss by then; whoever stood still meanwhile may have missed it.
testing::AssertionResult is_doubted_before_it_is_lost(const Lease& lease, const LossClock& loss) {
  Instant held = BootClock::now();
  bool doubted = false;
  bool told_too_early = false;
  const bool lost = eventually([&] {
    const bool told = loss.lost();
    const LeaseState state = lease.state();
    if (state == LeaseState::kHeld) held = BootClock::now();
    doubted = doubted || state == LeaseState::kSuspect;
    told_too_early = told_too_early || (told && state != LeaseState::kLost);
    return state == LeaseState::kLost;
  });
  if (!lost) return testing::AssertionFailure() << "never lost";
  if (told_too_early) return testing::AssertionFailure() << "told of a loss that was none yet";
  if (doubted || BootClock::now() - held > 300ms) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "lost without a doubt";
}

TEST_P(LeaseTest, H09_ALossIsAnnouncedBeforeAnotherCanHold) {
  for (const auto which : {Hold::kToServer, Hold::kToClient, Hold::kBoth}) {
    Proxied one = open_proxied(quick(8s));
    Lease lease = take(one.session, directory);
    const LossClock loss(lease);
    Waiter next(mutex(open()));
    ASSERT_TRUE(witness.queue_reaches(directory, 2));
    ASSERT_TRUE(eventually([&] { return lease.state() == LeaseState::kHeld; }));

    one.proxy->hold(which);
    EXPECT_TRUE(is_doubted_before_it_is_lost(lease, loss));
    ASSERT_EQ(lease.state(), LeaseState::kLost);

    // Where the server hears us but we do not hear it the session may take several time-outs to go.
    ASSERT_TRUE(next.holds(deadline_in(120s)));
    ASSERT_TRUE(eventually([&] { return loss.lost(); }));
    EXPECT_LT(loss.at(), next.answered_at());
    one.proxy->cut_all();
    one.proxy->release();
    // Where the server heard us all the time the session has survived. Lost is final all the same.
    static_cast<void>(one.session.sync("/", soon()));
    EXPECT_EQ(lease.state(), LeaseState::kLost);
    EXPECT_EQ(lease.release(), Released::kAlreadyOver);
  }
}

TEST_P(LeaseTest, H10_ADelayedAnswerDoesNotLengthenTheLease) {
  constexpr auto kTimeout = 12s;
  Proxied one = open_proxied(quick(kTimeout));
  Lease lease = take(one.session, directory);
  // Nothing is sent after this one, and its answer comes late: what counts is when it was asked.
  const int late = one.proxy->delay_reply(Op::kSync, 5'400ms);
  ASSERT_TRUE(one.proxy->wait_until_fired(late));
  const Instant asked = BootClock::now();
  one.proxy->hold(Hold::kToServer);

  ASSERT_TRUE(eventually([&] { return lease.state() == LeaseState::kLost; }));

  EXPECT_LT(BootClock::now() - asked, kTimeout);
}

TEST_P(LeaseTest, H09_AShortPartitionMakesItSuspectAndNoMore) {
  Proxied one = open_proxied(quick(60s));
  Lease lease = take(one.session, directory);
  const LossClock loss(lease);

  one.proxy->refuse();
  one.proxy->cut_all();
  ASSERT_TRUE(eventually([&] { return lease.state() == LeaseState::kSuspect; }));
  one.proxy->accept();

  ASSERT_TRUE(eventually([&] { return lease.state() == LeaseState::kHeld; }));
  EXPECT_FALSE(loss.lost());
  EXPECT_EQ(witness.queue(directory).size(), 1U);
  EXPECT_EQ(lease.release(), Released::kNow);
}

TEST_P(LeaseTest, H09_ALostLeaseOfALivingSessionIsTakenAway) {
  Proxied one = open_proxied(quick(20s));
  Lease lease = take(one.session, directory);
  one.proxy->hold(Hold::kBoth);
  ASSERT_TRUE(eventually([&] { return lease.state() == LeaseState::kLost; }));
  one.proxy->release();

  // The session has survived, its lock must not.
  ASSERT_TRUE(ok(one.session.sync(directory, soon())));
  EXPECT_TRUE(witness.is_quiet(directory));
  EXPECT_EQ(one.session.state(), SessionState::kConnected);
  EXPECT_EQ(lease.release(), Released::kAlreadyOver);
  EXPECT_TRUE(ok(mutex(one.session).try_lock()));
}

TEST_P(LeaseTest, H09_ACloseTellsTheHolderBeforeTheLockPassesOn) {
  Session session = open();
  const Lease lease = take(session, directory);
  std::latch may_return(1);
  std::atomic<bool> told = false;
  const std::stop_callback on_loss(lease.lost(), [&] {
    told = true;
    may_return.wait();
  });
  Waiter next(mutex(open()));
  ASSERT_TRUE(witness.queue_reaches(directory, 2));

  std::jthread closer([&] { EXPECT_TRUE(ok(session.close(soon()))); });
  ASSERT_TRUE(eventually([&] { return told.load(); }));
  // As long as others take for a few locks of their own.
  for (int i = 0; i < 20; ++i) take(witness.session(), fresh_path()).release();
  EXPECT_FALSE(next.has_answer());
  may_return.count_down();

  ASSERT_TRUE(next.holds());
}

TEST_P(LeaseTest, H09_ACloseOutOfALossCallbackDoesNotWaitForItself) {
  Session session = open();
  const Lease lease = take(session, directory);
  static_cast<void>(lease.release_requested());  // Watch the node now.
  Recorder<bool> closed;
  const std::stop_callback on_loss(lease.lost(),
                                   [&] { closed.add(ok(session.close(deadline_in(30s)))); });

  ASSERT_TRUE(ok(witness.session().remove(lease.node(), soon())));

  ASSERT_TRUE(closed.wait_for(1));
  EXPECT_TRUE(closed.last());
}

TEST_P(LeaseTest, H56_ALossDoesNotWaitForABusyExecutor) {
  // Never destroyed: the session may still be inside the executor after its last callback has run.
  static auto* const kPool = new asio::thread_pool(1);
  const auto may_return = std::make_shared<std::latch>(1);
  SessionOptions options = patient();
  options.executor = [](std::function<void()> task) { asio::post(*kPool, std::move(task)); };
  Session session = open(options);
  const Lease lease = take(session, directory);
  static_cast<void>(lease.release_requested());  // Watch the node now.
  session.async(Exists{"/"}, soon(), [may_return](const auto&) { may_return->wait(); });
  Recorder<bool> told;
  const std::stop_callback on_loss(lease.lost(), [told] { told.add(true); });

  ASSERT_TRUE(ok(witness.session().remove(lease.node(), soon())));

  EXPECT_TRUE(told.wait_for(1));
  may_return->count_down();
}

TEST_P(LeaseTest, H57_CallbacksHaveTheSignalMaskOfTheApplication) {
  Recorder<bool> blocked;
  const auto look = [blocked] {
    sigset_t mask;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    blocked.add(::sigismember(&mask, SIGTERM) == 1);
  };
  Session session = open();
  const Lease lease = take(session, directory);
  const std::stop_callback on_loss(lease.lost(), look);
  session.async(Exists{"/"}, soon(), [look](const auto&) { look(); });

  ASSERT_TRUE(ok(session.close(soon())));

  ASSERT_TRUE(blocked.wait_for(2));
  EXPECT_THAT(blocked.all(), testing::ElementsAre(false, false));
}

/// A session whose I/O thread can be made to stand still, as a pause of the process would.
class Standstill {
 public:
  Standstill(const std::string& connect, std::chrono::milliseconds timeout)
      : work_(asio::make_work_guard(context_)), thread_([this] { context_.run(); }) {
    auto started = start(context_, connect, quick(timeout));
    if (!started) throw std::runtime_error(started.error().message());
    session.emplace(*started);
  }
  /// As latchkey/asio.hpp asks: every handle is let go, then the context runs until the session has
  /// ended.
  ~Standstill() {
    stop();
    session.reset();
    work_.reset();
    context_.restart();
    context_.run();
  }

  void stop() {
    context_.stop();
    if (thread_.joinable()) thread_.join();
  }

 private:
  asio::io_context context_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::jthread thread_;

 public:
  std::optional<Session> session;
};

TEST_P(LeaseTest, H13_TheClockIsReadAtEveryCallAndNeedsNoThread) {
  constexpr auto kTimeout = 8s;
  Standstill still(service().connect_string(), kTimeout);
  Lease asked = take(*still.session, directory);
  Lease let_go = take(*still.session, directory + "-other");
  Recorder<bool> told;
  const std::stop_callback on_loss(asked.lost(), [&] { told.add(true); });
  ASSERT_EQ(asked.state(), LeaseState::kHeld);

  still.stop();
  ASSERT_TRUE(eventually([&] { return asked.state() != LeaseState::kHeld; }));
  const Instant late = BootClock::now() + kTimeout / 4;
  ASSERT_TRUE(eventually([&] { return BootClock::now() > late; }));

  EXPECT_EQ(asked.state(), LeaseState::kLost);
  EXPECT_TRUE(told.wait_for(1)) << "whoever notices tells";
  EXPECT_EQ(asked.release(), Released::kAlreadyOver);
  EXPECT_EQ(let_go.release(), Released::kAlreadyOver) << "although nobody has looked before";
  EXPECT_TRUE(let_go.lost().stop_requested() ||
              eventually([&] { return let_go.lost().stop_requested(); }));
}

TEST_P(LeaseTest, H51_ADeadlineNeedsNoThreadEither) {
  Lease holder = take(open(), directory);
  Standstill still(service().connect_string(), 10s);
  ASSERT_TRUE(ok(still.session->wait_connected(soon())));
  still.stop();
  const Instant deadline = BootClock::now() + 200ms;

  EXPECT_TRUE(fails_with(mutex(*still.session).lock(deadline), Code::kTimedOut));

  EXPECT_LT(BootClock::now() - deadline, 20s);
}

TEST_P(LeaseTest, H05_AHoldWhoseNodeIsDeletedByAnotherHandIsLost) {
  Proxied one = open_proxied(quick(10s));
  Lease lease = take(one.session, directory);
  ASSERT_TRUE(one.proxy->log().wait_for(replies_to(Op::kGetData), 1, soon()));

  ASSERT_TRUE(ok(witness.session().remove(lease.node(), soon())));

  EXPECT_TRUE(eventually([&] { return lease.lost().stop_requested(); }));
  EXPECT_EQ(lease.state(), LeaseState::kLost);
  EXPECT_EQ(lease.release(), Released::kAlreadyOver);
  EXPECT_TRUE(fails_with(lease.release(soon()), Code::kLost, lease.node()));
  EXPECT_EQ(count(*one.proxy, Op::kDelete), 0U);
  EXPECT_EQ(one.session.state(), SessionState::kConnected);
}

TEST_P(LeaseTest, ASessionClosedByItsUserLosesItsLocks) {
  Session session = open();
  Lease lease = take(session, directory);
  Waiter waiter(mutex(session));
  ASSERT_TRUE(witness.queue_reaches(directory, 2));

  ASSERT_TRUE(ok(session.close(soon())));

  EXPECT_EQ(lease.state(), LeaseState::kLost);
  EXPECT_TRUE(eventually([&] { return lease.lost().stop_requested(); }));
  EXPECT_EQ(lease.release(), Released::kAlreadyOver);
  ASSERT_FALSE(waiter.holds());
  EXPECT_TRUE(fails_with(waiter.answer(), Code::kClosed, directory));
  EXPECT_TRUE(fails_with(mutex(session).lock(soon()), Code::kClosed));
  EXPECT_TRUE(witness.is_quiet(directory));
}

TEST_P(LeaseTest, H23_AReleaseWhileSuspectIsDeferredAndReachesTheServer) {
  Proxied one = open_proxied(quick(60s));
  Lease lease = take(one.session, directory);
  one.proxy->refuse();
  one.proxy->cut_all();
  ASSERT_TRUE(eventually([&] { return lease.state() == LeaseState::kSuspect; }));

  EXPECT_EQ(lease.release(), Released::kDeferred);
  EXPECT_EQ(lease.state(), LeaseState::kReleased);
  EXPECT_EQ(witness.queue(directory).size(), 1U);
  one.proxy->accept();

  EXPECT_TRUE(witness.is_quiet(directory));
  EXPECT_FALSE(lease.lost().stop_requested());
  EXPECT_EQ(lease.release(), Released::kAlreadyOver);
}

TEST_P(LeaseTest, H23_AReleaseWhileSuspectDiesWithTheSessionIfThatDoes) {
  Proxied one = open_proxied(quick(12s));
  Lease lease = take(one.session, directory);
  one.proxy->refuse();
  one.proxy->cut_all();
  ASSERT_TRUE(eventually([&] { return lease.state() == LeaseState::kSuspect; }));

  EXPECT_EQ(lease.release(), Released::kDeferred);

  EXPECT_TRUE(witness.is_quiet(directory));
  EXPECT_EQ(lease.state(), LeaseState::kReleased);
}

TEST_P(LeaseTest, H23_AReleaseThatWaitsIsToldHowTheSessionEnded) {
  Proxied one = open_proxied(quick(8s));
  Lease lease = take(one.session, directory);
  one.proxy->refuse();
  one.proxy->cut_all();
  ASSERT_TRUE(eventually([&] { return lease.state() == LeaseState::kSuspect; }));

  // Three time-outs without a server.
  EXPECT_TRUE(fails_with(lease.release(deadline_in(120s)), Code::kSessionLost, lease.node()));
}

TEST_P(LeaseTest, H52_ALeaseOutlivesSessionAndMutex) {
  std::optional<Lease> lease;
  {
    Session session = open(quick(10s));
    Mutex lock = mutex(session);
    auto taken = lock.lock(soon());
    ASSERT_TRUE(ok(taken));
    lease.emplace(std::move(*taken));
  }
  // Long enough for heartbeats to be needed.
  EXPECT_TRUE(eventually([&] { return witness.watches_below(lease->node()) == 1; }));
  EXPECT_EQ(lease->state(), LeaseState::kHeld);
  EXPECT_TRUE(ok(lease->release(soon())));
  lease.reset();
  EXPECT_TRUE(witness.is_quiet(directory));
}

TEST_P(LeaseTest, H52_AMoveHandsTheHoldOverAndAnAssignmentLetsGoOfTheOldOne) {
  Session session = open();
  Lease first = take(session, directory);
  Lease other = take(session, directory + "-other");
  const std::string node = first.node();

  Lease moved = std::move(first);
  EXPECT_EQ(moved.node(), node);
  EXPECT_EQ(moved.state(), LeaseState::kHeld);
  // NOLINTNEXTLINE(bugprone-use-after-move): what is left behind is over, and says so.
  EXPECT_EQ(first.release(), Released::kAlreadyOver);
  moved = std::move(other);

  EXPECT_TRUE(witness.is_quiet(directory));
  EXPECT_EQ(moved.state(), LeaseState::kHeld);
}

TEST_P(LeaseTest, ALockMayBeTakenAndLetGoInACallback) {
  Session session = open();
  Recorder<bool> taken;
  session.async(Exists{"/"}, soon(), [taken, lock = mutex(session)](auto) mutable {
    auto lease = lock.lock(soon());
    taken.add(lease && lease->release(soon()));
  });

  ASSERT_TRUE(taken.wait_for(1));
  EXPECT_TRUE(taken.last());
}

TEST_P(LeaseTest, H56_ALossHandlerThatBlocksHoldsNobodyUp) {
  Proxied one = open_proxied(quick(4s));
  Lease slow = take(one.session, directory + "-slow");
  Lease quick_one = take(one.session, directory);
  const LossClock loss(quick_one);
  std::latch entered(1);
  std::latch let_go(1);
  const std::stop_callback blocking(slow.lost(), [&] {
    entered.count_down();
    let_go.wait();
  });

  one.proxy->hold(Hold::kBoth);

  EXPECT_TRUE(eventually([&] { return entered.try_wait(); }));
  EXPECT_TRUE(eventually([&] { return loss.lost(); }));
  // Nor another session.
  Session other = open();
  EXPECT_TRUE(ok(Mutex(other, directory + "-other").try_lock()));
  let_go.count_down();
}

TEST_P(LeaseTest, H56_ALeaseMayBeReleasedOrDestroyedByItsOwnLossHandler) {
  Session session = open();
  auto lease = std::make_unique<Lease>(take(session, directory));
  std::atomic<bool> destroyed = false;
  // On the heap: the handler outlives the lease it destroys.
  const auto handler =
      std::make_unique<std::stop_callback<std::function<void()>>>(lease->lost(), [&] {
        EXPECT_EQ(lease->release(), Released::kAlreadyOver);
        lease.reset();
        destroyed = true;
      });

  ASSERT_TRUE(ok(session.close(soon())));

  EXPECT_TRUE(eventually([&] { return destroyed.load(); }));
}

TEST_P(LeaseTest, H52_LeasesAndSessionsMayGoInAnyOrderInAnyState) {
  for (int round = 0; round < 12; ++round) {
    auto proxy = std::make_unique<FaultProxy>(service().follower());
    auto session = std::make_unique<Session>(
        open_session(proxy->connect_string(), quick(round % 2 == 0 ? 60s : 4s)));
    auto lock = std::make_unique<Mutex>(*session, directory);
    auto lease = std::make_unique<Lease>(take(*session, directory));
    auto waiter = std::make_unique<Waiter>(*lock);
    if (round % 3 == 1) proxy->hold(Hold::kBoth);
    if (round % 3 == 2) proxy->cut_all();
    const Instant start = BootClock::now();

    if (round % 4 < 2) lease.reset();
    session.reset();
    lock.reset();
    waiter.reset();
    lease.reset();

    EXPECT_LT(BootClock::now() - start, 15s);
    proxy->release();
    EXPECT_TRUE(witness.is_quiet(directory)) << round;
  }
}

/// Everything a forked child may try; the number of the first thing that goes wrong, or 0.
int misbehave(Session& session, std::optional<Lease>& lease, Mutex& lock) {
  if (lease->state() != LeaseState::kLost) return 1;
  if (lease->release() != Released::kAlreadyOver) return 2;
  if (!fails_with(lease->release(soon()), Code::kForked)) return 3;
  if (!fails_with(lock.lock(soon()), Code::kForked)) return 4;
  if (!fails_with(lock.try_lock(), Code::kForked)) return 5;
  if (!fails_with(session.sync("/", soon()), Code::kForked)) return 6;
  lease.reset();
  return 0;
}

TEST_P(LeaseTest, H53_AForkedChildHoldsNothingAndDisturbsNothing) {
  Proxied one = open_proxied(quick(60s));  // No heartbeat comes in between.
  std::optional<Lease> lease(take(one.session, directory));
  Mutex lock = mutex(one.session);
  one.proxy->log().clear();

  const pid_t child = ::fork();
  if (child == 0) {
    const int wrong = misbehave(one.session, lease, lock);
    {
      const Session last = std::move(one.session);
      const Mutex also = std::move(lock);
    }
    ::_exit(wrong);
  }
  ASSERT_GT(child, 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);

  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(lease->state(), LeaseState::kHeld);
  ASSERT_TRUE(ok(one.session.sync("/", soon())));
  EXPECT_TRUE(requests(*one.proxy).empty());
  EXPECT_EQ(one.proxy->connections_accepted(), 1);
  EXPECT_EQ(lease->release(), Released::kNow);
  EXPECT_TRUE(witness.is_quiet(directory));
}

TEST_P(LeaseTest, HoldsAndWaitsSurviveARestartOfEveryServer) {
  Session holding = open(quick(60s));
  Session waiting = open(quick(60s));
  Lease lease = take(holding, directory);
  Waiter waiter(mutex(waiting));
  ASSERT_TRUE(witness.queue_reaches(directory, 2));
  // Proven just now: the servers may take a while.
  ASSERT_TRUE(ok(holding.sync("/", soon())));

  service().kill_all();
  EXPECT_TRUE(eventually([&] { return lease.state() == LeaseState::kSuspect; }));
  service().start_all();

  EXPECT_TRUE(eventually([&] { return lease.state() == LeaseState::kHeld; }));
  EXPECT_FALSE(waiter.has_answer());
  EXPECT_TRUE(ok(lease.release(soon())));
  ASSERT_TRUE(waiter.holds());
  EXPECT_GT(waiter.lease().token(), lease.token());
}

TEST_P(LeaseTest, H51_ACheckWorksInsideACallback) {
  Session session = open();
  const Lease lease = take(session, directory);
  std::promise<Result<void>> checked;
  session.async(Exists{"/"}, soon(), [&](auto) { checked.set_value(lease.check(soon())); });
  EXPECT_TRUE(ok(checked.get_future().get()));
}

TEST_P(LeaseTest, ACheckAsksTheServiceAndAGuardMakesItRefuse) {
  Session session = open();
  Lease lease = take(session, directory);
  const std::string ledger = fresh_path();
  make_node(witness.session(), ledger, "before");
  EXPECT_TRUE(ok(lease.check(soon())));
  Multi good{.parts = {Set{ledger, "while held"}}};
  ASSERT_TRUE(ok(lease.guard(good)));
  auto outcome = session.call(good, soon());
  ASSERT_TRUE(ok(outcome));
  EXPECT_TRUE(outcome->committed);

  Multi late{.parts = {Set{ledger, "too late"}}};
  ASSERT_TRUE(ok(lease.guard(late)));
  ASSERT_TRUE(ok(witness.session().remove(lease.node(), soon())));
  EXPECT_TRUE(fails_with(lease.check(soon()), Code::kLost));
  outcome = session.call(late, soon());
  ASSERT_TRUE(ok(outcome));
  EXPECT_FALSE(outcome->committed);
  EXPECT_EQ(witness.synced().get(ledger, soon())->data, "while held");

  Lease released = take(session, directory);
  released.release();
  Multi never;
  EXPECT_TRUE(fails_with(released.guard(never), Code::kLost));
  EXPECT_TRUE(fails_with(released.check(soon()), Code::kLost));
}

}  // namespace
}  // namespace latchkey::test_support
