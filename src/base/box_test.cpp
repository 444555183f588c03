#include "base/box.hpp"

#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace latchkey::base {
namespace {

TEST(Box, IsEmptyUntilSomethingIsMade) {
  Box<std::string> box;
  EXPECT_FALSE(box);

  box.emplace("a");
  EXPECT_EQ(*box, "a");

  box.reset();
  EXPECT_FALSE(box);
}

TEST(Box, IsAValue) {
  Box<std::string> first;
  first.emplace("a");

  Box<std::string> second = first;
  *second += "b";
  EXPECT_EQ(*first, "a");
  EXPECT_EQ(*second, "ab");

  first = second;
  EXPECT_EQ(*first, "ab");
  first = Box<std::string>();
  EXPECT_FALSE(first);
  EXPECT_EQ(second->size(), 2U);
}

}  // namespace
}  // namespace latchkey::base
