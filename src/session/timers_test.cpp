#include "session/timers.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.hpp"

namespace latchkey::session {
namespace {

Instant at(int after_seconds) { return Instant(std::chrono::seconds(after_seconds)); }

class TimersTest : public testing::Test {
 protected:
  Timers::Id add(int after_seconds, char what) {
    return timers.add(at(after_seconds), [this, what] { done += what; });
  }
  void run(int after_seconds) {
    while (auto task = timers.due(at(after_seconds))) (*task)();
  }

  Timers timers;
  std::string done;
};

TEST_F(TimersTest, RunInTheOrderOfTheirMomentsThenOfTheirMaking) {
  add(3, 'c');
  add(1, 'a');
  add(3, 'd');
  add(2, 'b');

  EXPECT_EQ(timers.next(), at(1));
  run(2);
  EXPECT_EQ(done, "ab");
  EXPECT_EQ(timers.next(), at(3));
  run(3);

  EXPECT_EQ(done, "abcd");
  EXPECT_EQ(timers.next(), Instant::max());
}

TEST_F(TimersTest, ACancelledOneDoesNotRun) {
  const Timers::Id a = add(1, 'a');
  add(1, 'b');

  timers.cancel(a);
  timers.cancel(a);
  timers.cancel(0);
  timers.cancel(99);
  run(1);

  EXPECT_EQ(done, "b");
}

TEST_F(TimersTest, CancellingOneThatRanIsNothing) {
  const Timers::Id a = add(1, 'a');
  run(1);

  timers.cancel(a);

  EXPECT_EQ(done, "a");
}

TEST_F(TimersTest, ForeverIsNoTimer) {
  EXPECT_EQ(timers.add(Instant::max(), [] {}), 0U);
  EXPECT_EQ(timers.next(), Instant::max());
}

TEST_F(TimersTest, ATaskMayAddAndCancelOthers) {
  Timers::Id b = 0;
  timers.add(at(1), [&] {
    timers.cancel(b);
    add(1, 'c');
  });
  b = add(1, 'b');

  run(1);

  EXPECT_EQ(done, "c");
}

TEST_F(TimersTest, OutOfAnyNumberInAnyOrderTheRightOnesRunInOrder) {
  base::Random random(7);
  std::vector<std::pair<int, int>> left;  // Moment and order of making.
  std::vector<std::pair<int, int>> ran;
  std::vector<Timers::Id> ids;
  for (int i = 0; i < 500; ++i) {
    const int when = static_cast<int>(random.below(50));
    left.emplace_back(when, i);
    ids.push_back(timers.add(at(when), [&ran, when, i] { ran.emplace_back(when, i); }));
  }
  for (int i = 0; i < 250; ++i) {
    const auto out = static_cast<std::ptrdiff_t>(random.below(left.size()));
    timers.cancel(ids[static_cast<std::size_t>((left.begin() + out)->second)]);
    left.erase(left.begin() + out);
  }
  std::sort(left.begin(), left.end());

  for (int second = 0; second < 50; ++second) {
    const auto next = std::find_if(left.begin(), left.end(),
                                   [&](const auto& one) { return one.first >= second; });
    EXPECT_EQ(timers.next(), next == left.end() ? Instant::max() : at(next->first));
    run(second);
  }

  EXPECT_EQ(ran, left);
}

}  // namespace
}  // namespace latchkey::session
