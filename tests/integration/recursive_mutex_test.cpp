#include "latchkey/recursive_mutex.hpp"

#include <gmock/gmock.h>

#include "integration/mutex_fixture.hpp"

namespace latchkey::test_support {
namespace {

class RecursiveMutexTest : public MutexTest {
 protected:
  [[nodiscard]] RecursiveMutex recursive(const Session& session) const {
    return RecursiveMutex(session, directory);
  }
};

TEST_P(RecursiveMutexTest, TheOwnerEntersAgainAtOnceWithTheSameToken) {
  const RecursiveMutex mutex = recursive(open());
  const Owner owner;
  auto outer = mutex.of(owner).lock(soon());
  ASSERT_TRUE(ok(outer));
  auto inner = mutex.of(owner).try_lock();
  ASSERT_TRUE(ok(inner));
  EXPECT_EQ(inner->token(), outer->token());
  EXPECT_EQ(witness.queue(directory).size(), 1U);
}

TEST_P(RecursiveMutexTest, TheLockPassesOnWithTheLastLeaseInWhateverOrder) {
  const Session session = open();
  const RecursiveMutex mutex = recursive(session);
  for (const bool outer_first : {true, false}) {
    const Owner owner;
    auto outer = mutex.of(owner).lock(soon());
    auto inner = mutex.of(owner).lock(soon());
    ASSERT_TRUE(ok(outer) && ok(inner));
    Waiter next(mutex.of(Owner()));
    ASSERT_TRUE(witness.queue_reaches(directory, 2));
    EXPECT_EQ((outer_first ? outer : inner)->release(), Released::kStillHeld);
    EXPECT_EQ((outer_first ? outer : inner)->state(), LeaseState::kReleased);
    EXPECT_EQ((outer_first ? inner : outer)->state(), LeaseState::kHeld);
    EXPECT_EQ(witness.queue(directory).size(), 2U);
    EXPECT_FALSE(next.has_answer());
    EXPECT_TRUE(ok((outer_first ? inner : outer)->release(soon())));
    ASSERT_TRUE(next.holds());
  }
}

TEST_P(RecursiveMutexTest, H55_TheThreadIsTheOwnerOfBlockingCallsWithoutOne) {
  const RecursiveMutex mutex = recursive(open());
  auto outer = mutex.lock(soon());
  ASSERT_TRUE(ok(outer));
  ASSERT_TRUE(ok(mutex.lock(soon())));
  std::jthread([&] { EXPECT_TRUE(fails_with(mutex.try_lock(), Code::kBusy)); }).join();
}

TEST_P(RecursiveMutexTest, H55_AThreadThatEndsWhileItHoldsIsNotInheritedByTheNextThread) {
  const RecursiveMutex mutex = recursive(open());
  std::optional<Lease> left;
  std::jthread([&] { left.emplace(std::move(mutex.lock(soon()).value())); }).join();
  // Thread ids are used again; owners are not.
  for (int i = 0; i < 8; ++i) {
    std::jthread([&] { EXPECT_TRUE(fails_with(mutex.try_lock(), Code::kBusy)); }).join();
  }
  left.reset();  // The hold is the value, and this is its end.
  EXPECT_TRUE(ok(mutex.lock(soon())));
}

TEST_P(RecursiveMutexTest, H55_AnOwnerMayMoveBetweenThreads) {
  const RecursiveMutex mutex = recursive(open());
  const Owner task;
  auto outer = mutex.of(task).lock(soon());
  ASSERT_TRUE(ok(outer));
  std::jthread([&] { EXPECT_TRUE(ok(mutex.of(task).lock(soon()))); }).join();
  EXPECT_EQ(outer->state(), LeaseState::kHeld);
}

TEST_P(RecursiveMutexTest, AnOwnerThatWaitsCannotAskASecondTime) {
  const RecursiveMutex mutex = recursive(open());
  auto holder = mutex.lock(soon());
  ASSERT_TRUE(ok(holder));
  const Owner owner;
  Waiter first(mutex.of(owner));
  ASSERT_TRUE(witness.queue_reaches(directory, 2));
  EXPECT_TRUE(fails_with(mutex.of(owner).lock(soon()), Code::kWouldDeadlock, "owner"));
  holder->release();
  ASSERT_TRUE(first.holds());
}

TEST_P(RecursiveMutexTest, ALossIsToldToEveryLevelAndTheNextAskStartsAnew) {
  const RecursiveMutex mutex = recursive(open());
  const Owner owner;
  auto outer = mutex.of(owner).lock(soon());
  auto inner = mutex.of(owner).lock(soon());
  ASSERT_TRUE(ok(outer) && ok(inner));
  static_cast<void>(outer->release_requested());  // Watch the node now.
  ASSERT_TRUE(ok(witness.session().remove(outer->node(), soon())));
  EXPECT_TRUE(eventually([&] { return outer->lost().stop_requested(); }));
  EXPECT_TRUE(eventually([&] { return inner->lost().stop_requested(); }));
  EXPECT_EQ(inner->state(), LeaseState::kLost);
  auto again = mutex.of(owner).lock(soon());
  ASSERT_TRUE(ok(again));
  EXPECT_GT(again->token(), outer->token());
  EXPECT_EQ(outer->release(), Released::kAlreadyOver);
  EXPECT_EQ(again->state(), LeaseState::kHeld);
}

TEST_P(RecursiveMutexTest, ACancelledFirstLevelLeavesNothing) {
  const RecursiveMutex mutex = recursive(open());
  auto holder = mutex.lock(soon());
  ASSERT_TRUE(ok(holder));
  const Owner owner;
  EXPECT_TRUE(fails_with(mutex.of(owner).lock(deadline_in(50ms)), Code::kTimedOut));
  EXPECT_TRUE(witness.queue_reaches(directory, 1));
  holder->release();
  EXPECT_TRUE(ok(mutex.of(owner).lock(soon())));
  EXPECT_TRUE(witness.is_quiet(directory));
}

TEST_P(RecursiveMutexTest, H70_OwnersOfOneSessionPassTheLockOnWhenTheLastLevelIsReleased) {
  const RecursiveMutex mutex(open(), directory, {.hand_over = {.count = 8, .time = 60s}});
  const Owner owner;
  auto outer = mutex.of(owner).lock(soon());
  auto inner = mutex.of(owner).lock(soon());
  ASSERT_TRUE(ok(outer) && ok(inner));
  auto next = mutex.of(Owner()).lock_async(deadline_in(60s)).future();
  outer->release();
  EXPECT_NE(next.wait_for(0s), std::future_status::ready);
  inner->release();
  auto lease = next.get();
  ASSERT_TRUE(ok(lease));
  EXPECT_EQ(lease->token(), Token(outer->token().zxid(), 1));
}

TEST_P(RecursiveMutexTest, APlainMutexLockedAgainWaitsAndItsErrorNamesOurOwnEntry) {
  Session session = open();
  const Mutex plain = mutex(session);
  auto outer = plain.lock(soon());
  ASSERT_TRUE(ok(outer));
  Waiter again(plain);
  ASSERT_TRUE(witness.queue_reaches(directory, 2));
  // Answers come in order: behind the first comes that of its node, behind the second its look.
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(ok(session.sync(directory, soon())));
  EXPECT_FALSE(again.has_answer());
  again.cancel();
  EXPECT_FALSE(again.holds());
  EXPECT_TRUE(
      fails_with(again.answer(), Code::kCancelled, outer->node().substr(directory.size() + 1)));
  EXPECT_EQ(outer->state(), LeaseState::kHeld);
}

INSTANTIATE_TEST_SUITE_P(Standalone, RecursiveMutexTest, testing::Values(ServiceKind::kStandalone));
INSTANTIATE_TEST_SUITE_P(Ensemble, RecursiveMutexTest, testing::Values(ServiceKind::kEnsemble));
INSTANTIATE_TEST_SUITE_P(Embedded, RecursiveMutexTest, testing::Values(ServiceKind::kEmbedded));

}  // namespace
}  // namespace latchkey::test_support
