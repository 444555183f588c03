#include "queue/hand_over.hpp"

#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace latchkey::queue::hand_over {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

std::string code_text(Code code) { return std::string(name(code)); }

std::string text(const Claim& claim) {
  return claim.wait == Wait::kYes ? "claim" : "claim without waiting";
}
std::string text(const Withdraw& withdraw) { return "withdraw: " + code_text(withdraw.code); }
std::string text(const GiveUp& up) {
  return up.turn ? "give up after " + std::to_string(*up.turn) : "give up";
}
std::string text(const Grant& grant) {
  return "grant " + std::to_string(grant.turn) + " hold " + std::to_string(grant.hold);
}
std::string text(const Fail& fail) {
  return "fail " + std::to_string(fail.turn) + ": " + code_text(fail.code);
}
std::string text(const Lose& lose) {
  return "lose" + (lose.turn ? " " + std::to_string(*lose.turn) : "") + ": " + code_text(lose.code);
}
std::string text(const AskToLetGo& ask) { return "ask " + std::to_string(ask.turn); }
std::string text(const PassedOn& passed) { return "passed on by " + std::to_string(passed.turn); }

constexpr Duration kBreath = LocalLine::kBreath;
constexpr Duration kPatience = LocalLine::kPatience;

/// A line, the time, and a lease.
struct Rig {
  using Keeps = LocalLine::Keeps;
  explicit Rig(HandOver limits = {.count = 100, .time = 1h}, Keeps keeps = Keeps::kYes)
      : line(limits, keeps) {}

  std::vector<std::string> step(const hand_over::Event& event) {
    std::vector<std::string> texts;
    for (const hand_over::Action& action : line.step(event, now)) {
      texts.push_back(std::visit([this](const auto& what) { return text(what); }, action));
    }
    return texts;
  }
  std::vector<std::string> join(Turn turn, Wait wait = Wait::kYes) {
    return step(Join{turn, wait});
  }
  std::vector<std::string> release(Turn turn) { return step(Release{turn, lease_until}); }
  std::vector<std::string> cancel(Turn turn) { return step(Cancel{turn, Code::kTimedOut}); }
  /// Number 1 holds; those up to `last` wait.
  void hold_with(Turn last) {
    for (Turn turn = 1; turn <= last; ++turn) join(turn);
    step(Granted{});
  }
  /// Number 1 has let go and come back, as number 10 from now on; 2 holds, 3 and 10 wait.
  void come_back() {
    hold_with(3);
    release(1);
    join(10);
  }
  /// And 2 has let go: the lock is kept from 3 and 10.
  void keep() {
    come_back();
    release(2);
  }

  template <class Action>
  [[nodiscard]] std::string text(const Action& action) const {
    return hand_over::text(action);
  }
  [[nodiscard]] std::string text(const RingAt& ring) const {
    return "ring in " + std::to_string((ring.at - now) / 1us) + " us";
  }

  LocalLine line;
  Instant now{1h};
  Instant lease_until{2h};
};

TEST(LocalLine, OneClaimIsMadeForAll) {
  Rig rig;

  EXPECT_THAT(rig.join(1), ElementsAre("claim"));
  EXPECT_THAT(rig.join(2), IsEmpty());
  EXPECT_THAT(rig.step(Granted{}), ElementsAre("grant 1 hold 0"));
  EXPECT_THAT(rig.join(3), IsEmpty());
}

TEST(LocalLine, H70_TheLockIsPassedOnInOrderOfArrivalWithANewHoldNumber) {
  Rig rig;
  rig.hold_with(3);

  EXPECT_THAT(rig.release(1), ElementsAre("grant 2 hold 1", "passed on by 1"));
  EXPECT_THAT(rig.release(2), ElementsAre("grant 3 hold 2", "passed on by 2"));
  EXPECT_THAT(rig.release(3), ElementsAre("give up after 3"));
}

TEST(LocalLine, H70_AfterSoManyHoldsOthersGetTheirTurn) {
  Rig rig({.count = 2, .time = 1h});
  rig.hold_with(3);
  rig.release(1);

  EXPECT_THAT(rig.release(2), ElementsAre("give up after 2", "claim"));
  EXPECT_THAT(rig.step(Granted{}), ElementsAre("grant 3 hold 0")) << "and a new count begins";
}

