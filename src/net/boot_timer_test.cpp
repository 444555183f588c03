#include "net/boot_timer.hpp"

#include <time.h>

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

namespace latchkey::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// How many timers of this process stand on boot time, as the kernel tells it.
int timers_on_boot_time() {
  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fdinfo")) {
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) {
      found += line == "clockid: " + std::to_string(CLOCK_BOOTTIME) ? 1 : 0;
    }
  }
  return found;
}

TEST(BootTimer, H14_StandsOnTheClockThatCountsSuspendedTime) {
  asio::io_context context;
  const int before = timers_on_boot_time();
  const BootTimer timer(context);

  EXPECT_EQ(timers_on_boot_time(), before + 1);
}

TEST(BootClock, H14_IsTheBootTimeAndNotTheWallClock) {
  timespec boot{};
  ::clock_gettime(CLOCK_BOOTTIME, &boot);
  const Instant now = BootClock::now();

  const auto later = now.time_since_epoch() - seconds(boot.tv_sec);
  EXPECT_GE(later, Duration(boot.tv_nsec));
  EXPECT_LT(later, seconds(60));
}

TEST(BootTimer, RingsAtTheMomentAndNotBefore) {
  asio::io_context context;
  BootTimer timer(context);
  const Instant at = BootClock::now() + milliseconds(5);
  Instant rang = Instant::min();
  timer.arm(at);
  timer.async_wait([&](const asio::error_code& error) {
    if (!error) rang = BootClock::now();
  });

  context.run();

  EXPECT_GE(rang, at);
}

TEST(BootTimer, AnEarlierMomentCountsALaterOneDoesNot) {
  asio::io_context context;
  BootTimer timer(context);
  const Instant soon = BootClock::now() + milliseconds(5);
  timer.arm(BootClock::now() + seconds(3'600));
  timer.arm(soon);
  timer.arm(BootClock::now() + seconds(7'200));
  bool rang = false;
  timer.async_wait([&](const asio::error_code& error) { rang = !error; });

  context.run();

  EXPECT_TRUE(rang);
}

TEST(BootTimer, RingsAgainAfterItWasCleared) {
  asio::io_context context;
  BootTimer timer(context);
  int rings = 0;
  for (int i = 0; i < 2; ++i) {
    timer.arm(Instant::min());
    timer.async_wait([&](const asio::error_code& error) { rings += error ? 0 : 1; });
    context.restart();
    context.run();
    timer.clear();
  }

  EXPECT_EQ(rings, 2);
}

constexpr Duration kHour = seconds(3'600);

/// Does it ring without anybody's waiting for it?
bool has_rung(asio::io_context& context, BootTimer& timer) {
  bool rang = false;
  timer.async_wait([&](const asio::error_code& error) { rang = !error; });
  context.restart();
  context.poll();
  return rang;
}

/// A timer that has rung for a moment that nobody wants any more.
class RungTimer : public ::testing::Test {
 protected:
  RungTimer() {
    timer.arm(moment);
    timer.async_wait([](const asio::error_code&) {});
    context.run();
  }

  const Instant moment = BootClock::now();
  asio::io_context context;
  BootTimer timer{context};
};

TEST_F(RungTimer, ARingThatIsAboutToComeIsPutOff) {
  timer.arm(moment + kHour, moment + milliseconds(1));

  EXPECT_FALSE(has_rung(context, timer));
}

TEST_F(RungTimer, IsNotPutOffByWhoeverDoesNotSayWhatIsSoon) {
  timer.arm(moment + kHour);

  EXPECT_TRUE(has_rung(context, timer));
}

TEST_F(RungTimer, ARingThatIsNotAboutToComeIsKept) {
  timer.arm(moment + kHour, moment);

  EXPECT_TRUE(has_rung(context, timer));
}

TEST_F(RungTimer, ARingIsKeptForAMomentThatIsAboutToComeAsWell) {
  timer.arm(moment + kHour, moment + kHour);

  EXPECT_TRUE(has_rung(context, timer));
}

TEST(BootTimer, WhatWasPutOffCountsFromThenOn) {
  asio::io_context context;
  BootTimer timer(context);
  const Instant now = BootClock::now();
  timer.arm(now);
  timer.arm(now + 2 * kHour, now + milliseconds(1));
  timer.arm(now + milliseconds(5), now + milliseconds(1));
  Instant rang = Instant::min();
  timer.async_wait([&](const asio::error_code& error) {
    if (!error) rang = BootClock::now();
  });

  context.run();

  EXPECT_GE(rang, now + milliseconds(5));
}

}  // namespace
}  // namespace latchkey::net
