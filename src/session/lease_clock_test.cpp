#include "session/lease_clock.hpp"

#include <gtest/gtest.h>

namespace latchkey::session {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kT(12);
constexpr Instant kStart{seconds(1'000)};
/// What is left of a proof without delay: less a quarter, a heartbeat and a hundredth.
constexpr milliseconds kFull = kT - kT / 4 - kT / 6 - milliseconds(120);

class LeaseClockTest : public testing::Test {
 protected:
  /// A request that is sent at `at` and answered after `round_trip`.
  void prove(Instant at, Duration round_trip = {}) {
    clock.sent(at);
    answer(at, round_trip);
  }
  void answer(Instant at, Duration round_trip = {}) {
    clock.answered(at, at + round_trip);
    clock.proven(at);
  }

  LeaseClock clock;
};

TEST_F(LeaseClockTest, NothingIsHeldBeforeTheFirstProof) {
  EXPECT_EQ(clock.deadline(), Instant::min());
  clock.granted(kT, kStart);

  EXPECT_EQ(clock.deadline(), Instant::min());
  EXPECT_EQ(clock.heartbeat(), kT / 6);
}

TEST_F(LeaseClockTest, H10_TheSendTimeCounts) {
  clock.granted(kT, kStart);

  prove(kStart);

  EXPECT_EQ(clock.deadline(), kStart + kFull);
}

TEST_F(LeaseClockTest, H10_ASlowAnswerIsWorthLess) {
  clock.granted(kT, kStart);

  prove(kStart, seconds(2));

  EXPECT_EQ(clock.deadline(), kStart + kFull - seconds(2));
}

TEST_F(LeaseClockTest, H10_AQuickAnswerBehindASlowOneIsWorthNoMore) {
  clock.granted(kT, kStart);
  prove(kStart);

  prove(kStart + seconds(2), seconds(2));
  prove(kStart + seconds(4));

  EXPECT_EQ(clock.deadline(), kStart + seconds(4) + kFull - seconds(2));
}

TEST_F(LeaseClockTest, H10_ASlowAnswerToAnyRequestCounts) {
  clock.granted(kT, kStart);
  prove(kStart);

  clock.sent(kStart + seconds(1));
  clock.answered(kStart + seconds(1), kStart + seconds(4));
  prove(kStart + seconds(3), seconds(1));

  EXPECT_EQ(clock.deadline(), kStart + seconds(3) + kFull - seconds(3));
}

TEST_F(LeaseClockTest, H10_ASlowAnswerLongAgoIsForgotten) {
  clock.granted(kT, kStart);
  prove(kStart, seconds(2));

  prove(kStart + seconds(2));
  prove(kStart + seconds(4));
  EXPECT_EQ(clock.deadline(), kStart + seconds(4) + kFull - seconds(2)) << "a quarter of T";
  prove(kStart + seconds(6));

  EXPECT_EQ(clock.deadline(), kStart + seconds(6) + kFull);
}

TEST_F(LeaseClockTest, AnOlderProofDoesNotCount) {
  clock.granted(kT, kStart);
  prove(kStart + seconds(2));
  const Instant deadline = clock.deadline();

  clock.proven(kStart + seconds(1));

  EXPECT_EQ(clock.deadline(), deadline);
}

TEST_F(LeaseClockTest, ANewerButSlowerProofTakesNothingAway) {
  clock.granted(kT, kStart);
  prove(kStart + seconds(1));
  const Instant deadline = clock.deadline();

  prove(kStart + seconds(2), seconds(6));

  EXPECT_EQ(clock.deadline(), deadline);
}

TEST_F(LeaseClockTest, IsSuspectWhenTwoHeartbeatsAreOverdue) {
  clock.granted(kT, kStart);

  prove(kStart);

  EXPECT_EQ(clock.suspect_at(), kStart + seconds(5));
  EXPECT_LT(clock.suspect_at(), clock.deadline());
}

TEST_F(LeaseClockTest, H13_APauseLongerThanAHeartbeatIsDoubt) {
  clock.granted(kT, kStart);

  prove(kStart + seconds(5));

  EXPECT_EQ(clock.deadline(), kStart + seconds(5) + kFull + seconds(2) - seconds(5));
}

TEST_F(LeaseClockTest, H13_OfSeveralPausesTheLongestInSightCounts) {
  clock.granted(kT, kStart);
  clock.sent(kStart + seconds(7));
  clock.sent(kStart + milliseconds(9'500));

  answer(kStart + milliseconds(9'500));

  EXPECT_EQ(clock.deadline(), kStart + milliseconds(9'500) + kFull + seconds(2) - seconds(7));
}

TEST_F(LeaseClockTest, H13_APauseLongAgoIsForgotten) {
  clock.granted(kT, kStart);
  clock.sent(kStart + seconds(7));
  clock.sent(kStart + seconds(9));

  prove(kStart + seconds(11));

  EXPECT_EQ(clock.deadline(), kStart + seconds(11) + kFull);
}

TEST_F(LeaseClockTest, H13_ASlowAnswerBringsAnEarlierPauseIntoSight) {
  clock.granted(kT, kStart);
  clock.sent(kStart + seconds(7));
  clock.sent(kStart + seconds(9));

  prove(kStart + seconds(11), seconds(2));

  EXPECT_EQ(clock.deadline(), kStart + seconds(11) + kFull + seconds(2) - seconds(7) - seconds(2));
}

TEST_F(LeaseClockTest, ANewConnectionEndsThePause) {
  clock.granted(kT, kStart);
  prove(kStart);

  clock.granted(kT, kStart + seconds(8));
  prove(kStart + seconds(9));

  EXPECT_EQ(clock.deadline(), kStart + seconds(9) + kFull);
}

TEST_F(LeaseClockTest, ANewConnectionWithTheSameTimeOutTakesNothingAway) {
  clock.granted(kT, kStart);
  prove(kStart);
  prove(kStart + seconds(1), seconds(3));

  clock.granted(kT, kStart + seconds(5));

  EXPECT_EQ(clock.deadline(), kStart + kFull);
}

TEST_F(LeaseClockTest, H15_AShorterTimeOutCountsFromItsHandshake) {
  clock.granted(kT, kStart);
  prove(kStart);

  clock.granted(kT / 12, kStart + seconds(1));

  EXPECT_EQ(clock.deadline(), kStart + seconds(1) + milliseconds(990));
  EXPECT_EQ(clock.heartbeat(), Duration(kT) / 72);
}

TEST_F(LeaseClockTest, H15_AShorterTimeOutThatEndsLaterTakesNothingAway) {
  clock.granted(kT, kStart);
  prove(kStart);

  clock.granted(kT / 2, kStart + seconds(2));

  EXPECT_EQ(clock.deadline(), kStart + kFull);
}

TEST_F(LeaseClockTest, H15_ALongerTimeOutNeverCounts) {
  clock.granted(kT, kStart);
  prove(kStart);
  clock.granted(2 * kT, kStart + seconds(1));
  EXPECT_EQ(clock.deadline(), kStart + kFull);

  prove(kStart + seconds(1));
  prove(kStart + seconds(2));

  EXPECT_EQ(clock.deadline(), kStart + seconds(2) + kFull)
      << "a touch of the server before it may still be on its way";
}

TEST_F(LeaseClockTest, H15_AHandshakeInDoubtCountsWithTheLeastTimeOut) {
  LeaseClock careful{seconds(4)};
  careful.granted(kT, kStart);
  careful.proven(kStart);
  EXPECT_EQ(careful.deadline(), kStart + kFull);

  careful.asked(kStart + seconds(1));

  EXPECT_EQ(careful.deadline(), kStart + seconds(1) + milliseconds(3'960));
  careful.granted(kT, kStart + seconds(1));
  EXPECT_EQ(careful.deadline(), kStart + kFull) << "answered: no doubt";
}

TEST_F(LeaseClockTest, H15_OfSeveralHandshakesInDoubtTheFirstCounts) {
  LeaseClock careful{seconds(4)};
  careful.granted(kT, kStart);
  careful.proven(kStart);

  careful.asked(kStart + seconds(1));
  careful.asked(kStart + seconds(3));

  EXPECT_EQ(careful.deadline(), kStart + seconds(1) + milliseconds(3'960));
}

TEST_F(LeaseClockTest, H15_AfterALostHandshakeTheLeastTimeOutCountsForGood) {
  LeaseClock careful{seconds(4)};
  careful.granted(kT, kStart);
  careful.proven(kStart);
  careful.asked(kStart + seconds(1));
  careful.asked(kStart + seconds(2));

  careful.granted(kT, kStart + seconds(2));
  EXPECT_EQ(careful.deadline(), kStart + seconds(1) + milliseconds(3'960));
  careful.proven(kStart + seconds(10));

  EXPECT_EQ(careful.heartbeat(), Duration(seconds(4)) / 6);
  EXPECT_LT(careful.deadline(), kStart + seconds(10) + seconds(4));
}

TEST_F(LeaseClockTest, H15_WhereAllServersGrantTheSameALostHandshakeCostsNothing) {
  clock.granted(kT, kStart);
  prove(kStart);

  clock.asked(kStart + seconds(1));
  EXPECT_EQ(clock.deadline(), kStart + kFull);
  clock.asked(kStart + seconds(2));
  clock.granted(kT, kStart + seconds(2));
  EXPECT_EQ(clock.deadline(), kStart + kFull);
  prove(kStart + seconds(3));

  EXPECT_EQ(clock.deadline(), kStart + seconds(3) + kFull);
}

TEST_F(LeaseClockTest, H15_AHandshakeInDoubtCountsWithTheSmallestGrantBefore) {
  clock.granted(kT / 4, kStart);
  clock.granted(kT, kStart + seconds(1));
  prove(kStart + seconds(1));
  const Instant before = clock.deadline();
  EXPECT_LT(before, kStart + seconds(1) + kT / 4);

  clock.asked(kStart + seconds(2));

  EXPECT_EQ(clock.deadline(), before);
}

}  // namespace
}  // namespace latchkey::session