TEST(LocalLine, H70_AfterSoMuchTimeOthersGetTheirTurn) {
  for (const auto& [held, passes] : {std::pair(49ms, true), std::pair(50ms, false)}) {
    Rig rig({.count = 100, .time = 50ms});
    rig.hold_with(2);
    rig.now += held;

    EXPECT_EQ(rig.release(1).back(), passes ? "passed on by 1" : "claim");
  }
}

TEST(LocalLine, H70_TheLongestTimeThatCanBeWrittenIsNoLimit) {
  Rig rig({.count = 100, .time = std::chrono::milliseconds::max()});
  rig.hold_with(2);

  EXPECT_THAT(rig.release(1), ElementsAre("grant 2 hold 1", "passed on by 1"));
}

TEST(LocalLine, H70_ACountOfNothingPassesNothingOn) {
  for (const int count : {-1, 0, 1}) {
    Rig rig({.count = count, .time = 1h});
    rig.hold_with(2);

    EXPECT_THAT(rig.release(1), ElementsAre("give up after 1", "claim"));
  }
}

TEST(LocalLine, H70_ALeaseThatHasRunOutIsNotPassedOn) {
  Rig rig;
  rig.hold_with(2);
  rig.now = rig.lease_until;

  EXPECT_THAT(rig.release(1), ElementsAre("give up after 1", "claim"));
}

TEST(LocalLine, AWishThatItLetGoIsToldToTheHolderAndEndsTheRun) {
  Rig rig;
  rig.hold_with(3);

  EXPECT_THAT(rig.step(AskedToLetGo{}), ElementsAre("ask 1"));
  EXPECT_THAT(rig.release(1), ElementsAre("give up after 1", "claim"));
  rig.step(Granted{});
  EXPECT_THAT(rig.release(2), ElementsAre("grant 3 hold 1", "passed on by 2"))
      << "it was a wish to that claim and no other";
}

TEST(LocalLine, H70_ALossIsToldToTheHolderOnlyAndTheOthersAreQueuedAnew) {
  Rig rig;
  rig.hold_with(3);

  EXPECT_THAT(rig.step(Lost{Code::kLost}), ElementsAre("lose 1: Lost", "claim"));
  EXPECT_THAT(rig.step(Granted{}), ElementsAre("grant 2 hold 0"));
}

TEST(LocalLine, H70_OnASessionThatIsOverAllLearnItOnce) {
  Rig rig;
  rig.hold_with(3);

  EXPECT_THAT(rig.step(Lost{Code::kSessionLost}), ElementsAre("lose 1: SessionLost", "claim"));
  EXPECT_THAT(rig.step(Failed{Code::kSessionLost}),
              ElementsAre("fail 2: SessionLost", "fail 3: SessionLost"));
  EXPECT_THAT(rig.join(4), ElementsAre("claim")) << "and the line is idle again";
}

TEST(LocalLine, OneWhoWouldNotWaitIsRefusedByAnyoneInLine) {
  Rig rig;
  rig.join(1);

  EXPECT_THAT(rig.join(2, Wait::kNo), ElementsAre("fail 2: Busy"));
  rig.step(Granted{});
  EXPECT_THAT(rig.join(3, Wait::kNo), ElementsAre("fail 3: Busy"));
}

TEST(LocalLine, TheRefusalOfOneWhoWouldNotWaitSaysNothingToThoseWhoWould) {
  Rig rig;

  EXPECT_THAT(rig.join(1, Wait::kNo), ElementsAre("claim without waiting"));
  EXPECT_THAT(rig.join(2), IsEmpty());
  EXPECT_THAT(rig.step(Failed{Code::kBusy}), ElementsAre("fail 1: Busy", "claim"));
}

TEST(LocalLine, H50_ACancelEndsOneAndWithTheLastTheClaim) {
  Rig rig;
  rig.join(1);
  rig.join(2);

  EXPECT_THAT(rig.cancel(1), ElementsAre("fail 1: TimedOut"));
  EXPECT_THAT(rig.cancel(2), ElementsAre("fail 2: TimedOut", "withdraw: TimedOut"));
  EXPECT_THAT(rig.step(Failed{Code::kTimedOut}), IsEmpty());
  EXPECT_THAT(rig.join(3), ElementsAre("claim"));
}

TEST(LocalLine, H50_ACancelAfterTheAnswerIsNoCancel) {
  Rig rig;
  rig.hold_with(2);

  EXPECT_THAT(rig.cancel(1), IsEmpty());
  rig.cancel(2);
  EXPECT_THAT(rig.cancel(2), IsEmpty());
  EXPECT_THAT(rig.release(1), ElementsAre("give up after 1"));
}

