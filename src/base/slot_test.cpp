#include "base/slot.hpp"

#include <memory>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace latchkey::base {
namespace {

TEST(Slot, AValueThatIsThereNeedsNoWaiting) {
  Slot<std::string> slot;
  slot.set("a");

  EXPECT_TRUE(slot.wait_until(Deadline::never()));
  EXPECT_TRUE(slot.wait_until(Instant()));
  EXPECT_EQ(slot.take(), "a");
}

TEST(Slot, ADeadlineThatHasPassedIsNotWaitedFor) {
  Slot<std::string> slot;

  EXPECT_FALSE(slot.wait_until(Instant()));
}

TEST(Slot, CarriesWhatCanOnlyBeMoved) {
  Slot<std::unique_ptr<int>> slot;
  slot.set(std::make_unique<int>(7));

  EXPECT_EQ(*slot.take(), 7);
}

TEST(Slot, AValueOfAnotherThreadEndsTheWait) {
  constexpr int kRounds = 2'000;
  for (int i = 0; i < kRounds; ++i) {
    auto slot = std::make_unique<Slot<int>>();
    std::jthread other([&, i] { slot->set(i); });
    ASSERT_TRUE(slot->wait_until(Deadline::never()));
    ASSERT_EQ(slot->take(), i);
    slot.reset();  // The other may still be about to wake us.
  }
}

TEST(Slot, AValueThatCameForAnotherSlotIsNotTakenForThisOne) {
  Slot<int> first;
  Slot<int> second;
  std::jthread other([&] {
    first.set(1);
    second.set(2);
  });

  ASSERT_TRUE(second.wait_until(Deadline::never()));
  ASSERT_TRUE(first.wait_until(Deadline::never()));
  EXPECT_EQ(first.take() + second.take(), 3);
}

TEST(LateWakes, WhoIsWokenWakesWhenTheOutermostEnds) {
  Slot<int> slot;
  std::jthread other([&] {
    Slot<int> mine;
    LateWakes outer;
    EXPECT_EQ(outer.count(), 0U);
    {
      const LateWakes inner;
      slot.set(1);
      EXPECT_EQ(inner.count(), 1U);
    }
    EXPECT_EQ(outer.count(), 1U) << "not yet";
    mine.set(1);
    EXPECT_EQ(outer.count(), 1U) << "who is awake need not be woken";
  });

  EXPECT_TRUE(slot.wait_until(Deadline::never()));
}

TEST(LateWakes, AThreadThatHasEndedMayStillBeWoken) {
  const LateWakes late;
  std::thread([&] {
    Slot<int> slot;
    const LateWakes theirs;
    std::thread([&] { slot.set(1); }).join();
  }).join();
  std::shared_ptr<Parker> gone;
  std::thread([&] { gone = Parker::of_this_thread(); }).join();

  LateWakes::wake(gone);

  EXPECT_EQ(late.count(), 1U);
}

TEST(Parker, AThreadLocalObjectMayWaitWhileItsThreadEnds) {
  struct Last {
    ~Last() {
      Slot<int> slot;
      std::thread([&] { slot.set(7); }).join();
      *answer = slot.wait_until(Deadline::never()) ? slot.take() : 0;
    }
    int* answer;
  };
  int answer = 0;
  std::thread([&] {
    thread_local const Last last{&answer};  // Made before the thread's parker, so destroyed after.
    static_cast<void>(last.answer);
    static_cast<void>(Parker::of_this_thread());
  }).join();

  EXPECT_EQ(answer, 7);
}

}  // namespace
}  // namespace latchkey::base
