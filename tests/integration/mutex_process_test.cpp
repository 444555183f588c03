#include <csignal>

#include <gmock/gmock.h>

#include "integration/mutex_fixture.hpp"
#include "latchkey/inspect.hpp"
#include "support/child.hpp"

/// Locks of other processes, which are stopped and killed.
namespace latchkey::test_support {
namespace {

/// See lock_holder.cpp.
class Holder {
 public:
  Holder(const std::string& connect, const std::string& directory, int timeout_ms = 6'000,
         int lock_delay_ms = 0)
      : process_({LATCHKEY_LOCK_HOLDER, connect, directory, std::to_string(timeout_ms),
                  std::to_string(lock_delay_ms)}) {}

  [[nodiscard]] Child& process() { return process_; }
  [[nodiscard]] bool queued() { return process_.wait_for_line("queued", soon()).has_value(); }
  /// Waits until it holds.
  [[nodiscard]] Token token() {
    const auto line = process_.wait_for_line("held ", soon());
    if (!line) throw std::runtime_error("the other process does not hold the lock");
    return Token(std::stoll(line->substr(5)));
  }
  [[nodiscard]] std::string ask(const std::string& what) {
    if (!process_.write(what + "\n")) return "gone";
    return process_.next_line(soon()).value_or("silent");
  }

 private:
  Child process_;
};

TEST_P(MutexTest, ACrashedHolderMakesWayForTheNext) {
  Holder holder(service().connect_string(), directory);
  const Token old = holder.token();
  Waiter next(mutex(open()));
  ASSERT_TRUE(witness.queue_reaches(directory, 2));

  holder.process().signal(SIGKILL);

  ASSERT_TRUE(next.holds());
  EXPECT_GT(next.lease().token(), old);
  EXPECT_EQ(witness.queue(directory).size(), 1U);
}

TEST_P(MutexTest, H73_TheLockDelayOfAHolderThatWasKilledIsTheNextOnes) {
  Holder holder(service().connect_string(), directory, 6'000, 3'600'000);
  const Token old = holder.token();

  holder.process().signal(SIGKILL);
  ASSERT_TRUE(witness.queue_reaches(directory, 0));

  EXPECT_EQ(witness.synced().get(directory, soon())->data, "held " + std::to_string(old.zxid()));
  const Mutex patient_one(open(), directory, {.lock_delay = 1h});
  EXPECT_TRUE(fails_with(patient_one.try_lock(soon()), Code::kBusy, "lock delay"));
  {
    Waiter next(patient_one);
    ASSERT_TRUE(witness.queue_reaches(directory, 1));
    const auto queue = inspect(witness.synced(), directory, soon());
    ASSERT_TRUE(ok(queue));
    EXPECT_TRUE(queue->holders().empty()) << "it waits out the delay";
    EXPECT_FALSE(next.has_answer());
  }
  // All should use the same delay; one that is short ends the test.
  auto last = Mutex(open(), directory, {.lock_delay = 100ms}).lock(soon());
  ASSERT_TRUE(ok(last));
  EXPECT_GT(last->token(), old);
}

TEST_P(MutexTest, H27_ACrashedWaiterIsSkippedAndChangesNothingForTheHolder) {
  Lease lease = take(open(), directory);
  Holder second(service().connect_string(), directory);
  ASSERT_TRUE(second.queued());
  ASSERT_TRUE(witness.queue_reaches(directory, 2));
  Waiter third(mutex(open()));
  ASSERT_TRUE(witness.queue_reaches(directory, 3));

  second.process().signal(SIGKILL);

  ASSERT_TRUE(witness.queue_reaches(directory, 2));
  EXPECT_FALSE(third.has_answer());
  EXPECT_EQ(lease.state(), LeaseState::kHeld);
  lease.release();
  EXPECT_TRUE(third.holds());
}

TEST_P(MutexTest, AProcessThatEndsInOrderLeavesTheLockAtOnce) {
  Holder holder(service().connect_string(), directory, 60'000);
  static_cast<void>(holder.token());
  Waiter next(mutex(open()));
  ASSERT_TRUE(witness.queue_reaches(directory, 2));

  holder.process().close_stdin();

  EXPECT_TRUE(next.holds());
  EXPECT_EQ(holder.process().wait(soon()), (ExitStatus{0, 0}));
}

TEST_P(MutexTest, H13_AProcessStoppedPastItsTimeoutFindsItsLockLostAtOnce) {
  FencedResource resource;
  Holder holder(service().connect_string(), directory, 10'000);
  const Token old = holder.token();
  ASSERT_TRUE(resource.write(old));
  EXPECT_EQ(holder.ask("state"), "held");
  holder.process().pause();

  const Lease next = take(open(), directory);
  ASSERT_TRUE(resource.write(next.token()));
  // The question lies there before it wakes up.
  ASSERT_TRUE(holder.process().write("state\n"));
  holder.process().resume();

  EXPECT_EQ(holder.process().next_line(soon()), "lost");
  EXPECT_FALSE(resource.write(old));
  EXPECT_EQ(holder.ask("release"), "over");
  EXPECT_EQ(next.state(), LeaseState::kHeld);
  EXPECT_EQ(witness.queue(directory).size(), 1U);
}

TEST_P(MutexTest, H13_AReleaseRightAfterAPauseKnowsThatTheLockIsLost) {
  Holder holder(service().connect_string(), directory);
  static_cast<void>(holder.token());
  holder.process().pause();
  ASSERT_TRUE(witness.queue_reaches(directory, 0));

  ASSERT_TRUE(holder.process().write("release\n"));
  holder.process().resume();

  EXPECT_EQ(holder.process().next_line(soon()), "over");
}

TEST_P(MutexTest, H13_AShortPauseCostsNobodyTheLock) {
  Holder holder(service().connect_string(), directory, 60'000);
  static_cast<void>(holder.token());
  ASSERT_EQ(holder.ask("state"), "held");

  holder.process().pause();
  holder.process().resume();

  EXPECT_EQ(holder.ask("state"), "held");
  EXPECT_EQ(holder.ask("release"), "released");
}

}  // namespace
}  // namespace latchkey::test_support
