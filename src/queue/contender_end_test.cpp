#include <gmock/gmock.h>

#include "queue/contender.hpp"
#include "queue/counter.hpp"
#include "support/contender_rig.hpp"

namespace latchkey::queue {
namespace {

class ContenderEndTest : public ContenderRig {};

TEST_F(ContenderEndTest, H21_AReleaseOwesTheDeleteAndIsDone) {
  hold();
  tell(event::Release{});
  EXPECT_TRUE(owes(me_));
  EXPECT_TRUE(is_done());
  EXPECT_EQ(ever<action::Lose>(), 0);
}

TEST_F(ContenderEndTest, H22_WithTheSessionGoneNothingIsOwed) {
  hold();
  tell(event::SessionOver{Code::kSessionLost});
  EXPECT_EQ(last<action::Lose>().code, Code::kSessionLost);
  EXPECT_EQ(ever<action::Owe>(), 0);
  EXPECT_TRUE(is_done());
}

TEST_F(ContenderEndTest, H22_ASessionThatEndsWhileLeavingEndsTheSearchToo) {
  tell(event::Start{});
  tell(event::Cancel{Code::kTimedOut});
  tell(event::SessionOver{Code::kClosed});
  expect_failed(Code::kTimedOut);
  EXPECT_EQ(ever<action::Owe>(), 0);
  EXPECT_TRUE(is_done());
}

TEST_F(ContenderEndTest, H23_AReleaseAfterALossDoesNothing) {
  hold();
  tell(event::LeaseOver{});
  EXPECT_TRUE(is_done());
  tell(event::Release{});
  EXPECT_TRUE(did_nothing());
  EXPECT_TRUE(owes(me_));
}

TEST_F(ContenderEndTest, H24_ASecondReleaseDoesNothing) {
  hold();
  tell(event::Release{});
  tell(event::Release{});
  EXPECT_TRUE(did_nothing());
  EXPECT_TRUE(owes(me_));
}

TEST_F(ContenderEndTest, H09_ALeaseThatEndsIsALossAndTheNodeIsOwed) {
  hold();
  tell(event::LeaseOver{});
  EXPECT_EQ(last<action::Lose>().code, Code::kLost);
  EXPECT_TRUE(owes(me_));
  EXPECT_TRUE(is_done());
}

TEST_F(ContenderEndTest, AHolderWatchesItsNodeFromTheFirstHeartbeatOn) {
  hold();
  EXPECT_EQ(ever<action::Watch>(), 0);
  tell(event::Heartbeat{});
  EXPECT_EQ(did<action::Watch>(), 1);
  tell(event::Heartbeat{});
  EXPECT_TRUE(did_nothing());
  watched(me_);
  tell(event::Touched{me_});
  EXPECT_EQ(did<action::Watch>(), 1);
  watched(me_);
  tell(event::Gone{me_});
  EXPECT_EQ(last<action::Lose>().code, Code::kLost);
  EXPECT_EQ(ever<action::Owe>(), 0);
  EXPECT_TRUE(is_done());
}

TEST_F(ContenderEndTest, AHoldersMissingNodeIsALossEvenIfTheWatchComesTooLate) {
  hold();
  tell(event::Heartbeat{});
  watched(me_, no(Code::kNoNode));
  EXPECT_EQ(last<action::Lose>().code, Code::kLost);
}

TEST_F(ContenderEndTest, AWaitersMissingNodeEndsTheAttempt) {
  wait_behind({5});
  tell(event::Gone{me_});
  expect_failed(Code::kLost);
  EXPECT_TRUE(unwatched(other(5)));
  EXPECT_TRUE(is_done());
}

TEST_F(ContenderEndTest, H29_ACancelledWaiterTakesItsWatchesAlong) {
  wait_behind({5});
  tell(event::Cancel{Code::kTimedOut});
  expect_failed(Code::kTimedOut);
  EXPECT_TRUE(owes(me_));
  EXPECT_TRUE(unwatched(other(5)));
  EXPECT_TRUE(unwatched(me_));
  EXPECT_TRUE(is_done());
}

TEST_F(ContenderEndTest, H29_AWatchStillOnItsWayIsGivenBackToo) {
  tell(event::Start{});
  created(9);
  listed({me_, other(5)});
  tell(event::Cancel{Code::kTimedOut});
  EXPECT_TRUE(unwatched(other(5)));
  EXPECT_TRUE(unwatched(me_));
}

TEST_F(ContenderEndTest, H50_ACancelAfterTheGrantIsTooLate) {
  hold();
  tell(event::Cancel{Code::kTimedOut});
  EXPECT_TRUE(did_nothing());
  EXPECT_EQ(ever<action::Grant>(), 1);
}

TEST_F(ContenderEndTest, H50_AGrantAfterTheCancelIsTooLate) {
  wait_behind({5});
  tell(event::Gone{other(5)});
  const Ask prove = last<action::Prove>().ask;
  tell(event::Cancel{Code::kTimedOut});
  tell(event::Proved{prove, kOk});
  EXPECT_TRUE(did_nothing());
  expect_failed(Code::kTimedOut);
  EXPECT_TRUE(owes(me_));
}

TEST_F(ContenderEndTest, H50_TheFirstOfTwoCancelsWins) {
  tell(event::Start{});
  tell(event::Cancel{Code::kCancelled});
  tell(event::Cancel{Code::kTimedOut});
  expect_failed(Code::kCancelled);
}

TEST_F(ContenderEndTest, AReleaseBeforeTheGrantIsACancel) {
  wait_behind({5});
  tell(event::Release{});
  expect_failed(Code::kCancelled);
  EXPECT_TRUE(owes(me_));
  EXPECT_TRUE(is_done());
}

TEST_F(ContenderEndTest, CancelledBeforeItStartedItNeverStarts) {
  tell(event::Cancel{Code::kCancelled});
  expect_failed(Code::kCancelled);
  EXPECT_TRUE(is_done());
  tell(event::Start{});
  EXPECT_TRUE(did_nothing());
}

TEST_F(ContenderEndTest, AfterDoneNothingIsAnswered) {
  hold();
  tell(event::Release{});
  const Event events[] = {
      event::Start{},
      event::Created{1, kOk, me_, 1},
      event::Listed{2, kOk, {me_}},
      event::Gone{me_},
      event::Touched{me_},
      event::Heartbeat{},
      event::LeaseOver{},
      event::Proved{3, kOk},
      event::SessionOver{Code::kClosed},
      event::DirectoryChanged{},
      event::Cancel{Code::kTimedOut},
      event::Release{},
  };
  for (const Event& event : events) {
    tell(event);
    EXPECT_TRUE(did_nothing());
  }
}

TEST_F(ContenderEndTest, AnswersToOldQuestionsAreDropped) {
  wait_behind({5});
  tell(event::Created{1, kOk, other(1), 1});
  EXPECT_TRUE(did_nothing());
  tell(event::Listed{2, kOk, {me_}});
  EXPECT_TRUE(did_nothing());
  tell(event::Proved{99, kOk});
  EXPECT_TRUE(did_nothing());
}

// ---- H35: the counter ---------------------------------------------------------------------------

class ContenderDrainTest : public ContenderRig {
 protected:
  static constexpr int kSpent = kSpentFrom;

