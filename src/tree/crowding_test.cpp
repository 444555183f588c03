#include "tree/crowding.hpp"

#include <gmock/gmock.h>

namespace latchkey::tree {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr Instant kStart = Instant{} + 1h;

TEST(Pace, NobodyIsSlowInTheFirstSecond) {
  Pace pace;
  pace.start(kStart);

  EXPECT_FALSE(pace.is_slow(kStart + 999ms));
  EXPECT_TRUE(pace.is_slow(kStart + 1s));
}

TEST(Pace, H90_AByteNowAndThenIsNoProgress) {
  Pace pace;
  pace.start(kStart);
  for (auto span = 300ms; span < 10s; span += 300ms) {
    pace.move(1, kStart + span);
    EXPECT_EQ(pace.is_slow(kStart + span), span >= 1s) << span.count();
  }
}

TEST(Pace, WhoMovesEnoughIsNotSlowAndWhoStopsIs) {
  Pace pace;
  pace.start(kStart);
  for (auto span = 100ms; span < 10s; span += 100ms) {
    pace.move(4'096, kStart + span);
    EXPECT_FALSE(pace.is_slow(kStart + span)) << span.count();
  }
  EXPECT_TRUE(pace.is_slow(kStart + 12s));

  pace.move(20'000, kStart + 13s);

  EXPECT_FALSE(pace.is_slow(kStart + 13s)) << "it moves again";
}

TEST(Crowding, H90_ThoseWithTheMostOverdueGoFirstAndNoMoreThanNeeded) {
  const std::vector<Holding> holdings = {
      {1, 10, 10, false}, {2, 40, 40, false}, {3, 30, 30, false}, {4, 90, 0, false}};

  EXPECT_THAT(whom_to_close(holdings, 1), ElementsAre(2));
  EXPECT_THAT(whom_to_close(holdings, 40), ElementsAre(2));
  EXPECT_THAT(whom_to_close(holdings, 41), ElementsAre(2, 3));
  EXPECT_THAT(whom_to_close(holdings, 100), ElementsAre(2, 3, 1, 4)) << "4 had no chance yet";
}

TEST(Crowding, H90_ThoseThatAreStalledGoBeforeThoseThatHoldMore) {
  const std::vector<Holding> holdings = {
      {1, 1'000, 1'000, false}, {2, 10, 10, true}, {3, 20, 20, true}, {4, 500, 500, false}};

  EXPECT_THAT(whom_to_close(holdings, 5), ElementsAre(3));
  EXPECT_THAT(whom_to_close(holdings, 31), ElementsAre(3, 2, 1));
}

TEST(Crowding, AllGoIfThatIsNotEnoughAndNobodyIfNothingIsAsked) {
  const std::vector<Holding> holdings = {{1, 10, 0, false}, {2, 40, 0, false}};

  EXPECT_THAT(whom_to_close(holdings, 100), ElementsAre(2, 1));
  EXPECT_THAT(whom_to_close(holdings, 0), IsEmpty());
  EXPECT_THAT(whom_to_close({}, 100), IsEmpty());
}

}  // namespace
}  // namespace latchkey::tree
