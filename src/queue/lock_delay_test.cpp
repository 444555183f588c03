#include "queue/lock_delay.hpp"

#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "queue/test_answers.hpp"

namespace latchkey::queue::lock_delay {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(LockDelay, AMarkSaysWhoHoldsOrWhoHasVanished) {
  for (const std::int64_t czxid : {std::int64_t{7}, std::int64_t{4'294'967'321}}) {
    EXPECT_EQ(parse_mark(format_holder(czxid)).kind, HolderMark::Kind::kHeld);
    EXPECT_EQ(parse_mark(format_holder(czxid)).czxid, czxid);
    EXPECT_EQ(parse_mark(format_vanished(czxid)).kind, HolderMark::Kind::kGone);
    EXPECT_EQ(parse_mark(format_vanished(czxid)).czxid, czxid);
  }
  EXPECT_EQ(parse_mark(kNoHolder).kind, HolderMark::Kind::kNobody);
}

TEST(LockDelay, WhatOthersWroteThereSaysNothing) {
  for (const char* data :
       {"held", "held ", "held x", "held 6x", "held 6\n", "HELD 6", "gone", "gone x", "10.0.0.1"}) {
    EXPECT_EQ(parse_mark(data).kind, HolderMark::Kind::kNobody) << data;
  }
}

std::string text(const Withdraw& withdraw) {
  return "withdraw: " + std::string(name(withdraw.code));
}
std::string text(const Look&) { return "look"; }
std::string text(const WaitOut& wait) {
  if (wait.until == Instant::max()) return "wait for ever";
  const auto until =
      std::chrono::duration_cast<std::chrono::seconds>(wait.until.time_since_epoch());
  return "wait until " + std::to_string(until.count());
}
std::string text(const Pause& pause) { return "pause " + std::to_string(pause.round); }
std::string text(const Mark& mark) { return "mark " + mark.text; }
std::string text(const Wipe&) { return "wipe"; }
std::string text(const GiveUp&) { return "give up"; }
std::string text(const Grant&) { return "grant"; }
std::string text(const Fail& fail) {
  return "fail: " + std::string(name(fail.code)) + (fail.why.empty() ? "" : ", " + fail.why);
}
std::string text(const Lose& lose) { return "lose: " + std::string(name(lose.code)); }
std::string text(const Done&) { return "done"; }

constexpr Answer kMaybe{Answer::Kind::kAmbiguous, Code::kConnectionLoss};

/// A claim of entry 7 under a delay of ten seconds, the time and a lease.
struct Rig {
  explicit Rig(std::chrono::milliseconds span = 10s, Wait wait = Wait::kYes) : delay(span, wait) {}

  std::vector<std::string> step(const lock_delay::Event& event) {
    std::vector<std::string> texts;
    for (const lock_delay::Action& action : delay.step(event, now)) {
      texts.push_back(std::visit([](const auto& what) { return text(what); }, action));
    }
    return texts;
  }
  std::vector<std::string> look(const std::string& data, bool synced = true) {
    return step(Looked{synced, {}, data});
  }
  std::vector<std::string> mark(Answer answer = {}) { return step(Marked{answer, lease_until}); }
  /// Of this age, by the server's clock, was the note of one that vanished when our entry came.
  std::vector<std::string> look_at_note(std::chrono::milliseconds age) {
    return step(Looked{.synced = true,
                       .data = format_vanished(5),
                       .mzxid = 6,
                       .marked_at = 1'000'000,
                       .came_at = 1'000'000 + age.count()});
  }
  /// A holder before us has vanished, and we are the first to see it.
  void wait_out() {
    step(First{7});
    look(format_holder(6));
    mark();
  }
  void hold() {
    step(First{7});
    look(std::string(kNoHolder));
    mark();
  }

  LockDelay delay;
  Instant now{100s};
  Instant lease_until{1h};
};

TEST(LockDelay, H73_AfterAHolderThatLetGoItMarksAndHolds) {
  Rig rig;

  EXPECT_THAT(rig.step(First{7}), ElementsAre("look"));
  EXPECT_THAT(rig.look(std::string(kNoHolder)), ElementsAre("mark held 7"));
  EXPECT_THAT(rig.mark(), ElementsAre("grant"));
}

TEST(LockDelay, H73_AfterAHolderThatVanishedItWaitsFirst) {
  Rig rig;
  rig.step(First{7});

  EXPECT_THAT(rig.look(format_holder(6)), ElementsAre("mark gone 6"));
  EXPECT_THAT(rig.mark(), ElementsAre("wait until 110"));
  EXPECT_THAT(rig.step(Resumed{}), ElementsAre("mark held 7"));
  EXPECT_THAT(rig.mark(), ElementsAre("grant"));
}

TEST(LockDelay, H73_WhatIsLeftOfADelayThatOthersBeganIsWaitedOut) {
  Rig rig;
  rig.step(First{7});

  EXPECT_THAT(rig.look_at_note(4s), ElementsAre("wait until 106"));
}

TEST(LockDelay, H73_ADelayThatIsOverIsNotWaitedOutAgain) {
  Rig rig(10s, Wait::kNo);
  rig.step(First{7});

  EXPECT_THAT(rig.look_at_note(10s), ElementsAre("mark held 7"));
  EXPECT_THAT(rig.mark(), ElementsAre("grant"));
}

TEST(LockDelay, H73_AnEntryOlderThanTheNoteSaysNothingAboutItsAge) {
  Rig rig;
  rig.step(First{7});

  EXPECT_THAT(rig.step(Looked{.synced = true,
                              .data = format_vanished(5),
                              .mzxid = 8,
                              .marked_at = 0,
                              .came_at = 1'000'000}),
              ElementsAre("wait until 110"));
}

TEST(LockDelay, H73_AServerWhoseClockWasPutBackBeginsTheDelayAgain) {
  Rig rig;
  rig.step(First{7});

  EXPECT_THAT(rig.look_at_note(-1h), ElementsAre("mark gone 5"));
  EXPECT_THAT(rig.mark(), ElementsAre("wait until 110"));
}

TEST(LockDelay, H73_AnotherLeadersClockSaysNothingAboutTheAgeOfTheNote) {
  constexpr std::int64_t kNextEpoch = std::int64_t{1} << 32;
  Rig rig;
  rig.step(First{kNextEpoch + 1});

  EXPECT_THAT(rig.look_at_note(1h), ElementsAre("mark gone 5"));
  EXPECT_THAT(rig.mark(), ElementsAre("wait until 110"));
}

TEST(LockDelay, ANoteWhoseFateIsUnknownIsLookedFor) {
  Rig rig;
  rig.step(First{7});
  rig.look(format_holder(6));

  EXPECT_THAT(rig.mark(kMaybe), ElementsAre("pause 1"));
  EXPECT_THAT(rig.step(Resumed{}), ElementsAre("look"));
}

TEST(LockDelay, H05_ANoteThatFindsOurEntryGoneIsALoss) {
  Rig rig;
  rig.step(First{7});
  rig.look(format_holder(6));

  EXPECT_THAT(rig.mark(no(Code::kNoNode)),
              ElementsAre("give up", "fail: Lost, our queue entry is gone", "done"));
}

TEST(LockDelay, H05_ALookThatFindsOurEntryGoneIsALoss) {
  Rig rig;
  rig.step(First{7});

  EXPECT_THAT(rig.step(Looked{.synced = true, .answer = no(Code::kNoNode)}),
              ElementsAre("give up", "fail: Lost, our queue entry is gone", "done"));
}

TEST(LockDelay, H73_OneWhoWouldNotWaitNotesThatAHolderVanishedAndLeaves) {
  Rig rig(10s, Wait::kNo);
  rig.step(First{7});

  EXPECT_THAT(rig.look(format_holder(6)), ElementsAre("mark gone 6"));
  EXPECT_THAT(rig.mark(),
              ElementsAre("give up", "fail: Busy, a lock delay has to be waited out", "done"));
  EXPECT_THAT(rig.step(Resumed{}), IsEmpty());
}

TEST(LockDelay, OneWhoWouldNotWaitHoldsWhereThereIsNothingToWaitFor) {
  Rig rig(10s, Wait::kNo);

  EXPECT_THAT(rig.step(First{7}), ElementsAre("look"));
  EXPECT_THAT(rig.look(std::string(kNoHolder)), ElementsAre("mark held 7"));
  EXPECT_THAT(rig.mark(), ElementsAre("grant"));
}

TEST(LockDelay, ADelayThatDoesNotFitIntoTimeNeverEnds) {
  Rig rig(std::chrono::milliseconds::max());
  rig.step(First{7});

  rig.look(format_holder(6));
  EXPECT_THAT(rig.mark(), ElementsAre("wait for ever"));
}

TEST(LockDelay, AReadThatIsNotSyncedSaysNothing) {
  Rig rig;
  rig.step(First{7});

  EXPECT_THAT(rig.look(std::string(kNoHolder), false), ElementsAre("pause 1"));
  EXPECT_THAT(rig.step(Resumed{}), ElementsAre("look"));
}

TEST(LockDelay, WhatCannotBeReadForNowIsReadAgainAndWhatMustNotBeReadIsAnError) {
  Rig rig;
  rig.step(First{7});

  for (const Answer& answer : {kMaybe, no(Code::kOverloaded), no(Code::kServerError)}) {
    EXPECT_EQ(rig.step(Looked{true, answer, ""}).front().substr(0, 5), "pause");
    EXPECT_THAT(rig.step(Resumed{}), ElementsAre("look"));
  }
  EXPECT_THAT(rig.step(Looked{true, no(Code::kNotAuthorized), ""}),
              ElementsAre("give up", "fail: NotAuthorized, reading who held before", "done"));
}

TEST(LockDelay, AMarkWhoseFateIsUnknownIsMadeAgain) {
  Rig rig;
  rig.step(First{7});
  rig.look(std::string(kNoHolder));

  EXPECT_THAT(rig.mark(kMaybe), ElementsAre("pause 1"));
  EXPECT_THAT(rig.step(Resumed{}), ElementsAre("mark held 7"));
  EXPECT_THAT(rig.mark(), ElementsAre("grant"));
}

TEST(LockDelay, H12_AMarkWhoseAnswerCameTooLateProvesNothingAndIsMadeAgain) {
  Rig rig;
  rig.step(First{7});
  rig.look(std::string(kNoHolder));
  rig.lease_until = rig.now;

  EXPECT_THAT(rig.mark(), ElementsAre("pause 1"));
  EXPECT_THAT(rig.step(Resumed{}), ElementsAre("mark held 7"));
  rig.lease_until = rig.now + 1s;
  EXPECT_THAT(rig.mark(), ElementsAre("grant"));
}

TEST(LockDelay, H05_AMarkThatFindsOurEntryGoneIsALoss) {
  Rig rig;
  rig.step(First{7});
  rig.look(std::string(kNoHolder));

  EXPECT_THAT(rig.mark(no(Code::kNoNode)),
              ElementsAre("wipe", "give up", "fail: Lost, our queue entry is gone", "done"));
}

TEST(LockDelay, H73_ASilenceDuringTheDelayCostsNothing) {
  Rig rig;
  rig.wait_out();

  EXPECT_THAT(rig.step(LeaseOver{}), IsEmpty());
  EXPECT_THAT(rig.step(Resumed{}), ElementsAre("mark held 7"));
  EXPECT_THAT(rig.step(LeaseOver{}), IsEmpty());
  EXPECT_THAT(rig.mark(), ElementsAre("grant"));
}

TEST(LockDelay, H73_AnEntryThatGoesDuringTheDelayIsLost) {
  Rig rig;
  rig.wait_out();

  EXPECT_THAT(rig.step(Lost{Code::kLost}),
              ElementsAre("fail: Lost, lost during the lock delay", "done"));
}

TEST(LockDelay, H73_WhoeverGivesUpDuringTheDelayLeavesTheMarkOfTheVanished) {
  Rig rig;
  rig.wait_out();

  EXPECT_THAT(rig.step(Cancel{Code::kTimedOut}),
              ElementsAre("give up", "fail: TimedOut, waiting out the lock delay", "done"));
  EXPECT_THAT(rig.step(Resumed{}), IsEmpty());
}

TEST(LockDelay, H73_WhoeverGivesUpAfterTheDelayWipesWhatItMayHaveWritten) {
  Rig rig;
  rig.wait_out();
  rig.step(Resumed{});

  EXPECT_THAT(rig.step(Cancel{Code::kTimedOut}),
              ElementsAre("wipe", "give up", "fail: TimedOut", "done"));
}

TEST(LockDelay, H50_ACancelInLineIsForTheClaimAndOneAfterTheGrantIsNone) {
  Rig waiting;
  EXPECT_THAT(waiting.step(Cancel{Code::kTimedOut}), ElementsAre("withdraw: TimedOut"));
  EXPECT_THAT(waiting.step(Failed{Code::kTimedOut}), ElementsAre("fail: TimedOut", "done"));

  Rig holding;
  holding.hold();
  EXPECT_THAT(holding.step(Cancel{Code::kTimedOut}), IsEmpty());
}

TEST(LockDelay, H73_AReleaseWipesTheMarkInFrontOfTheDelete) {
  Rig rig;
  rig.hold();

  EXPECT_THAT(rig.step(Release{}), ElementsAre("wipe", "give up", "done"));
}

TEST(LockDelay, H09_ALeaseThatRunsOutIsToldBeforeTheEntryIsGivenUpAndTheMarkStays) {
  Rig rig;
  rig.hold();

  EXPECT_THAT(rig.step(LeaseOver{}), ElementsAre("lose: Lost"));
  EXPECT_THAT(rig.step(LeaseOver{}), IsEmpty());
  EXPECT_THAT(rig.step(Told{}), ElementsAre("give up", "done"));
}

TEST(LockDelay, H09_WhatGoesWhileTheHolderIsToldNeedNotBeGivenUp) {
  Rig by_clock;
  by_clock.hold();
  by_clock.step(LeaseOver{});
  EXPECT_THAT(by_clock.step(Lost{Code::kSessionLost}), IsEmpty());
  EXPECT_THAT(by_clock.step(Told{}), ElementsAre("done"));

  Rig by_hand;
  by_hand.hold();
  EXPECT_THAT(by_hand.step(Lost{Code::kLost}), ElementsAre("lose: Lost"));
  EXPECT_THAT(by_hand.step(Told{}), ElementsAre("done"));
}

}  // namespace
}  // namespace latchkey::queue::lock_delay
