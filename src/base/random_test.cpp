#include "base/random.hpp"

#include <set>

#include <gtest/gtest.h>

namespace latchkey::base {
namespace {

TEST(Random, TheSameSeedDrawsTheSame) {
  Random a(7);
  Random b(7);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(a.next(), b.next());
}

TEST(Random, BelowStaysBelowAndReachesEverything) {
  Random random(1);
  std::set<std::uint64_t> drawn;
  for (int i = 0; i < 1'000; ++i) drawn.insert(random.below(5));

  EXPECT_EQ(drawn, (std::set<std::uint64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(random.below(0), 0U);
  EXPECT_EQ(random.below(1), 0U);
}

TEST(Random, H08_TheKernelsDoNotRepeat) {
  std::set<std::uint64_t> drawn;
  for (int i = 0; i < 1'000; ++i) drawn.insert(kernel_random());

  EXPECT_EQ(drawn.size(), 1'000U);
}

}  // namespace
}  // namespace latchkey::base