  void drain(std::vector<std::string> children) {
    tell(event::Start{});
    created(kSpent);
    list_to_drain(std::move(children));
  }
  void list_to_drain(std::vector<std::string> children) {
    tell(event::Listed{last<action::ListAndWatch>().ask, kOk, std::move(children)});
  }
  void removed(Answer answer) { tell(event::Removed{last<action::RemoveDirectory>().ask, answer}); }
};

TEST_F(ContenderDrainTest, H35_ALateNumberIsGivenBackAndTheDirectoryMadeAnew) {
  drain({other(kSpent - 1)});
  const std::string given_up = me_;
  EXPECT_TRUE(owes(given_up));
  EXPECT_TRUE(did_nothing());
  tell(event::DirectoryChanged{});
  EXPECT_EQ(did<action::ListAndWatch>(), 1);
  list_to_drain({});
  EXPECT_EQ(did<action::RemoveDirectory>(), 1);
  removed(kOk);
  ASSERT_EQ(did<action::Create>(), 1);
  EXPECT_FALSE(given_up.starts_with(last<action::Create>().prefix)) << "a fresh guid";
  created(0);
  listed({me_});
  proved();
  EXPECT_EQ(ever<action::Grant>(), 1);
}

/// Whoever watches is told of the session's end as well, but only after those who contend (H66).
TEST_F(ContenderDrainTest, H22_AWatchThatComesAfterTheSessionsEndAsksForNothing) {
  drain({other(kSpent - 1)});
  tell(event::SessionOver{Code::kSessionLost});
  EXPECT_TRUE(is_done());
  tell(event::DirectoryChanged{});
  EXPECT_TRUE(did_nothing());
}

TEST_F(ContenderDrainTest, H35_ANegativeNumberIsBeyondTheEnd) {
  tell(event::Start{});
  const std::string name = last<action::Create>().prefix + "-2147483648";
  tell(event::Created{last<action::Create>().ask, kOk, name, 5});
  EXPECT_TRUE(owes(name));
  EXPECT_EQ(did<action::ListAndWatch>(), 1);
}

TEST_F(ContenderDrainTest, H35_WhoeverRemovesItFirstIsFine) {
  drain({});
  removed(no(Code::kNoNode));
  EXPECT_EQ(did<action::Create>(), 1);
}

TEST_F(ContenderDrainTest, H35_ADirectoryThatIsNotEmptyAfterAllIsTriedAgainLater) {
  drain({"readme"});
  removed(no(Code::kNotEmpty));
  EXPECT_EQ(did<action::Pause>(), 1);
  tell(event::Resumed{last<action::Pause>().ask});
  EXPECT_EQ(did<action::UnwatchDirectory>(), 1) << "or each round would leave a watch behind";
  EXPECT_EQ(did<action::ListAndWatch>(), 1);
}

TEST_F(ContenderDrainTest, H35_ANewDirectoryIsRecognisedByItsSmallNumbers) {
  drain({other(0)});
  EXPECT_EQ(did<action::Pause>(), 1);
  EXPECT_EQ(did<action::UnwatchDirectory>(), 1);
  tell(event::Resumed{last<action::Pause>().ask});
  EXPECT_EQ(did<action::Create>(), 1);
}

TEST_F(ContenderDrainTest, H35_AClientThatGoesOnUsingTheDirectoryIsAnErrorSoon) {
  drain({other(kSpent - 1)});
  EXPECT_TRUE(did_nothing()) << "an earlier entry is waited for as long as it takes";
  tell(event::DirectoryChanged{});
  for (int look = 1; look < kMostLooksAtLaterOnes; ++look) {
    list_to_drain({other(kSpent + look)});
    ASSERT_EQ(did<action::Pause>(), 1);
    tell(event::Resumed{last<action::Pause>().ask});
  }
  list_to_drain({other(kSpent + 100)});

  EXPECT_EQ(last<action::Fail>().code, Code::kCounterExhausted);
  EXPECT_THAT(last<action::Fail>().why, testing::HasSubstr("another client goes on using it"));
}

TEST_F(ContenderDrainTest, H35_ALaterEntryThatStaysIsWaitedFor) {
  drain({other(kSpent + 1)});
  EXPECT_EQ(did<action::Pause>(), 1);
  tell(event::Resumed{last<action::Pause>().ask});
  for (int look = 0; look < 2 * kMostLooksAtLaterOnes; ++look) {
    list_to_drain({other(kSpent + 1), other(kSpent + 2 + look)});
    EXPECT_EQ(did<action::Pause>(), 0);
    tell(event::DirectoryChanged{});
  }
  EXPECT_EQ(ever<action::Fail>(), 0);
}

TEST_F(ContenderDrainTest, H35_WhoRunsOutOfTimeIsToldWhy) {
  drain({other(kSpent - 1), "readme"});
  tell(event::Cancel{Code::kTimedOut});
  expect_failed(Code::kTimedOut);
  const std::string why = last<action::Fail>().why;
  EXPECT_NE(why.find("counter of /locks/a"), std::string::npos);
  EXPECT_NE(why.find(other(kSpent - 1)), std::string::npos);
  EXPECT_EQ(ever<action::UnwatchDirectory>(), 1);
  EXPECT_TRUE(is_done());
}

TEST_F(ContenderDrainTest, H35_TryingDoesNotWaitForTheOthersToLeave) {
  make({.wait = Wait::kNo});
  drain({other(kSpent - 1)});
  expect_failed(Code::kBusy);
}

TEST_F(ContenderDrainTest, H35_AnAdoptedLateNumberIsGivenBackToo) {
  tell(event::Start{});
  created_not(kMaybe);
  const std::string mine = last<action::Create>().prefix + digits(kSpent);
  tell(event::Synced{last<action::Sync>().ask, kOk});
  listed({mine});
  tell(event::Looked{last<action::Look>().ask, kOk, true, 5});
  EXPECT_TRUE(owes(mine));
  EXPECT_EQ(did<action::ListAndWatch>(), 1);
}

TEST_F(ContenderDrainTest, H35_ADirectoryThatMayNotBeRemovedEndsTheAttempt) {
  drain({});
  removed(no(Code::kNotAuthorized));
  expect_failed(Code::kCounterExhausted);
  EXPECT_TRUE(is_done());
}

// ---- H44: a downgrade that fails is the writer's loss as well
// ------------------------------------

class DowngradeTest : public ContenderRig {
 protected:
  void downgrade() {
    make({.tag = Tag::kWrite});
    hold();
    tell(event::Downgrade{});
  }
  void exchanged(Answer answer) {
    tell(event::Exchanged{last<action::Exchange>().ask, answer, 110});
  }
  /// A node has the reader's name; the answer that says whose it is comes after the end.
  void give_up_while_looking() {
    downgrade();
    exchanged(no(Code::kNodeExists));
    tell(event::Cancel{Code::kCancelled});
    EXPECT_EQ(last<action::Fail>().code, Code::kCancelled) << "the caller need not wait for it";
    EXPECT_EQ(did<action::Lose>(), 1);
    EXPECT_EQ(ever<action::Owe>(), 0);
    tell(event::Looked{last<action::Look>().ask, kMaybe, false, 0});
    EXPECT_EQ(did<action::Look>(), 1) << "asked again";
  }
};

TEST_F(DowngradeTest, H44_ARefusalIsToldToTheWriterToo) {
  downgrade();
  exchanged(no(Code::kNotAuthorized));
  EXPECT_EQ(last<action::Fail>().code, Code::kNotAuthorized);
  EXPECT_EQ(did<action::Lose>(), 1);
}

TEST_F(DowngradeTest, H44_ADeadlineIsToldToTheWriterTooAndNeitherEntryIsLeft) {
  downgrade();
  tell(event::Cancel{Code::kTimedOut});
  EXPECT_EQ(last<action::Fail>().code, Code::kTimedOut);
  EXPECT_EQ(did<action::Lose>(), 1);
  EXPECT_EQ(ever<action::Owe>(), 2);
}

TEST_F(DowngradeTest, H44_WhatAServerCannotSayOrDoAtTheMomentIsAskedAgainAfterAPause) {
  const Answer in_doubt{Answer::Kind::kAmbiguous, Code::kServerError};
  for (const Answer& answer : {in_doubt, no(Code::kOverloaded), no(Code::kRolledBack)}) {
    downgrade();
    exchanged(answer);
    EXPECT_EQ(did<action::Pause>(), 1);
    EXPECT_EQ(did<action::Exchange>(), 0);
    tell(event::Resumed{last<action::Pause>().ask});
    EXPECT_EQ(did<action::Exchange>(), 1);
    exchanged(kOk);
    proved();
    EXPECT_EQ(did<action::Grant>(), 1);
    EXPECT_EQ(ever<action::Lose>(), 0);
  }
}

TEST_F(DowngradeTest, H44_WhoGivesUpInThatPauseLeavesNeitherEntry) {
  downgrade();
  exchanged(no(Code::kOverloaded));
  tell(event::Cancel{Code::kCancelled});
  EXPECT_EQ(ever<action::Owe>(), 2);
  EXPECT_TRUE(is_done());
}

TEST_F(DowngradeTest, H04_AStrangerWithTheReadersNameIsLeftAlone) {
  downgrade();
  exchanged(no(Code::kNodeExists));
  tell(event::Looked{last<action::Look>().ask, kOk, false, 90});

  EXPECT_EQ(last<action::Fail>().code, Code::kLost);
  EXPECT_EQ(did<action::Lose>(), 1);
  ASSERT_EQ(ever<action::Owe>(), 1);
  EXPECT_EQ(last<action::Owe>().name, me_) << "the writer's entry, and nothing else";
  EXPECT_TRUE(is_done());
}

TEST_F(DowngradeTest, H04_WhoGivesUpMeanwhileLearnsFirstThatItIsAStrangers) {
  give_up_while_looking();
  tell(event::Looked{last<action::Look>().ask, kOk, false, 90});

  ASSERT_EQ(ever<action::Owe>(), 1);
  EXPECT_TRUE(owes(me_));
  EXPECT_TRUE(is_done());
}

TEST_F(DowngradeTest, H06_WhoGivesUpMeanwhileLeavesNeitherOfItsEntries) {
  give_up_while_looking();
  tell(event::Looked{last<action::Look>().ask, kOk, true, 90});

  EXPECT_EQ(ever<action::Owe>(), 2);
  EXPECT_TRUE(is_done());
}

TEST_F(DowngradeTest, H44_SoIsALossBeforeTheReaderHolds) {
  downgrade();
  exchanged(kOk);
  proved(no(Code::kNotAuthorized));
  EXPECT_EQ(last<action::Fail>().code, Code::kNotAuthorized);
  EXPECT_EQ(did<action::Lose>(), 1);
}

}  // namespace
}  // namespace latchkey::queue
