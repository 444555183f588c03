#include "server/bonds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace latchkey::server {
namespace {

using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr Process kFirst{.pid = 4'711, .start_ticks = 100};
constexpr Process kSecond{.pid = 4'712, .start_ticks = 100};
constexpr Process kLater{.pid = 4'711, .start_ticks = 200};

TEST(Bonds, AllSessionsOfAProcessEndWithItAndNoOthers) {
  Bonds bonds;
  bonds.add(1, kFirst);
  bonds.add(2, kFirst);
  bonds.add(3, kSecond);

  EXPECT_THAT(bonds.end(kFirst), UnorderedElementsAre(1, 2));
  EXPECT_EQ(bonds.sessions(), 1U);
  EXPECT_EQ(bonds.processes(), 1U);
  EXPECT_THAT(bonds.end(kFirst), IsEmpty()) << "they ended once";
  EXPECT_EQ(bonds.remove(2), std::nullopt);
}

TEST(Bonds, AProcessIsWatchedUntilItsLastSessionIsGone) {
  Bonds bonds;
  bonds.add(1, kFirst);
  bonds.add(2, kFirst);

  EXPECT_EQ(bonds.remove(1), std::nullopt);
  EXPECT_EQ(bonds.processes(), 1U);
  EXPECT_EQ(bonds.remove(2), kFirst);
  EXPECT_EQ(bonds.processes(), 0U);
  EXPECT_EQ(bonds.remove(2), std::nullopt);
}

TEST(Bonds, ASessionThatMovedEndsWithItsNewProcess) {
  Bonds bonds;
  bonds.add(1, kFirst);
  EXPECT_EQ(bonds.remove(1), kFirst);
  bonds.add(1, kSecond);

  EXPECT_THAT(bonds.end(kFirst), IsEmpty());
  EXPECT_THAT(bonds.end(kSecond), UnorderedElementsAre(1));
}

TEST(Bonds, ANumberThatWasUsedAgainIsAnotherProcess) {
  Bonds bonds;
  bonds.add(1, kFirst);
  bonds.add(2, kLater);

  EXPECT_THAT(bonds.end(kFirst), UnorderedElementsAre(1));
  EXPECT_THAT(bonds.end(kLater), UnorderedElementsAre(2));
}

}  // namespace
}  // namespace latchkey::server
