#include "queue/farewell.hpp"

#include <limits>

#include <gtest/gtest.h>

#include "queue/delay_note.hpp"
#include "queue/lock_delay.hpp"

namespace latchkey::queue {
namespace {

TEST(Farewell, SaysWhoLeft) {
  for (const std::int64_t czxid :
       {std::int64_t{1}, std::int64_t{4'294'967'321}, std::numeric_limits<std::int64_t>::max()}) {
    EXPECT_EQ(parse_farewell(format_farewell(czxid)), czxid);
  }
  EXPECT_EQ(format_farewell(4'294'967'321), "left 4294967321");
}

TEST(Farewell, IsNothingElse) {
  for (const char* data :
       {"", "left", "left ", "left  7", "left 07", "left 0", "left -7", "left +7", "left 7 ",
        "left 7\n", "left 0x7", "left 9223372036854775808", "Left 7", " left 7", "right 7", "7",
        "held 7", "gone 7", "left 7\nlock_delay=5"}) {
    EXPECT_FALSE(parse_farewell(data)) << data;
  }
}

TEST(Farewell, IsWrittenOverNothingAndOverAnother) {
  EXPECT_TRUE(makes_room(""));
  EXPECT_TRUE(makes_room("left 7"));
  EXPECT_FALSE(makes_room("a user's own words"));
  EXPECT_FALSE(makes_room(format_holder(7)));
  EXPECT_FALSE(makes_room(format_vanished(7)));
}

TEST(Farewell, MeansNobodyToALockDelay) {
  EXPECT_EQ(parse_mark(format_farewell(7)).kind, HolderMark::Kind::kNobody);
  const std::string waits_out = with_delay_note("me", std::chrono::seconds(5));
  EXPECT_FALSE(holds_if_first(waits_out, 7, format_farewell(7)));
  EXPECT_TRUE(holds_if_first("me", 7, format_farewell(6)));
}

}  // namespace
}  // namespace latchkey::queue
