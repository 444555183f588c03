#include "queue/delay_note.hpp"

#include <gtest/gtest.h>

#include "queue/lock_delay.hpp"
#include "queue/owner.hpp"

namespace latchkey::queue {
namespace {

using std::chrono::milliseconds;

TEST(DelayNote, IsAddedBehindTheDataAndTakenOffAgain) {
  for (const std::string data : {"", "node-7", "two\nlines\n", "\nlock_delay=", "lock_delay=5"}) {
    const std::string noted = with_delay_note(data, milliseconds(5'000));

    EXPECT_EQ(noted, data + "\nlock_delay=5000");
    EXPECT_TRUE(has_delay_note(noted));
    EXPECT_EQ(without_delay_note(noted), data);
    EXPECT_FALSE(has_delay_note(data));
    EXPECT_EQ(without_delay_note(data), data);
  }
}

TEST(DelayNote, WithoutADelayThereIsNone) {
  EXPECT_EQ(with_delay_note("node-7", milliseconds(0)), "node-7");
}

TEST(DelayNote, LeavesWhoWeAreReadable) {
  const Owner owner{.host = "db1", .pid = 4711, .reason = "nightly run"};

  EXPECT_EQ(parse_owner(with_delay_note(format_owner(owner), milliseconds(5))), owner);
}

TEST(DelayNote, H73_WhoHasItHoldsOnlyOnceTheMarkNamesIt) {
  const std::string noted = with_delay_note("node-7", milliseconds(5));

  EXPECT_FALSE(holds_if_first(noted, 9, format_holder(8))) << "it waits out the delay";
  EXPECT_FALSE(holds_if_first(noted, 9, kNoHolder)) << "it is about to leave its mark";
  EXPECT_FALSE(holds_if_first(noted, 9, "somebody's text"));
  EXPECT_TRUE(holds_if_first(noted, 9, format_holder(9)));
}

TEST(DelayNote, H73_WhoHasNoneHoldsWhateverAnOldMarkSays) {
  EXPECT_TRUE(holds_if_first("node-7", 9, format_holder(8)));
  EXPECT_TRUE(holds_if_first("", 9, kNoHolder));
}

}  // namespace
}  // namespace latchkey::queue
