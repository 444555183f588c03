#include "recipes/commons.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace latchkey::recipes {
namespace {

class CommonsTest : public testing::Test {
 protected:
  std::shared_ptr<int> take(const std::string& key) {
    return common<int>(machine_, key, [&] { return std::make_shared<int>(++made_); });
  }

  session::Machine machine_{{}, 1, std::make_shared<session::View>()};
  int made_ = 0;
};

TEST_F(CommonsTest, IsSharedForAsLongAsSomebodyHasIt) {
  auto first = take("a");
  EXPECT_EQ(take("a"), first);
  EXPECT_NE(take("b"), first);
  first.reset();
  EXPECT_EQ(*take("a"), 3) << "made anew";
}

TEST_F(CommonsTest, NamesThatNobodyHasAnyMoreAreCleared) {
  std::vector<std::shared_ptr<int>> held;
  for (int i = 0; i < 1'000; ++i) held.push_back(take("held " + std::to_string(i)));
  for (int i = 0; i < 10'000; ++i) static_cast<void>(take("once " + std::to_string(i)));
  EXPECT_LE(machine_.commons().size(), 2'048U);

  held.clear();
  for (int i = 0; i < 2'000; ++i) static_cast<void>(take("again " + std::to_string(i)));
  EXPECT_LE(machine_.commons().size(), 2'048U);
  for (int i = 0; i < 1'000; ++i) EXPECT_GT(*take("held " + std::to_string(i)), 13'000);
}

}  // namespace
}  // namespace latchkey::recipes
