#include "net/callback_pool.hpp"

#include <atomic>
#include <future>
#include <memory>
#include <system_error>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "net/threads.hpp"

namespace latchkey::net {
namespace {

/// Starts threads, or says that the system has none.
struct System {
  std::atomic<int> refusals = 0;
  std::atomic<int> started = 0;

  [[nodiscard]] CallbackPool::Starter starter() {
    return [this](const char* name, std::function<void()> body) {
      if (refusals > 0) {
        --refusals;
        return false;
      }
      ++started;
      return start_thread(name, std::move(body));
    };
  }
};

/// Never destroyed, as a pool's threads may outlive a test; kept where a leak checker finds it.
template <class T>
T& keep(T* object) {
  static auto* const kept = new std::vector<T*>;
  kept->push_back(object);
  return *object;
}

CallbackPool& make_pool(System& system, int most, int spare) {
  return keep(
      new CallbackPool({.name = "test", .most = most, .spare = spare, .start = system.starter()}));
}

System& make_system() { return keep(new System); }

/// A task that ends when it is told to.
class Blocker {
 public:
  void operator()() const {
    begun_->set_value();
    gate_.wait();
  }
  void await_begin() { begun_future_.wait(); }
  void open() { opener_->set_value(); }

 private:
  std::shared_ptr<std::promise<void>> begun_ = std::make_shared<std::promise<void>>();
  std::shared_future<void> begun_future_ = begun_->get_future().share();
  std::shared_ptr<std::promise<void>> opener_ = std::make_shared<std::promise<void>>();
  std::shared_future<void> gate_ = opener_->get_future().share();
};

void expect_runs(CallbackPool& pool) {
  std::promise<void> done;
  pool.post([&] { done.set_value(); });
  EXPECT_EQ(done.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
}

TEST(CallbackPool, H56_ATaskDoesNotWaitForAnother) {
  CallbackPool& pool = make_pool(make_system(), 100, 0);
  std::vector<Blocker> blockers(20);
  for (Blocker& one : blockers) pool.post(one);

  for (Blocker& one : blockers) one.await_begin();
  expect_runs(pool);

  for (Blocker& one : blockers) one.open();
}

TEST(CallbackPool, H56_AThreadThatCannotBeHadIsAskedForAgain) {
  System& system = make_system();
  CallbackPool& pool = make_pool(system, 100, 0);
  system.refusals = 5;

  expect_runs(pool);

  EXPECT_EQ(system.refusals, 0);
}

TEST(CallbackPool, H56_ASpareThreadIsThereWhenNoneCanBeHad) {
  System& system = make_system();
  CallbackPool& pool = make_pool(system, 100, 1);
  EXPECT_EQ(system.started, 1);
  system.refusals = 1'000'000'000;

  expect_runs(pool);
  expect_runs(pool);

  EXPECT_EQ(system.started, 1);
  system.refusals = 0;
}

TEST(CallbackPool, H56_BehindABusySpareThreadAnotherIsAskedForUntilItComes) {
  System& system = make_system();
  CallbackPool& pool = make_pool(system, 100, 1);
  system.refusals = 5;
  Blocker blocker;
  pool.post(blocker);
  blocker.await_begin();

  expect_runs(pool);

  blocker.open();
}

TEST(CallbackPool, WithoutASpareThreadThereIsNoPool) {
  System& system = make_system();
  system.refusals = 1;

  EXPECT_THROW(CallbackPool({.name = "test", .most = 1, .spare = 1, .start = system.starter()}),
               std::system_error);
}

TEST(CallbackPool, NoMoreThreadsThanAllowedRunAtATime) {
  System& system = make_system();
  CallbackPool& pool = make_pool(system, 2, 0);
  std::vector<Blocker> blockers(3);
  for (Blocker& one : blockers) pool.post(one);

  blockers[0].await_begin();
  blockers[1].await_begin();
  EXPECT_EQ(system.started, 2);
  for (Blocker& one : blockers) one.open();
  blockers[2].await_begin();

  EXPECT_EQ(system.started, 2);
}

TEST(CallbackPool, H57_UserCodeHasTheSignalMaskOfTheThreadThatMadeThePool) {
  sigset_t before;
  sigset_t ours;
  ::sigemptyset(&ours);
  ::sigaddset(&ours, SIGUSR2);
  ::pthread_sigmask(SIG_SETMASK, &ours, &before);
  CallbackPool& pool = make_pool(make_system(), 2, 0);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);

  std::promise<sigset_t> seen;
  pool.post([&] {
    sigset_t mask;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    seen.set_value(mask);
  });

  const sigset_t mask = seen.get_future().get();
  EXPECT_EQ(::sigismember(&mask, SIGUSR2), 1);
  EXPECT_EQ(::sigismember(&mask, SIGTERM), 0);
}

}  // namespace
}  // namespace latchkey::net
