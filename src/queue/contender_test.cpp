#include "queue/contender.hpp"

#include "support/contender_rig.hpp"

namespace latchkey::queue {
namespace {

class ContenderTest : public ContenderRig {};

TEST_F(ContenderTest, AsksForCreateAndListInOneFlush) {
  tell(event::Start{});
  ASSERT_EQ(did_.size(), 2U);
  EXPECT_TRUE(std::holds_alternative<action::Create>(did_[0]));
  EXPECT_TRUE(std::holds_alternative<action::List>(did_[1]));
  EXPECT_EQ(last<action::Create>().prefix, "_c_" + format_guid(1, 1) + "-lock-");
}

TEST_F(ContenderTest, TheFirstInLineProvesItsLeaseAndHolds) {
  tell(event::Start{});
  created(9);
  EXPECT_TRUE(did_nothing());
  listed({other(12), me_});
  EXPECT_EQ(did<action::Prove>(), 1);
  EXPECT_EQ(ever<action::Watch>(), 0);
  proved();
  EXPECT_EQ(last<action::Grant>().name, me_);
  EXPECT_EQ(last<action::Grant>().czxid, 109);
}

TEST_F(ContenderTest, H16_TheTokenIsTheCreatingTransactionAndNotTheNumber) {
  hold();
  EXPECT_EQ(last<action::Grant>().czxid, 109);
}

TEST_F(ContenderTest, H12_NothingIsGrantedBeforeTheLeaseIsProven) {
  wait_behind({5});
  tell(event::LeaseOver{});
  tell(event::Gone{other(5)});
  EXPECT_EQ(ever<action::Grant>(), 0);
  proved(kMaybe);
  EXPECT_EQ(did<action::Prove>(), 1);
  EXPECT_EQ(ever<action::Grant>(), 0);
  tell(event::SessionOver{Code::kSessionLost});
  expect_failed(Code::kSessionLost);
}

TEST_F(ContenderTest, WatchesItselfAndTheNearestAheadInOneFlush) {
  tell(event::Start{});
  created(9);
  listed({me_, other(3), other(5)});
  ASSERT_EQ(did<action::Watch>(), 2);
  EXPECT_EQ(std::get<action::Watch>(did_[0]).name, me_);
  EXPECT_EQ(std::get<action::Watch>(did_[1]).name, other(5));
}

TEST_F(ContenderTest, WhereASemaphoreIsNobodyQueues) {
  tell(event::Start{});
  created(9);
  listed({"leases", "locks", me_});

  expect_failed(Code::kKindMismatch);
  EXPECT_EQ(last<action::Owe>().name, me_);
  EXPECT_EQ(did<action::Done>(), 1);
}

TEST_F(ContenderTest, AFolderOfLocksIsNoSemaphore) {
  tell(event::Start{});
  created(9);
  listed({"locks", me_});

  EXPECT_EQ(did<action::Prove>(), 1);
}

TEST_F(ContenderTest, TryingDoesNotWait) {
  make({.wait = Wait::kNo});
  tell(event::Start{});
  created(9);
  listed({me_, other(5)});
  expect_failed(Code::kBusy);
  EXPECT_TRUE(owes(me_));
  EXPECT_TRUE(is_done());
}

// ---- H71: every row of the table ----------------------------------------------------------------

TEST_F(ContenderTest, H05_H71_AListWithoutOurNodeNeverGrants) {
  tell(event::Start{});
  created(9);
  listed({});
  expect_failed(Code::kLost);
  EXPECT_TRUE(owes(me_));
  EXPECT_TRUE(is_done());
}

TEST_F(ContenderTest, H71_CreatedButListUnknownListsAgain) {
  tell(event::Start{});
  created(9);
  listed_not(kMaybe);
  EXPECT_EQ(did<action::List>(), 1);
  EXPECT_EQ(ever<action::Sync>(), 0);
  listed({me_});
  EXPECT_EQ(did<action::Prove>(), 1);
}

TEST_F(ContenderTest, H71_CreatedButDirectoryGoneIsALoss) {
  tell(event::Start{});
  created(9);
  listed_not(no(Code::kNoNode));
  expect_failed(Code::kLost);
  EXPECT_TRUE(is_done());
}

TEST_F(ContenderTest, H71_CreatedButListForbiddenGivesTheNodeBack) {
  tell(event::Start{});
  created(9);
  listed_not(no(Code::kNotAuthorized));
  expect_failed(Code::kNotAuthorized);
  EXPECT_TRUE(owes(me_));
}

TEST_F(ContenderTest, H71_CreatedButListRefusedForTheMomentAsksLater) {
  tell(event::Start{});
  created(9);
  listed_not(no(Code::kOverloaded));
  EXPECT_EQ(did<action::Pause>(), 1);
  tell(event::Resumed{last<action::Pause>().ask});
  EXPECT_EQ(did<action::List>(), 1);
}

TEST_F(ContenderTest, H71_ANumberGivenTwiceIsAPermanentError) {
  tell(event::Start{});
  created_not(no(Code::kNodeExists));
  expect_failed(Code::kCounterExhausted);
  EXPECT_EQ(ever<action::Owe>(), 0);
  EXPECT_TRUE(is_done());
}

TEST_F(ContenderTest, H71_AnyOtherRefusalIsReportedAndNothingIsOwed) {
  tell(event::Start{});
  created_not(no(Code::kNotAuthorized));
  expect_failed(Code::kNotAuthorized);
  EXPECT_EQ(ever<action::Owe>(), 0);
  EXPECT_TRUE(is_done());
}

TEST_F(ContenderTest, H71_AListBehindAnUnknownCreateProvesNothing) {
  tell(event::Start{});
  const Ask stale = last<action::List>().ask;
  created_not(kMaybe);
  EXPECT_EQ(did<action::Sync>(), 1);
  EXPECT_EQ(did<action::List>(), 1);
  tell(event::Listed{stale, kOk, {last<action::Create>().prefix + digits(3)}});
  EXPECT_TRUE(did_nothing());
}

TEST_F(ContenderTest, H71_ASessionThatIsOverEndsTheAttemptWhateverWasAsked) {
  tell(event::Start{});
  created_not(no(Code::kSessionLost));
  expect_failed(Code::kSessionLost);
  EXPECT_TRUE(is_done());
}

TEST_F(ContenderTest, H71_TheListMayBeAnsweredFirst) {
  tell(event::Start{});
  me_ = last<action::Create>().prefix + digits(9);
  listed({me_});
  EXPECT_TRUE(did_nothing());
  created(9);
  EXPECT_EQ(did<action::Prove>(), 1);
}

// ---- In company ---------------------------------------------------------------------------------

TEST_F(ContenderTest, OnlyTheListOfACreateMayWait) {
  wait_behind({1, 2, 3, 4, 5});
  EXPECT_TRUE(last<action::List>().may_wait);
  tell(event::Gone{other(5)});
  EXPECT_FALSE(last<action::List>().may_wait);
}

TEST_F(ContenderTest, WhoDoesNotWaitHasNoListThatMay) {
  make({.wait = Wait::kNo});
  tell(event::Start{});
  EXPECT_FALSE(last<action::List>().may_wait);
}

/// Another hand may have deleted it since.
TEST_F(ContenderTest, H05_AnOldListShowsWhoIsAheadButNotThatWeAreStillThere) {
  tell(event::Start{});
  created(9);
  tell(event::Listed{last<action::List>().ask, kOk, {me_}, false});
  EXPECT_EQ(ever<action::Prove>(), 0);
  watched(me_);
  EXPECT_EQ(did<action::Prove>(), 1);
}

TEST_F(ContenderTest, H05_WhoIsFirstByAnOldListAndGoneFails) {
  tell(event::Start{});
  created(9);
  tell(event::Listed{last<action::List>().ask, kOk, {me_}, false});
  watched(me_, no(Code::kNoNode));
  expect_failed(Code::kLost);
  EXPECT_TRUE(is_done());
}

TEST_F(ContenderTest, WhoMayNotReadItsOwnEntryListsInstead) {
  tell(event::Start{});
  created(9);
  tell(event::Listed{last<action::List>().ask, kOk, {me_}, false});
  watched(me_, no(Code::kNotAuthorized));
  tell(event::Resumed{last<action::Pause>().ask});
  EXPECT_EQ(did<action::List>(), 1);
  listed({me_});
  EXPECT_EQ(did<action::Prove>(), 1);
}

TEST_F(ContenderTest, WhenTheLastAheadLeavesBeforeOurOwnWatchIsInPlaceItsAnswerDecides) {
  tell(event::Start{});
  created(9);
  tell(event::Listed{last<action::List>().ask, kOk, {other(5), me_}, false});
  tell(event::Gone{other(5)});
  EXPECT_EQ(ever<action::Prove>(), 0);
  watched(me_);
  EXPECT_EQ(did<action::Prove>(), 1);
  EXPECT_EQ(ever<action::List>(), 1);
}

TEST_F(ContenderTest, WhoseTurnIsNearWatchesItselfAndHoldsWithoutAnotherAnswer) {
  tell(event::Start{});
  created(9);
  tell(event::Heartbeat{});
  EXPECT_EQ(last<action::Watch>().name, me_);
  watched(me_);
  tell(event::Listed{last<action::List>().ask, kOk, {other(5), me_}, false});
  tell(event::Gone{other(5)});
  EXPECT_EQ(did<action::Prove>(), 1);
  EXPECT_EQ(ever<action::List>(), 1);
}

TEST_F(ContenderTest, H05_WhoseEntryGoesWhileItsTurnIsNearFails) {
  tell(event::Start{});
  created(9);
  tell(event::Heartbeat{});
  watched(me_);
  tell(event::Gone{me_});
  expect_failed(Code::kLost);
  EXPECT_TRUE(is_done());
}

TEST_F(ContenderTest, WhoGivesUpWhileItsListWaitsSaysWhoWasAhead) {
  tell(event::Start{});
  created(9);
  tell(event::Behind{other(5)});
  EXPECT_EQ(contender_->why_it_waits(), "still behind " + other(5));
  tell(event::Cancel{Code::kTimedOut});
  EXPECT_EQ(last<action::Fail>().why, "still behind " + other(5));
  EXPECT_TRUE(owes(me_));
  EXPECT_TRUE(is_done());
}

// ---- Waiting ------------------------------------------------------------------------------------

TEST_F(ContenderTest, H27_ADeadNeighbourIsNoGrantWhileTheHolderLives) {
  wait_behind({3, 5});
  tell(event::Gone{other(5)});
  EXPECT_EQ(ever<action::Prove>(), 0);
  EXPECT_EQ(last<action::Watch>().name, other(3));
  watched(other(3));
  tell(event::Gone{other(3)});
  EXPECT_EQ(did<action::Prove>(), 1);
  EXPECT_EQ(ever<action::List>(), 1);
}

TEST_F(ContenderTest, H26_APredecessorThatVanishedBeforeTheWatchIsAWake) {
  tell(event::Start{});
  created(9);
  listed({me_, other(5)});
  watched(me_);
  watched(other(5), no(Code::kNoNode));
  EXPECT_EQ(did<action::Prove>(), 1);
}

TEST_F(ContenderTest, H33_WithManyAheadOneListIsCheaper) {
  wait_behind({1, 2, 3, 4, 5});
  tell(event::Gone{other(5)});
  EXPECT_EQ(did<action::List>(), 1);
  EXPECT_EQ(did<action::Watch>(), 0);
  listed({me_, other(1)});
  EXPECT_EQ(did<action::Watch>(), 2) << "now ours too, which spares us the next list";
  EXPECT_EQ(last<action::Watch>().name, other(1));
  watched(me_);
  tell(event::Gone{other(1)});
  EXPECT_EQ(did<action::Prove>(), 1);
}

TEST_F(ContenderTest, H05_BehindManyTheListAfterTheWakeSaysWhetherWeAreStillThere) {
  wait_behind({1, 2, 3, 4, 5});
  EXPECT_EQ(ever<action::Watch>(), 1) << "the nearest, and not our own";
  tell(event::Gone{other(5)});
  listed({other(1), other(2), other(3), other(4)});
  EXPECT_EQ(last<action::Fail>().code, Code::kLost);
}

TEST_F(ContenderTest, H31_AnEventBeforeTheAnswerOfItsWatchIsNotLost) {
  tell(event::Start{});
  created(9);
  listed({me_, other(5)});
  watched(me_);
  tell(event::Gone{other(5)});
  EXPECT_EQ(did<action::Prove>(), 1);
  watched(other(5), no(Code::kNoNode));
  EXPECT_TRUE(did_nothing());
}

TEST_F(ContenderTest, H31_SomebodyFartherAheadMayLeaveFirst) {
  wait_behind({3, 5});
  tell(event::Gone{other(3)});
  EXPECT_TRUE(did_nothing());
  tell(event::Gone{other(5)});
  EXPECT_EQ(did<action::Prove>(), 1);
}

TEST_F(ContenderTest, H32_AWatchWithAnUnknownAnswerIsSetAgain) {
  tell(event::Start{});
  created(9);
  listed({me_, other(5)});
  watched(other(5), kMaybe);
  EXPECT_EQ(did<action::Watch>(), 1);
  EXPECT_EQ(last<action::Watch>().name, other(5));
  watched(me_, kMaybe);
  EXPECT_EQ(last<action::Watch>().name, me_);
}

TEST_F(ContenderTest, H32_ADuplicateOrResurrectedPredecessorUndoesNothing) {
  wait_behind({5});
  tell(event::Gone{other(5)});
  tell(event::Gone{other(5)});
  EXPECT_TRUE(did_nothing());
  proved();
  tell(event::Gone{other(5)});
  tell(event::Touched{other(5)});
  EXPECT_TRUE(did_nothing());
  EXPECT_EQ(ever<action::Grant>(), 1);
}

TEST_F(ContenderTest, H34_ATouchedPredecessorIsWatchedAgainAndNothingMore) {
  wait_behind({5});
  tell(event::Touched{other(5)});
  ASSERT_EQ(did_.size(), 1U);
  EXPECT_EQ(last<action::Watch>().name, other(5));
  tell(event::Touched{other(4)});
  EXPECT_TRUE(did_nothing());
}

TEST_F(ContenderTest, APredecessorThatMayNotBeReadIsAskedForAgainAndAgain) {
  tell(event::Start{});
  created(9);
  listed({me_, other(5)});
  watched(other(5), no(Code::kNotAuthorized));
  EXPECT_EQ(did<action::Pause>(), 1);
  tell(event::Resumed{last<action::Pause>().ask});
  listed({me_});
  EXPECT_EQ(did<action::Prove>(), 1);
}

TEST_F(ContenderTest, H72_WithoutAWatchOnItselfItListsInsteadOfConcluding) {
  tell(event::Start{});
  created(9);
  listed({me_, other(5)});
  watched(me_, no(Code::kNotAuthorized));
  watched(other(5));
  tell(event::Gone{other(5)});
  EXPECT_EQ(did<action::Prove>(), 0);
  EXPECT_EQ(did<action::List>(), 1);
}

TEST_F(ContenderTest, H44_H72_AWriterBehindAWriterListsBecauseItMayHaveBecomeAReader) {
  make({.tag = Tag::kWrite});
  tell(event::Start{});
  created(9);
  const std::string writer = other(5, Tag::kWrite);
  const std::string downgraded = node_prefix(format_guid(8, 8), Tag::kRead) + digits(5);
  listed({me_, writer});
  watched(writer);
  tell(event::Gone{writer});
  EXPECT_EQ(did<action::Prove>(), 0);
  ASSERT_EQ(did<action::List>(), 1);
  listed({me_, downgraded});
  EXPECT_EQ(ever<action::Prove>(), 0);
  watched(me_);
  watched(downgraded);
  tell(event::Gone{downgraded});
  EXPECT_EQ(did<action::Prove>(), 1);
}

TEST_F(ContenderTest, H72_RelistAlwaysMeansAlways) {
  make({.relist = Relist::kAlways});
  wait_behind({5});
  tell(event::Gone{other(5)});
  EXPECT_EQ(did<action::List>(), 1);
  listed({me_});
  EXPECT_EQ(did<action::Prove>(), 1);
}

TEST_F(ContenderTest, H05_WhoListsOnEveryWakeWatchesItselfFromTheHeartbeatOnly) {
  make({.relist = Relist::kAlways});
  wait_behind({5});
  EXPECT_EQ(ever<action::Watch>(), 1) << "the nearest, and not our own";
  tell(event::Heartbeat{});
  EXPECT_EQ(last<action::Watch>().name, me_);
  watched(me_);
  tell(event::Gone{me_});
  expect_failed(Code::kLost);
  EXPECT_TRUE(is_done());
}

TEST_F(ContenderTest, H37_ForeignChildrenNeitherBlockNorHurt) {
  tell(event::Start{});
  created(9);
  listed({"readme", "lease_holder", "backup-0000000001", me_});
  EXPECT_EQ(did<action::Prove>(), 1);
}

TEST_F(ContenderTest, H35_ASharedNumberIsReported) {
  tell(event::Start{});
  created(9);
  listed({me_, other(9)});
  expect_failed(Code::kCounterExhausted);
  EXPECT_TRUE(owes(me_));
}

// ---- Parents ------------------------------------------------------------------------------------

TEST_F(ContenderTest, H39_AMissingDirectoryIsMadeAndTheListOfTheFirstTryIsForgotten) {
  tell(event::Start{});
  const Ask stale = last<action::List>().ask;
  created_not(no(Code::kNoNode));
  EXPECT_EQ(last<action::MakeDirectory>().path, "/locks/a");
  tell(event::Listed{stale, kOk, {last<action::Create>().prefix + digits(0)}});
  EXPECT_TRUE(did_nothing());

  tell(event::Made{last<action::MakeDirectory>().ask, no(Code::kNoNode)});
  EXPECT_EQ(last<action::MakeDirectory>().path, "/locks");
  tell(event::Made{last<action::MakeDirectory>().ask, no(Code::kNodeExists)});
  EXPECT_EQ(last<action::MakeDirectory>().path, "/locks/a");
  tell(event::Made{last<action::MakeDirectory>().ask, kMaybe});
  EXPECT_EQ(last<action::MakeDirectory>().path, "/locks/a");
  tell(event::Made{last<action::MakeDirectory>().ask, kOk});
  EXPECT_EQ(did<action::Create>(), 1);
  EXPECT_EQ(did<action::List>(), 1);
  EXPECT_EQ(ever<action::Pause>(), 0);
}

TEST_F(ContenderTest, H39_ADirectoryThatKeepsVanishingIsMadeEverMoreSlowly) {
  tell(event::Start{});
  for (int round = 0; round < 4; ++round) {
    created_not(no(Code::kNoNode));
    if (round > 0) {
      EXPECT_EQ(last<action::Pause>().round, round);
      tell(event::Resumed{last<action::Pause>().ask});
    }
    tell(event::Made{last<action::MakeDirectory>().ask, kOk});
    EXPECT_EQ(did<action::Create>(), 1);
  }
}

TEST_F(ContenderTest, ADirectoryThatIsNotToBeMadeIsReportedMissing) {
  make({.missing = Missing::kFail});
  tell(event::Start{});
  created_not(no(Code::kNoNode));
  expect_failed(Code::kNoNode);
  EXPECT_EQ(ever<action::MakeDirectory>(), 0);
  EXPECT_TRUE(is_done());
}

TEST_F(ContenderTest, ADirectoryThatMayNotBeMadeIsNamed) {
  tell(event::Start{});
  created_not(no(Code::kNoNode));
  tell(event::Made{last<action::MakeDirectory>().ask, no(Code::kNotAuthorized)});
  expect_failed(Code::kNotAuthorized);
  EXPECT_NE(last<action::Fail>().why.find("/locks/a"), std::string::npos);
  EXPECT_TRUE(is_done());
}

}  // namespace
}  // namespace latchkey::queue
