#include "queue/reentrance.hpp"

#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace latchkey::queue::reentrance {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

std::string with(const char* verb, Level level) { return verb + std::to_string(level); }
std::string with(const char* verb, Level level, Code code) {
  return with(verb, level) + ": " + std::string(name(code));
}

std::string text(const Claim& claim) {
  return with("claim for ", claim.level) + (claim.wait == Wait::kYes ? "" : " without waiting");
}
std::string text(const Withdraw& withdraw) {
  return "withdraw: " + std::string(name(withdraw.code));
}
std::string text(const EndLease&) { return "end lease"; }
std::string text(const GiveUp& up) { return with("give up after ", up.level); }
std::string text(const Grant& grant) { return with("grant ", grant.level); }
std::string text(const Fail& fail) { return with("fail ", fail.level, fail.code); }
std::string text(const Lose& lose) { return with("lose ", lose.level, lose.code); }
std::string text(const AskToLetGo& ask) { return with("ask ", ask.level); }
std::string text(const StillHeld& held) { return with("still held after ", held.level); }

/// One owner, and a lease.
struct Rig {
  std::vector<std::string> step(const reentrance::Event& event) {
    std::vector<std::string> texts;
    for (const reentrance::Action& action : reentrance.step(event, now)) {
      texts.push_back(std::visit([](const auto& what) { return text(what); }, action));
    }
    return texts;
  }
  std::vector<std::string> enter(Level level, Wait wait = Wait::kYes) {
    return step(Enter{level, wait, lease_until});
  }
  std::vector<std::string> cancel(Level level) { return step(Cancel{level, Code::kTimedOut}); }
  /// Levels 1 to `last` are in.
  void be_in(Level last) {
    enter(1);
    step(Granted{});
    for (Level level = 2; level <= last; ++level) enter(level);
  }

  Reentrance reentrance;
  Instant now{1h};
  Instant lease_until{2h};
};

TEST(Reentrance, TheFirstLevelMakesAClaimAndTheOthersEnterAtOnce) {
  Rig rig;

  EXPECT_THAT(rig.enter(1), ElementsAre("claim for 1"));
  EXPECT_THAT(rig.step(Granted{}), ElementsAre("grant 1"));
  EXPECT_THAT(rig.enter(2), ElementsAre("grant 2"));
  EXPECT_THAT(rig.enter(3, Wait::kNo), ElementsAre("grant 3"));
}

TEST(Reentrance, OneWhoWouldNotWaitSaysSo) {
  Rig rig;

  EXPECT_THAT(rig.enter(1, Wait::kNo), ElementsAre("claim for 1 without waiting"));
  EXPECT_THAT(rig.step(Failed{Code::kBusy}), ElementsAre("fail 1: Busy"));
  EXPECT_TRUE(rig.reentrance.is_out());
}

TEST(Reentrance, TheClaimIsGivenUpWithTheLastLevelInWhateverOrder) {
  for (const auto& [first, last] : {std::pair(1U, 2U), std::pair(2U, 1U)}) {
    Rig rig;
    rig.be_in(2);

    EXPECT_THAT(rig.step(Release{first}), ElementsAre(with("still held after ", first)));
    EXPECT_FALSE(rig.reentrance.is_out());
    EXPECT_THAT(rig.step(Release{last}), ElementsAre(with("give up after ", last)));
    EXPECT_TRUE(rig.reentrance.is_out());
  }
}

TEST(Reentrance, AnOwnerThatWaitsIsRefusedASecondLevel) {
  Rig rig;
  rig.enter(1);

  EXPECT_THAT(rig.enter(2), ElementsAre("fail 2: WouldDeadlock"));
  EXPECT_THAT(rig.step(Granted{}), ElementsAre("grant 1"));
}

TEST(Reentrance, ALossIsToldToEveryLevelAndTheNextOneStartsAnew) {
  Rig rig;
  rig.be_in(3);
  rig.step(Release{2});

  EXPECT_THAT(rig.step(Lost{Code::kLost}), ElementsAre("lose 1: Lost", "lose 3: Lost"));
  EXPECT_TRUE(rig.reentrance.is_out());
  EXPECT_THAT(rig.enter(4), ElementsAre("claim for 4"));
}

TEST(Reentrance, NobodyIsLetIntoWhatMayBeLostAlready) {
  Rig rig;
  rig.be_in(2);
  rig.now = rig.lease_until;

  EXPECT_THAT(rig.enter(3), ElementsAre("end lease"));
  EXPECT_THAT(rig.enter(4), ElementsAre("fail 4: WouldDeadlock"));
  EXPECT_THAT(rig.step(Lost{Code::kSessionLost}),
              ElementsAre("lose 1: SessionLost", "lose 2: SessionLost", "claim for 3"));
}

TEST(Reentrance, WhoeverWaitsForTheEndOfALeaseMayGiveUp) {
  Rig rig;
  rig.be_in(1);
  rig.now = rig.lease_until;
  rig.enter(2);

  EXPECT_THAT(rig.cancel(2), ElementsAre("fail 2: TimedOut"));
  EXPECT_THAT(rig.step(Lost{Code::kSessionLost}), ElementsAre("lose 1: SessionLost"));
}

TEST(Reentrance, AReleaseThatComesBeforeTheEndOfTheLeaseMakesWayAsWell) {
  Rig rig;
  rig.be_in(1);
  rig.now = rig.lease_until;
  rig.enter(2);

  EXPECT_THAT(rig.step(Release{1}), ElementsAre("give up after 1", "claim for 2"));
}

TEST(Reentrance, H50_ACancelWithdrawsTheClaimAndIsAnsweredByIt) {
  Rig rig;
  rig.enter(1);

  EXPECT_THAT(rig.cancel(1), ElementsAre("withdraw: TimedOut"));
  EXPECT_THAT(rig.step(Failed{Code::kTimedOut}), ElementsAre("fail 1: TimedOut"));
  EXPECT_TRUE(rig.reentrance.is_out());
}

TEST(Reentrance, H50_ACancelAfterTheAnswerIsNoCancel) {
  Rig rig;
  rig.be_in(2);

  EXPECT_THAT(rig.cancel(1), IsEmpty());
  EXPECT_THAT(rig.cancel(2), IsEmpty());
}

TEST(Reentrance, AWishThatItLetGoIsToldToEveryLevelLaterOnesToo) {
  Rig rig;
  rig.be_in(2);

  EXPECT_THAT(rig.step(AskedToLetGo{}), ElementsAre("ask 1", "ask 2"));
  EXPECT_THAT(rig.enter(3), ElementsAre("grant 3", "ask 3"));
}

TEST(Reentrance, AWishGoesWithTheClaimItWasAbout) {
  Rig rig;
  rig.be_in(1);
  rig.step(AskedToLetGo{});
  rig.step(Release{1});

  rig.enter(2);
  EXPECT_THAT(rig.step(Granted{}), ElementsAre("grant 2"));
}

}  // namespace
}  // namespace latchkey::queue::reentrance