TEST(LocalLine, WhoeverComesDuringAWithdrawalAsksAnewAndHearsNothingOfTheOldClaim) {
  Rig rig;
  rig.join(1);
  rig.cancel(1);

  EXPECT_THAT(rig.join(2), IsEmpty());
  EXPECT_THAT(rig.step(Failed{Code::kTimedOut}), ElementsAre("claim"));
}

TEST(LocalLine, H50_AGrantThatFindsNobodyIsGivenUp) {
  Rig rig;
  rig.join(1);
  rig.cancel(1);

  EXPECT_THAT(rig.step(Granted{}), ElementsAre("give up"));
  EXPECT_THAT(rig.join(2), ElementsAre("claim"));
}

// Keeping the lock for who comes back at once.

TEST(LocalLine, H70_WhereSomebodyCameBackAtOnceTheLockIsKeptForABreath) {
  Rig rig;
  rig.come_back();

  EXPECT_THAT(rig.release(2), ElementsAre("ring in 20 us", "passed on by 2"));
  EXPECT_THAT(rig.join(11), ElementsAre("grant 11 hold 2"));
  EXPECT_THAT(rig.release(11), ElementsAre("passed on by 11")) << "and one ring is enough";
  EXPECT_THAT(rig.join(12), ElementsAre("grant 12 hold 3"));
}

TEST(LocalLine, H70_WhenTheBreathIsOverTheFirstInLineHasTheLock) {
  Rig rig;
  rig.keep();
  rig.now += kBreath;

  EXPECT_THAT(rig.step(Rang{}), ElementsAre("grant 3 hold 2"));
  EXPECT_THAT(rig.release(3), ElementsAre("grant 10 hold 3", "passed on by 3"))
      << "nobody came, so nobody is expected";
}

TEST(LocalLine, ARingForAnEarlierBreathIsAskedForAgainIfTheLockIsStillKept) {
  Rig rig;
  rig.keep();
  rig.now += 8us;
  rig.join(11);
  rig.release(11);
  rig.now += 12us;

  EXPECT_THAT(rig.step(Rang{}), ElementsAre("ring in 8 us"));
  rig.now += 8us;
  EXPECT_THAT(rig.step(Rang{}), ElementsAre("grant 3 hold 3"));
}

TEST(LocalLine, ARingThatNobodyNeedsAnyMoreIsNothing) {
  Rig rig;
  rig.keep();
  rig.join(11);
  rig.now += kBreath;

  EXPECT_THAT(rig.step(Rang{}), IsEmpty());
  EXPECT_THAT(rig.release(11), ElementsAre("ring in 20 us", "passed on by 11"));
}

TEST(LocalLine, OneWhoComesAfterTheBreathAndBeforeTheRingStandsBehind) {
  Rig rig;
  rig.keep();
  rig.now += kBreath;

  EXPECT_THAT(rig.join(11), ElementsAre("grant 3 hold 2"));
  EXPECT_THAT(rig.step(Rang{}), IsEmpty());
  EXPECT_THAT(rig.release(3), ElementsAre("grant 10 hold 3", "passed on by 3"));
}

TEST(LocalLine, OneWhoComesBackLateIsNotExpected) {
  Rig rig;
  rig.hold_with(3);
  rig.release(1);
  rig.now += kBreath / 2;
  rig.join(10);

  EXPECT_THAT(rig.release(2), ElementsAre("grant 3 hold 2", "passed on by 2"));
}

TEST(LocalLine, WhereNobodyBringsTheTimeNothingIsKept) {
  Rig rig({.count = 100, .time = 1h}, LocalLine::Keeps::kNo);
  rig.come_back();

  EXPECT_THAT(rig.release(2), ElementsAre("grant 3 hold 2", "passed on by 2"));
}

TEST(LocalLine, OneWhoWouldNotWaitTakesAKeptLock) {
  Rig rig;
  rig.keep();

  EXPECT_THAT(rig.join(11, Wait::kNo), ElementsAre("grant 11 hold 2"));
}

TEST(LocalLine, OneWhoWouldNotWaitIsRefusedWhenTheBreathIsOver) {
  Rig rig;
  rig.keep();
  rig.now += kBreath;

  EXPECT_THAT(rig.join(11, Wait::kNo), ElementsAre("grant 3 hold 2", "fail 11: Busy"));
}

