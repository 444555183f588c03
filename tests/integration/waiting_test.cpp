#include <sys/wait.h>
#include <unistd.h>

#include <latch>
#include <shared_mutex>

#include <asio/awaitable.hpp>
#include <asio/bind_cancellation_slot.hpp>
#include <asio/bind_executor.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/thread_pool.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/use_future.hpp>
#include <gmock/gmock.h>

#include "integration/mutex_fixture.hpp"
#include "integration/task.hpp"
#include "latchkey/asio.hpp"
#include "latchkey/lockable.hpp"
#include "latchkey/multi_lock.hpp"
#include "latchkey/name_lock.hpp"
#include "latchkey/recursive_mutex.hpp"
#include "latchkey/run_while_held.hpp"
#include "latchkey/rw_lock.hpp"
#include "latchkey/semaphore.hpp"

/// Every way to wait for a lock. They are one mechanism, so one lock stands for all.
namespace latchkey::test_support {
namespace {

class WaitingTest : public MutexTest {
 protected:
  using Answers = Recorder<std::shared_ptr<Result<Lease>>>;

  /// A handler that keeps what it gets.
  static LockRequest::Handler keep(const Answers& answers) {
    return [answers](Result<Lease> lease) {
      answers.add(std::make_shared<Result<Lease>>(std::move(lease)));
    };
  }
};

TEST_P(WaitingTest, ACallbackGetsTheLeaseOnTheSessionsExecutor) {
  Answers answers;
  mutex(open()).lock_async(soon()).then(keep(answers));
  ASSERT_TRUE(answers.wait_for(1));
  ASSERT_TRUE(ok(*answers.last()));
  EXPECT_EQ(witness.queue(directory).size(), 1U);
  EXPECT_TRUE(ok((*answers.last())->release(soon())));
}

TEST_P(WaitingTest, ACallbackRunsOnTheExecutorOfTheCallersChoice) {
  asio::thread_pool pool(1);
  std::promise<std::thread::id> where;
  std::promise<std::thread::id> pools;
  asio::post(pool, [&] { pools.set_value(std::this_thread::get_id()); });
  mutex(open())
      .lock_async(soon())
      .on([&](std::function<void()> task) { asio::post(pool, std::move(task)); })
      .then([&](Result<Lease>) { where.set_value(std::this_thread::get_id()); });
  EXPECT_EQ(where.get_future().get(), pools.get_future().get());
  pool.join();
}

TEST_P(WaitingTest, ACallbackThatThrowsTakesNobodyElsesAnswer) {
  // Tasks run at once: what one of them throws would reach whoever brings the answers.
  SessionOptions options = patient();
  options.executor = [](const std::function<void()>& task) { task(); };
  Session session = open(std::move(options));
  const Lease holder = take(open(), directory);
  Answers answers;
  const auto at_once = [](const std::function<void()>& task) { task(); };
  mutex(session).lock_async(soon()).then([](const Result<Lease>&) { throw 1; });
  mutex(session).lock_async(soon()).on(at_once).then([](const Result<Lease>&) { throw 2; });
  mutex(session).lock_async(soon()).then(keep(answers));
  ASSERT_TRUE(witness.queue_reaches(directory, 4));

  EXPECT_NO_THROW(static_cast<void>(session.close(soon())));

  ASSERT_TRUE(answers.wait_for(1));
  EXPECT_TRUE(fails_with(*answers.last(), Code::kClosed));
}

TEST_P(WaitingTest, ErrorsComeTheSameWay) {
  Answers answers;
  const Session session = open();
  std::stop_source stop;
  stop.request_stop();
  Mutex(session, "no-slash").lock_async(soon()).then(keep(answers));
  mutex(session).lock_async(soon(), stop.get_token()).then(keep(answers));
  mutex(session).lock_async(deadline_in(0ms)).then(keep(answers));
  ASSERT_TRUE(answers.wait_for(3));
  std::vector<Code> codes;
  for (const auto& answer : answers.all()) codes.push_back(answer->error().code());
  EXPECT_THAT(codes,
              testing::UnorderedElementsAre(Code::kInvalidPath, Code::kCancelled, Code::kTimedOut));
}

TEST_P(WaitingTest, AFutureGetsTheLeaseAndADroppedOneLetsGo) {
  const Session session = open();
  auto future = mutex(session).lock_async(soon()).future();
  Result<Lease> lease = future.get();
  ASSERT_TRUE(ok(lease));
  static_cast<void>(mutex(session).lock_async(soon()).future());
  ASSERT_TRUE(witness.queue_reaches(directory, 2));
  lease->release();
  EXPECT_TRUE(witness.is_quiet(directory));
}

TEST_P(WaitingTest, ARequestThatIsNeverSentLeavesNoTrace) {
  const Session session = open();
  { auto never = mutex(session).lock_async(soon()); }
  EXPECT_TRUE(ok(witness.session().sync("/", soon())));
  EXPECT_TRUE(witness.queue(directory).empty());
}

TEST_P(WaitingTest, AnyOfSeveralStopsCancels) {
  const Session session = open();
  const Lease holder = take(session, directory);
  std::stop_source one;
  std::stop_source other;
  Answers answers;
  mutex(session)
      .lock_async(soon(), one.get_token())
      .stopped_by(other.get_token())
      .then(keep(answers));
  ASSERT_TRUE(witness.queue_reaches(directory, 2));
  other.request_stop();
  ASSERT_TRUE(answers.wait_for(1));
  EXPECT_TRUE(fails_with(*answers.last(), Code::kCancelled));
  EXPECT_TRUE(witness.queue_reaches(directory, 1));
}

TEST_P(WaitingTest, ATryThatIsNotTheFirstIsBusyAndGone) {
  const Session session = open();
  const Lease holder = take(session, directory);
  Answers answers;
  mutex(open()).try_lock_async(soon()).then(keep(answers));
  ASSERT_TRUE(answers.wait_for(1));
  EXPECT_TRUE(fails_with(*answers.last(), Code::kBusy));
  EXPECT_TRUE(witness.queue_reaches(directory, 1));
}

TEST_P(WaitingTest, H53_AForkedChildDoesNotCancelItsParentsRequest) {
  const Session session = open();
  Lease holder = take(session, directory);
  std::stop_source stop;
  Answers answers;
  mutex(session).lock_async(soon(), stop.get_token()).then(keep(answers));
  ASSERT_TRUE(witness.queue_reaches(directory, 2));
  const pid_t child = ::fork();
  if (child == 0) {
    stop.request_stop();
    ::_exit(0);
  }
  int status = -1;
  ASSERT_TRUE(eventually([&] { return ::waitpid(child, &status, WNOHANG) == child; }));
  EXPECT_EQ(status, 0);
  EXPECT_EQ(witness.queue(directory).size(), 2U);
  holder.release();
  ASSERT_TRUE(answers.wait_for(1));
  EXPECT_TRUE(ok(*answers.last()));
}

// ---- Coroutines ---------------------------------------------------------------------------------

Task lock_twice(Mutex mutex, Recorder<std::string> log) {
  for (int i = 0; i < 2; ++i) {
    Result<Lease> lease = co_await mutex.lock_async(soon());
    log.add(lease ? "held" : std::string(name(lease.error().code())));
  }
}

TEST_P(WaitingTest, ACoroutineGetsTheLease) {
  Recorder<std::string> log;
  const Task task = lock_twice(mutex(open()), log);
  ASSERT_TRUE(task.ends());
  EXPECT_THAT(log.all(), testing::ElementsAre("held", "held"));
  EXPECT_TRUE(witness.is_quiet(directory));
}

TEST_P(WaitingTest, H06_ADestroyedCoroutineLeavesNoQueuedNode) {
  const Session session = open();
  Recorder<std::string> log;
  Lease holder = take(session, directory);
  {
    const Task task = lock_twice(mutex(open()), log);
    ASSERT_TRUE(witness.queue_reaches(directory, 2));
  }
  EXPECT_TRUE(witness.queue_reaches(directory, 1));
  EXPECT_EQ(log.size(), 0U);
  holder.release();
  EXPECT_TRUE(witness.is_quiet(directory));
}

TEST_P(WaitingTest, H55_ACoroutineThatIsDestroyedWhileItsGrantIsOnItsWayLetsGo) {
  // The executor keeps what it is given until it is told to run it.
  struct Later {
    std::mutex mutex;
    std::vector<std::function<void()>> tasks;
  };
  const auto later = std::make_shared<Later>();
  Recorder<std::string> log;
  // By name: g++ 12 destroys a lambda with captures that stands inside a co_await twice.
  const Executor keep_for_later = [later](std::function<void()> task) {
    const std::lock_guard guard(later->mutex);
    later->tasks.push_back(std::move(task));
  };
  const auto wait = [&](Mutex lock) -> Task {
    Result<Lease> lease = co_await lock.lock_async(soon()).on(keep_for_later);
    log.add("resumed");
  };
  {
    const Task task = wait(mutex(open()));
    ASSERT_TRUE(eventually([&] {
      const std::lock_guard guard(later->mutex);
      return !later->tasks.empty();
    }));
  }
  for (const auto& task : std::exchange(later->tasks, {})) task();
  EXPECT_EQ(log.size(), 0U);
  EXPECT_TRUE(witness.is_quiet(directory));
}

TEST_P(WaitingTest, H55_ACoroutineMayHopBetweenThreadsWhileItHolds) {
  asio::thread_pool pool(2);
  Recorder<std::string> log;
  const auto hop = [&](Mutex lock) -> asio::awaitable<void> {
    Result<Lease> lease = co_await async_wait(lock.lock_async(soon()), asio::use_awaitable);
    for (int i = 0; i < 20; ++i) co_await asio::post(pool, asio::use_awaitable);
    log.add(lease && lease->release() == Released::kNow ? "released" : "not");
  };
  asio::co_spawn(pool, hop(mutex(open())), asio::detached);
  ASSERT_TRUE(log.wait_for(1));
  EXPECT_EQ(log.last(), "released");
  pool.join();
}

TEST_P(WaitingTest, H55_ACoroutineThatHasHoppedEntersItsRecursiveMutexAgain) {
  asio::thread_pool pool(2);
  Recorder<std::string> log;
  const auto enter_again = [&](RecursiveMutex lock) -> asio::awaitable<void> {
    const Owner owner;
    Result<Lease> outer =
        co_await async_wait(lock.of(owner).lock_async(soon()), asio::use_awaitable);
    for (int i = 0; i < 20; ++i) co_await asio::post(pool, asio::use_awaitable);
    Result<Lease> inner =
        co_await async_wait(lock.of(owner).try_lock_async(soon()), asio::use_awaitable);
    Result<Lease> other =
        co_await async_wait(lock.of(Owner()).try_lock_async(soon()), asio::use_awaitable);
    const bool entered = outer && inner && inner->token() == outer->token();
    log.add(entered && !other && other.error() == Code::kBusy ? "entered again" : "not");
  };
  asio::co_spawn(pool, enter_again(RecursiveMutex(open(), directory)), asio::detached);
  ASSERT_TRUE(log.wait_for(1));
  EXPECT_EQ(log.last(), "entered again");
  pool.join();
  EXPECT_TRUE(witness.is_quiet(directory));
}

// ---- Asio ---------------------------------------------------------------------------------------

TEST_P(WaitingTest, AsioCallbacksFuturesAndAwaitables) {
  asio::io_context context;
  const Session session = open();
  Recorder<std::string> log;
  async_wait(
      mutex(session).lock_async(soon()), asio::bind_executor(context, [&](Result<Lease> lease) {
        log.add(lease && context.get_executor().running_in_this_thread() ? "callback" : "no");
      }));
  asio::co_spawn(
      context,
      [&]() -> asio::awaitable<void> {
        Result<Lease> lease =
            co_await async_wait(mutex(session).lock_async(soon()), asio::use_awaitable);
        log.add(lease ? "awaitable" : "no");
      },
      asio::detached);
  context.run();  // Returns when both are done: waiting counts as work.
  EXPECT_THAT(log.all(), testing::UnorderedElementsAre("callback", "awaitable"));
  auto future = async_wait(mutex(session).lock_async(soon()), asio::use_future);
  EXPECT_TRUE(ok(future.get()));
}

TEST_P(WaitingTest, AnAsioCancellationTakesTheRequestOutOfTheQueue) {
  asio::io_context context;
  const Session session = open();
  const Lease holder = take(session, directory);
  asio::cancellation_signal signal;
  std::optional<Result<Lease>> answer;
  async_wait(mutex(session).lock_async(soon()),
             asio::bind_cancellation_slot(signal.slot(),
                                          asio::bind_executor(context, [&](Result<Lease> lease) {
                                            answer.emplace(std::move(lease));
                                          })));
  ASSERT_TRUE(witness.queue_reaches(directory, 2));
  signal.emit(asio::cancellation_type::all);
  context.run();
  ASSERT_TRUE(answer);
  EXPECT_TRUE(fails_with(*answer, Code::kCancelled));
  EXPECT_TRUE(witness.queue_reaches(directory, 1));
}

// ---- Every lock ---------------------------------------------------------------------------------

using Answer = std::future<Result<Lease>>;
using Promise = std::shared_ptr<std::promise<Result<Lease>>>;

Task wait_by_coroutine(Lock lock, Promise promise) {
  Result<Lease> lease = co_await lock.lock_async(soon());
  promise->set_value(std::move(lease));
}

/// Every way to ask for a lock, as one: when it returns the lock has been asked for, but for the
/// blocking way, which does so soon.
std::vector<std::pair<std::string, std::function<Answer(const Lock&)>>> ways(
    std::vector<std::unique_ptr<Task>>& tasks) {
  return {{"blocking",
           [](const Lock& lock) {
             return std::async(std::launch::async, [lock] { return lock.lock(soon()); });
           }},
          {"future", [](const Lock& lock) { return lock.lock_async(soon()).future(); }},
          {"Asio",
           [](const Lock& lock) { return async_wait(lock.lock_async(soon()), asio::use_future); }},
          {"callback",
           [](const Lock& lock) {
             const auto promise = std::make_shared<std::promise<Result<Lease>>>();
             lock.lock_async(soon()).then(
                 [promise](Result<Lease> lease) { promise->set_value(std::move(lease)); });
             return promise->get_future();
           }},
          {"coroutine", [&tasks](const Lock& lock) {
             const auto promise = std::make_shared<std::promise<Result<Lease>>>();
             Answer answer = promise->get_future();
             tasks.push_back(std::unique_ptr<Task>(new Task(wait_by_coroutine(lock, promise))));
             return answer;
           }}};
}

/// Each way waits for the rival to let go, gets the lock and lets it go again.
void wait_in_every_way(Session& session, const Lock& lock, const Lock& rival) {
  std::vector<std::unique_ptr<Task>> tasks;
  for (const auto& [name, ask] : ways(tasks)) {
    auto held = rival.lock(soon());
    ASSERT_TRUE(ok(held)) << name;
    EXPECT_TRUE(fails_with(lock.try_lock(), Code::kBusy)) << name;
    Answer answer = ask(lock);
    // Behind what was asked for: by now the server has heard of it.
    EXPECT_TRUE(ok(session.sync("/", soon())));
    EXPECT_NE(answer.wait_for(0s), std::future_status::ready) << name;
    held->release();
    EXPECT_TRUE(ok(answer.get())) << name;
  }
  for (const auto& task : tasks) EXPECT_TRUE(task->ends());
  EXPECT_TRUE(eventually([&] { return lock.try_lock().has_value(); })) << "try";

  const auto held = rival.lock(soon());
  ASSERT_TRUE(ok(held));
  std::stop_source stop;
  Answer cancelled = lock.lock_async(soon(), stop.get_token()).future();
  EXPECT_TRUE(ok(session.sync("/", soon())));
  stop.request_stop();
  EXPECT_TRUE(fails_with(cancelled.get(), Code::kCancelled)) << "stop";
}

TEST_P(WaitingTest, EveryLockCanBeWaitedForInEveryWay) {
  Session session = open();
  const Session other = open();
  const auto both = [&](const auto& make) {
    wait_in_every_way(session, make(session), make(other));
  };
  const RwLock rw(session, directory + "-rw");
  const RwLock rival(other, directory + "-rw");
  both([&](const Session& one) { return mutex(one); });
  wait_in_every_way(session, rw.read(), rival.write());
  wait_in_every_way(session, rw.write(), rival.read());
  both([&](const Session& one) {
    return RecursiveMutex(one, directory + "-recursive").of(Owner());
  });
  both([&](const Session& one) {
    return Semaphore(one, directory + "-permits", {.size = 3}).permits(2);
  });
  both([&](const Session& one) { return MultiLock(one, {directory + "-a", directory + "-b"}); });
  both([&](const Session& one) { return NameLock(one, directory + "-name"); });
  both([&](const Session& one) { return Mutex(one, directory, {.hand_over = {.count = 4}}); });
  both([&](const Session& one) { return Mutex(one, directory + "-delay", {.lock_delay = 1h}); });

  auto writing = rw.write().lock(soon());
  ASSERT_TRUE(ok(writing));
  EXPECT_TRUE(ok(rw.downgrade_async(std::move(*writing), soon()).future().get()));
}

// ---- In the standard's dress --------------------------------------------------------------------

template <class L>
concept TimedLockable = requires(L lock) {
  lock.lock();
  lock.unlock();
  { lock.try_lock() } -> std::same_as<bool>;
  { lock.try_lock_for(1s) } -> std::same_as<bool>;
  { lock.try_lock_until(std::chrono::steady_clock::now()) } -> std::same_as<bool>;
};
template <class L>
concept SharedTimedLockable = requires(L lock) {
  lock.lock_shared();
  lock.unlock_shared();
  { lock.try_lock_shared() } -> std::same_as<bool>;
  { lock.try_lock_shared_for(1s) } -> std::same_as<bool>;
  { lock.try_lock_shared_until(std::chrono::steady_clock::now()) } -> std::same_as<bool>;
};
static_assert(TimedLockable<Lockable>);
static_assert(TimedLockable<SharedLockable> && SharedTimedLockable<SharedLockable>);

TEST_P(WaitingTest, TheStandardsGuardsWork) {
  const Session session = open();
  Lockable one(mutex(session));
  Lockable other(Mutex(session, directory + "-other"));
  {
    const std::scoped_lock both(one, other);
    EXPECT_GT(one.lease().token().zxid(), 0);
    std::jthread([&] { EXPECT_FALSE(one.try_lock()); }).join();
  }
  std::unique_lock lock(one, 60s);
  ASSERT_TRUE(lock.owns_lock());
  lock.unlock();
  EXPECT_TRUE(witness.is_quiet(directory));
}

TEST_P(WaitingTest, FalseMeansBusyAndEverythingElseIsThrown) {
  const Session holder = open();
  const Lease held = take(holder, directory);
  Session session = open();
  Lockable lock(mutex(session));
  EXPECT_FALSE(lock.try_lock());
  EXPECT_FALSE(lock.try_lock_for(50ms));
  ASSERT_TRUE(ok(session.close(soon())));
  EXPECT_THROW(static_cast<void>(lock.try_lock()), std::system_error);
  EXPECT_THROW(static_cast<void>(lock.try_lock_for(1s)), std::system_error);
  try {
    lock.lock();
    ADD_FAILURE() << "locked on a closed session";
  } catch (const std::system_error& error) {
    EXPECT_EQ(error.code(), make_error_code(Code::kClosed));
  }
}

/// What a façade throws, as a code; none if it throws nothing.
template <class Misuse>
std::error_code thrown_by(Misuse misuse) {
  try {
    misuse();
  } catch (const std::system_error& error) {
    return error.code();
  }
  return {};
}
const auto kNotPermitted = std::make_error_code(std::errc::operation_not_permitted);
const auto kWouldDeadlock = make_error_code(Code::kWouldDeadlock);

TEST_P(WaitingTest, MisuseInTheStandardsDressIsThrownNotAHang) {
  Lockable lock(mutex(open()));
  EXPECT_EQ(thrown_by([&] { lock.unlock(); }), kNotPermitted) << "held by nobody";
  lock.lock();
  EXPECT_EQ(thrown_by([&] { lock.lock(); }), kWouldDeadlock) << "recursion";
  EXPECT_EQ(thrown_by([&] { static_cast<void>(lock.try_lock()); }), kWouldDeadlock);
  EXPECT_EQ(thrown_by([&] { static_cast<void>(lock.try_lock_for(1h)); }), kWouldDeadlock);
  std::jthread([&] {
    EXPECT_EQ(thrown_by([&] { lock.unlock(); }), kNotPermitted) << "a stranger";
    EXPECT_EQ(thrown_by([&] { static_cast<void>(lock.lease()); }), kNotPermitted);
  }).join();
  EXPECT_EQ(lock.lease().state(), LeaseState::kHeld) << "whatever others tried";
  lock.unlock();
  EXPECT_EQ(thrown_by([&] { static_cast<void>(lock.lease()); }), kNotPermitted);
  EXPECT_TRUE(witness.is_quiet(directory));
}

TEST_P(WaitingTest, MisuseOfReadersAndWritersInTheStandardsDressIsThrownNotAHang) {
  SharedLockable shared(RwLock(open(), directory));
  EXPECT_EQ(thrown_by([&] { shared.unlock_shared(); }), kNotPermitted);
  EXPECT_EQ(thrown_by([&] { shared.unlock(); }), kNotPermitted);
  {
    const std::shared_lock reading(shared);
    EXPECT_EQ(thrown_by([&] { shared.lock(); }), kWouldDeadlock)
        << "an upgrade would wait for itself";
    EXPECT_EQ(thrown_by([&] { shared.lock_shared(); }), kWouldDeadlock);
    EXPECT_EQ(thrown_by([&] { static_cast<void>(shared.try_lock()); }), kWouldDeadlock);
    EXPECT_EQ(thrown_by([&] { static_cast<void>(shared.try_lock_shared_for(1h)); }),
              kWouldDeadlock);
    EXPECT_EQ(thrown_by([&] { shared.unlock(); }), kNotPermitted) << "held, but shared";
    std::jthread([&] {
      EXPECT_EQ(thrown_by([&] { shared.unlock_shared(); }), kNotPermitted) << "a stranger";
      const std::shared_lock beside(shared);
      EXPECT_TRUE(beside.owns_lock());
    }).join();
    std::jthread([&] { EXPECT_FALSE(shared.try_lock()); }).join();
  }
  const std::unique_lock writing(shared);
  EXPECT_EQ(thrown_by([&] { shared.lock(); }), kWouldDeadlock);
  EXPECT_EQ(thrown_by([&] { shared.lock_shared(); }), kWouldDeadlock);
  EXPECT_EQ(thrown_by([&] { shared.unlock_shared(); }), kNotPermitted) << "held, but alone";
}

TEST_P(WaitingTest, H55_AThreadThatEndedIsNobodysOwner) {
  Lockable lock(mutex(open()));
  std::jthread([&] { lock.lock(); }).join();
  // Whatever ids later threads get, none of them may unlock it or is taken for the holder.
  for (int i = 0; i < 8; ++i) {
    std::jthread([&] {
      EXPECT_THROW(lock.unlock(), std::system_error);
      EXPECT_FALSE(lock.try_lock());
    }).join();
  }
}

TEST_P(WaitingTest, ASpanOfNothingIsATry) {
  Lockable lock(mutex(open()));
  EXPECT_TRUE(lock.try_lock_for(0s));
  lock.unlock();
  EXPECT_TRUE(lock.try_lock_until(std::chrono::system_clock::now() - 1h));
  lock.unlock();
  EXPECT_TRUE(lock.try_lock_for(std::chrono::hours::max()));
  lock.unlock();
}

// ---- run_while_held -----------------------------------------------------------------------------

TEST_P(WaitingTest, WorkRunsWhileTheLockIsHeld) {
  const Session session = open();
  std::optional<Token> seen;
  EXPECT_TRUE(ok(run_while_held(mutex(session), [&](std::stop_token, const Lease& lease) {
    seen = lease.token();
    EXPECT_EQ(witness.queue(directory).size(), 1U);
  })));
  EXPECT_TRUE(seen);
  EXPECT_TRUE(witness.is_quiet(directory));
  EXPECT_THROW(static_cast<void>(run_while_held(
                   mutex(session), [](std::stop_token) { throw std::runtime_error(""); })),
               std::runtime_error);
  EXPECT_TRUE(witness.is_quiet(directory));
}

TEST_P(WaitingTest, WorkIsAskedToStopOnLossAndIsQueuedAgainIfWanted) {
  const Session session = open();
  for (const auto after : {RunOptions::AfterLoss::kReturn, RunOptions::AfterLoss::kRequeue}) {
    int runs = 0;
    const Result<void> done = run_while_held(
        mutex(session),
        [&](std::stop_token stop, const Lease& lease) {
          if (++runs > 1) return;
          static_cast<void>(lease.release_requested());  // So that the own node is watched.
          ASSERT_TRUE(ok(witness.session().remove(lease.node(), soon())));
          EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }));
        },
        {.after_loss = after});
    const bool again = after == RunOptions::AfterLoss::kRequeue;
    EXPECT_EQ(runs, again ? 2 : 1);
    EXPECT_TRUE(again ? ok(done) : fails_with(done, Code::kLost));
  }
}

TEST_P(WaitingTest, WorkIsAskedToStopFromOutside) {
  const Session session = open();
  std::stop_source stop;
  EXPECT_TRUE(ok(run_while_held(mutex(session),
                                [&](std::stop_token asked) {
                                  stop.request_stop();
                                  EXPECT_TRUE(asked.stop_requested());
                                },
                                {.stop = stop.get_token()})));
  EXPECT_TRUE(
      fails_with(run_while_held(mutex(session), [](std::stop_token) {}, {.stop = stop.get_token()}),
                 Code::kCancelled));
}

INSTANTIATE_TEST_SUITE_P(Standalone, WaitingTest, testing::Values(ServiceKind::kStandalone));
INSTANTIATE_TEST_SUITE_P(Ensemble, WaitingTest, testing::Values(ServiceKind::kEnsemble));
INSTANTIATE_TEST_SUITE_P(Embedded, WaitingTest, testing::Values(ServiceKind::kEmbedded));

}  // namespace
}  // namespace latchkey::test_support
