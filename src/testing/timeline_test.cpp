#include "testing/timeline.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"

namespace latchkey::testing {
namespace {

using namespace std::chrono_literals;

TEST(Timeline, LetsEventsHappenInTheOrderOfTheirTime) {
  Timeline timeline(1);
  std::vector<int> order;
  timeline.in(3s, nullptr, Happens::kScript, [&] { order.push_back(3); });
  timeline.in(1s, nullptr, Happens::kScript, [&] { order.push_back(1); });
  timeline.in(2s, nullptr, Happens::kScript, [&] { order.push_back(2); });
  const Instant before = timeline.now();

  while (timeline.step()) {
  }

  EXPECT_EQ(order, (std::vector{1, 2, 3}));
  EXPECT_EQ(timeline.now() - before, 3s);
}

TEST(Timeline, LetsTheSeedDecideBetweenEqualTimes) {
  const auto order_of = [](std::uint64_t seed) {
    Timeline timeline(seed);
    std::vector<int> order;
    for (int i = 0; i < 10; ++i) {
      timeline.in(1s, nullptr, Happens::kScript, [&order, i] { order.push_back(i); });
    }
    while (timeline.step()) {
    }
    return order;
  };

  EXPECT_EQ(order_of(1), order_of(1));
  EXPECT_NE(order_of(1), order_of(2));
}

TEST(Timeline, IsTheClockAndTheLuckOfItsThread) {
  EXPECT_EQ(base::surroundings, nullptr);
  {
    Timeline timeline(1);
    timeline.pass_to(timeline.now() + 5s);
    EXPECT_EQ(BootClock::now(), timeline.now());
    const std::uint64_t drawn = base::kernel_random();
    EXPECT_EQ(Timeline(1).random(), drawn);
  }
  EXPECT_EQ(base::surroundings, nullptr);
}

TEST(Timeline, HoldsBackTheEventsOfAPausedProcessInTheirOrder) {
  Timeline timeline(1);
  Process ann(timeline, 1, "ann");
  Process bob(timeline, 2, "bob");
  std::vector<int> order;
  timeline.pause(ann, 10s);
  for (int i = 1; i <= 3; ++i) {
    timeline.in(i * 1s, &ann, Happens::kScript, [&order, i] { order.push_back(i); });
  }
  timeline.in(5s, &bob, Happens::kScript, [&] { order.push_back(0); });
  const Instant before = timeline.now();

  while (timeline.step()) {
  }

  EXPECT_EQ(order, (std::vector{0, 1, 2, 3}));
  EXPECT_EQ(timeline.now() - before, 10s);
}

TEST(Timeline, ForgetsWhatADeadProcessHadAheadOfIt) {
  Timeline timeline(1);
  Process ann(timeline, 1, "ann");
  int happened = 0;
  timeline.in(1s, &ann, Happens::kScript, [&] { ++happened; });

  ann.die();
  ann.rise();
  timeline.in(2s, &ann, Happens::kScript, [&] { ++happened; });
  while (timeline.step()) {
  }

  EXPECT_EQ(happened, 1);
}

TEST(Process, ComputesWhenItsSkewedClockShowsATime) {
  Timeline timeline(1);
  Process ann(timeline, 1, "ann");
  ann.set_rate(0.9);
  const Instant local = ann.now() + 9s;

  timeline.pass_to(ann.true_time_of(local));

  EXPECT_GE(ann.now(), local);
  EXPECT_LT(ann.now(), local + 10ns);
}

TEST(Process, KeepsItsTimeWhileItsClockStandsStill) {
  Timeline timeline(1);
  Process ann(timeline, 1, "ann");
  ann.stop_clock();
  const Instant before = ann.now();

  timeline.pass_to(timeline.now() + 1h);
  EXPECT_EQ(ann.now(), before);
  ann.start_clock();
  timeline.pass_to(timeline.now() + 1s);

  EXPECT_EQ(ann.now(), before + 1s);
}

}  // namespace
}  // namespace latchkey::testing