TEST(LocalLine, H70_NobodyIsPassedOverForLongerThanThePatienceAndOneHold) {
  constexpr Duration kHold = 3us;
  Rig rig({.count = 1'000'000, .time = 1h});
  rig.keep();
  const Instant passed_over = rig.now;
  const auto came_last = [&](Turn turn) { return rig.join(turn).empty(); };

  // One who comes back at once for ever, until it has to stand behind the others.
  Turn turn = 11;
  std::vector<std::string> told = rig.join(turn);
  while (told.front().starts_with("grant " + std::to_string(turn))) {
    ASSERT_LE(rig.now - passed_over, kPatience);
    rig.now += kHold;
    if (rig.release(turn).front().starts_with("grant 3")) break;
    told = rig.join(++turn);
  }

  EXPECT_LE(rig.now - passed_over, kPatience + kHold);
  EXPECT_GT(turn, 300U);
  EXPECT_TRUE(came_last(++turn));
  EXPECT_TRUE(rig.release(3).front().starts_with("grant 10 "))
      << "who was passed over for as long is next, though somebody has come at once";
  EXPECT_TRUE(came_last(++turn));
  EXPECT_THAT(rig.release(10), ElementsAre("passed on by 10")) << "the others have just come";
}

TEST(LocalLine, H70_PatienceThatEndsWithinABreathEndsTheBreath) {
  Rig rig;
  rig.keep();
  rig.join(11);
  rig.now += kPatience - 10us;
  ASSERT_THAT(rig.release(11), ElementsAre("passed on by 11"));
  rig.now += 10us;

  EXPECT_THAT(rig.join(12), ElementsAre("grant 3 hold 3"));
}

TEST(LocalLine, H70_AKeptLockCountsAgainstTheNumberOfHolds) {
  Rig rig({.count = 3, .time = 1h});
  rig.keep();

  EXPECT_THAT(rig.join(11), ElementsAre("grant 11 hold 2"));
  EXPECT_THAT(rig.release(11), ElementsAre("give up after 11", "claim"));
}

TEST(LocalLine, H70_TheTimeOfARunEndsWhileTheLockIsKept) {
  for (const bool rings : {true, false}) {
    Rig rig({.count = 100, .time = 50ms});
    rig.hold_with(3);
    rig.now += 50ms - 10us;
    rig.release(1);
    rig.join(10);
    ASSERT_THAT(rig.release(2), ElementsAre("ring in 20 us", "passed on by 2"));
    rig.now += 10us;

    EXPECT_THAT(rings ? rig.step(Rang{}) : rig.join(11), ElementsAre("give up", "claim"));
  }
}

TEST(LocalLine, H70_TheLeaseRunsOutWhileTheLockIsKept) {
  for (const bool rings : {true, false}) {
    Rig rig;
    rig.now = rig.lease_until - 10us;
    rig.keep();
    rig.now += 10us;

    EXPECT_THAT(rings ? rig.step(Rang{}) : rig.join(11), ElementsAre("give up", "claim"));
  }
}

TEST(LocalLine, H70_AKeptLockThatIsLostIsNobodysLossAndThoseWhoWaitAreQueuedAnew) {
  Rig rig;
  rig.keep();
  rig.now += kBreath;

  EXPECT_THAT(rig.step(Lost{Code::kLost}), ElementsAre("lose: Lost", "claim"));
  EXPECT_THAT(rig.step(Rang{}), IsEmpty());
  EXPECT_THAT(rig.join(11), IsEmpty());
  EXPECT_THAT(rig.step(Granted{}), ElementsAre("grant 3 hold 0"));
}

TEST(LocalLine, AWishThatAKeptLockBeLetGoIsFulfilledAtOnce) {
  Rig rig;
  rig.keep();

  EXPECT_THAT(rig.step(AskedToLetGo{}), ElementsAre("give up", "claim"));
}

TEST(LocalLine, H50_AKeptLockIsGivenUpWithTheLastWhoWaitsForIt) {
  Rig rig;
  rig.keep();
  rig.now += kBreath;

  EXPECT_THAT(rig.cancel(3), ElementsAre("fail 3: TimedOut")) << "and not granted at this moment";
  EXPECT_THAT(rig.cancel(10), ElementsAre("fail 10: TimedOut", "give up"));
  EXPECT_THAT(rig.step(Rang{}), IsEmpty());
  EXPECT_THAT(rig.join(11), ElementsAre("claim"));
}

}  // namespace
}  // namespace latchkey::queue::hand_over
