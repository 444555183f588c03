#include "base/slot.hpp"

#include <memory>
#include <string>

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

}  // namespace
}  // namespace latchkey::base
