#include "tree/origins.hpp"

#include <gtest/gtest.h>

namespace latchkey::tree {
namespace {

TEST(Origins, H94_CountSessionsUntilTheyAreGone) {
  Origins origins;
  origins.add(1, "10.0.0.7");
  origins.add(2, "10.0.0.7");
  origins.add(3, "10.0.0.8");
  EXPECT_EQ(origins.count("10.0.0.7"), 2U);
  EXPECT_EQ(origins.count("10.0.0.8"), 1U);

  origins.remove(1);
  origins.remove(1);
  origins.remove(3);
  origins.remove(99);

  EXPECT_EQ(origins.count("10.0.0.7"), 1U);
  EXPECT_EQ(origins.count("10.0.0.8"), 0U);
}

TEST(Origins, NobodyIsNotCounted) {
  Origins origins;
  origins.add(1, "");
  origins.remove(1);

  EXPECT_EQ(origins.count(""), 0U);
}

}  // namespace
}  // namespace latchkey::tree
