#include "queue/succession.hpp"

#include <gtest/gtest.h>

namespace latchkey::queue {
namespace {

Leader leader(std::int64_t zxid, std::string id = "a") {
  return {.id = std::move(id), .token = Token(zxid), .node = "n"};
}

TEST(Succession, TheFirstLookIsNewsWhoeverLeads) {
  EXPECT_TRUE(Succession().is_news(std::nullopt));
  EXPECT_TRUE(Succession().is_news(leader(1)));
}

TEST(Succession, TheSameAgainIsNoNews) {
  Succession succession;
  ASSERT_TRUE(succession.is_news(leader(1)));

  EXPECT_FALSE(succession.is_news(leader(1)));
  EXPECT_TRUE(succession.is_news(leader(1, "renamed")));
  EXPECT_TRUE(succession.is_news(std::nullopt));
  EXPECT_FALSE(succession.is_news(std::nullopt));
}

TEST(Succession, H76_AnOlderLeaderIsNeverShown) {
  Succession succession;
  ASSERT_TRUE(succession.is_news(leader(5)));

  EXPECT_FALSE(succession.is_news(leader(4)));
  ASSERT_TRUE(succession.is_news(std::nullopt));
  EXPECT_FALSE(succession.is_news(leader(4)));
  EXPECT_TRUE(succession.is_news(leader(5)));
  EXPECT_TRUE(succession.is_news(leader(6)));
}

}  // namespace
}  // namespace latchkey::queue
