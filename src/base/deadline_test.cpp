#include "latchkey/deadline.hpp"

#include <gtest/gtest.h>

namespace latchkey {
namespace {

using std::chrono::seconds;

TEST(Deadline, HasPassedAtItsMoment) {
  const Deadline deadline{Instant(seconds(5))};

  EXPECT_FALSE(deadline.has_passed(Instant(seconds(5)) - Duration(1)));
  EXPECT_TRUE(deadline.has_passed(Instant(seconds(5))));
  EXPECT_FALSE(deadline.is_never());
}

TEST(Deadline, NeverIsLaterThanAnyOther) {
  EXPECT_TRUE(Deadline::never().is_never());
  EXPECT_GT(Deadline::never(), deadline_in(seconds(1'000'000)));
  EXPECT_FALSE(Deadline::never().has_passed(Instant(seconds(1'000'000'000))));
}

TEST(Deadline, InASpanTooLongToAddIsNever) {
  EXPECT_TRUE(deadline_in(Duration::max()).is_never());
  EXPECT_TRUE(deadline_in(Instant::max() - Instant()).is_never());
}

TEST(Deadline, InASpanThatNanosecondsCannotHoldIsNever) {
  EXPECT_TRUE(deadline_in(std::chrono::years(300)).is_never());
  EXPECT_TRUE(deadline_in(std::chrono::hours::max()).is_never());
  EXPECT_FALSE(deadline_in(std::chrono::years(200)).is_never());
  EXPECT_TRUE(deadline_in(std::chrono::hours::min()).has_passed(BootClock::now()));
}

TEST(Deadline, InAFractionOfASecond) {
  const Instant before = BootClock::now();
  EXPECT_GE(deadline_in(std::chrono::duration<double>(1.5)).at(), before + Duration(1'500'000'000));
}

TEST(Deadline, InANegativeSpanHasPassed) {
  EXPECT_TRUE(deadline_in(seconds(-1)).has_passed(BootClock::now()));
  EXPECT_TRUE(deadline_in(Duration::min()).has_passed(BootClock::now()));
  EXPECT_TRUE(deadline_in(Duration{}).has_passed(BootClock::now()));
}

TEST(BootClock, DoesNotGoBack) {
  const Instant first = BootClock::now();

  EXPECT_GE(BootClock::now(), first);
  EXPECT_GT(first, Instant());
}

}  // namespace
}  // namespace latchkey
