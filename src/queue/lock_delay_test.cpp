#include "queue/lock_delay.hpp"

#include <gtest/gtest.h>

namespace latchkey::queue {
namespace {

TEST(LockDelay, H73_AHolderThatLetGoHasNotVanished) {
  EXPECT_FALSE(has_vanished(kNoHolder, 7));
  EXPECT_FALSE(has_vanished(format_holder(7), 7)) << "that is us: the answer to our mark was lost";
}

TEST(LockDelay, H73_AMarkThatIsNotOursIsOfOneThatVanished) {
  EXPECT_TRUE(has_vanished(format_holder(6), 7));
  EXPECT_TRUE(has_vanished(format_holder(4'294'967'321), 7));
}

TEST(LockDelay, WhatOthersWroteThereSaysNothing) {
  for (const char* data :
       {"held", "held ", "held x", "held 6x", "held 6\n", "HELD 6", "10.0.0.1"}) {
    EXPECT_FALSE(has_vanished(data, 7)) << data;
  }
}

}  // namespace
}  // namespace latchkey::queue
