#include "queue/hand_over.hpp"

#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace latchkey::queue {
namespace {

using namespace hand_over;
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
  return "lose " + std::to_string(lose.turn) + ": " + code_text(lose.code);
}
std::string text(const AskToLetGo& ask) { return "ask " + std::to_string(ask.turn); }
std::string text(const PassedOn& passed) { return "passed on by " + std::to_string(passed.turn); }

/// A line, the time, and a lease.
struct Rig {
  explicit Rig(HandOver limits = {.count = 100, .time = 1h}) : line(limits) {}

  std::vector<std::string> step(const hand_over::Event& event) {
    std::vector<std::string> texts;
    for (const hand_over::Action& action : line.step(event, now)) {
      texts.push_back(std::visit([](const auto& what) { return text(what); }, action));
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

}  // namespace
}  // namespace latchkey::queue
