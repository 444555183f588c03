#include "queue/contender.hpp"
#include "support/contender_rig.hpp"

namespace latchkey::queue {
namespace {

class ContenderIdentityTest : public ContenderRig {
 protected:
  [[nodiscard]] std::string mine(int number) const {
    return last<action::Create>().prefix + digits(number);
  }
  void synced(Answer answer = kOk) { tell(event::Synced{last<action::Sync>().ask, answer}); }
  void looked(const std::string& name, bool owned, std::int64_t czxid) {
    for (auto at = all_.rbegin(); at != all_.rend(); ++at) {
      const auto* look = std::get_if<action::Look>(&*at);
      if (look && look->name == name) {
        return tell(event::Looked{look->ask, kOk, owned, czxid});
      }
    }
    FAIL() << "it never looked at " << name;
  }
  void lose_create() {
    tell(event::Start{});
    created_not(kMaybe);
  }
};

TEST_F(ContenderIdentityTest, H01_ALostCreateIsFoundAndAdopted) {
  lose_create();
  synced();
  listed({mine(4), other(6)});
  looked(mine(4), true, 55);
  EXPECT_EQ(did<action::Prove>(), 1);
  proved();
  EXPECT_EQ(last<action::Grant>().name, mine(4));
  EXPECT_EQ(last<action::Grant>().czxid, 55);
  EXPECT_EQ(ever<action::Create>(), 1);
}

TEST_F(ContenderIdentityTest, H01_ACreateThatNeverArrivedIsSentAgain) {
  lose_create();
  synced();
  listed({other(6)});
  EXPECT_EQ(did<action::Create>(), 1);
  EXPECT_EQ(ever<action::Create>(), 2);
  created(9);
  listed({me_});
  EXPECT_EQ(did<action::Prove>(), 1);
}

TEST_F(ContenderIdentityTest, H03_AServerFaultIsAmbiguousAndPaced) {
  tell(event::Start{});
  created_not({Answer::Kind::kAmbiguous, Code::kServerError});
  EXPECT_EQ(did<action::Pause>(), 1);
  EXPECT_EQ(ever<action::Sync>(), 0);
  tell(event::Resumed{last<action::Pause>().ask});
  EXPECT_EQ(did<action::Sync>(), 1);
  EXPECT_EQ(did<action::List>(), 1);
}

TEST_F(ContenderIdentityTest, H01_NoDirectoryMeansNoNode) {
  lose_create();
  synced();
  listed_not(no(Code::kNoNode));
  EXPECT_EQ(did<action::Create>(), 1);
}

TEST_F(ContenderIdentityTest, H02_SyncAndListCountOnlyTogether) {
  lose_create();
  const Ask list = last<action::List>().ask;
  synced(kMaybe);
  EXPECT_EQ(did<action::Sync>(), 1);
  EXPECT_EQ(did<action::List>(), 1);
  tell(event::Listed{list, kOk, {}});
  EXPECT_TRUE(did_nothing());
  synced();
  listed_not(kMaybe);
  EXPECT_EQ(did<action::Sync>(), 1);
  EXPECT_EQ(ever<action::Create>(), 1);
}

TEST_F(ContenderIdentityTest, H02_AListProvesNothingUntilTheSyncIsAnswered) {
  lose_create();
  listed({});
  EXPECT_TRUE(did_nothing());
  synced();
  EXPECT_EQ(did<action::Create>(), 1);
}

TEST_F(ContenderIdentityTest, H02_OfTwinsTheLowestIsKeptAndTheOthersAreOwed) {
  lose_create();
  synced();
  listed({mine(7), mine(4), mine(5)});
  looked(mine(7), true, 70);
  looked(mine(4), true, 40);
  looked(mine(5), true, 50);
  EXPECT_TRUE(owes(mine(7)));
  EXPECT_TRUE(owes(mine(5)));
  EXPECT_FALSE(owes(mine(4)));
  proved();
  EXPECT_EQ(last<action::Grant>().czxid, 40);
}

TEST_F(ContenderIdentityTest, H02_H72_ATwinThatSurfacesLaterTakesOverAndTheOldSetIsForgotten) {
  wait_behind({1, 2, 3, 5, 6});
  const std::string twin = mine(4);
  tell(event::Gone{other(6)});
  listed({me_, twin, other(2), other(5)});
  looked(twin, true, 40);
  EXPECT_TRUE(owes(me_));
  EXPECT_EQ(last<action::Watch>().name, other(2));
  watched(twin);
  watched(other(2));
  tell(event::Gone{other(2)});
  proved();
  EXPECT_EQ(last<action::Grant>().name, twin);
}

TEST_F(ContenderIdentityTest, H02_ItNeverWaitsForItself) {
  tell(event::Start{});
  created(9);
  listed({me_, mine(4)});
  EXPECT_EQ(did<action::Watch>(), 0);
  looked(mine(4), true, 40);
  EXPECT_EQ(did<action::Prove>(), 1);
}

TEST_F(ContenderIdentityTest, H04_ANodeOfAnotherSessionIsForeignWhateverItsName) {
  lose_create();
  const std::string stale = mine(4);
  synced();
  listed({stale});
  looked(stale, false, 40);
  EXPECT_FALSE(owes(stale));
  ASSERT_EQ(did<action::Create>(), 1);
  EXPECT_FALSE(stale.starts_with(last<action::Create>().prefix)) << "a fresh guid";
  created(9);
  listed({me_, stale});
  EXPECT_EQ(last<action::Watch>().name, stale);
}

TEST_F(ContenderIdentityTest, H08_AStrangerWithOurGuidIsWaitedForAndNotDeleted) {
  tell(event::Start{});
  created(9);
  const std::string stranger = mine(4);
  listed({me_, stranger});
  looked(stranger, false, 40);
  EXPECT_EQ(ever<action::Owe>(), 0);
  EXPECT_EQ(last<action::Watch>().name, stranger);
}

TEST_F(ContenderIdentityTest, AFoundNodeThatIsGoneWhenLookedAtIsALoss) {
  lose_create();
  synced();
  listed({mine(4)});
  tell(event::Looked{last<action::Look>().ask, no(Code::kNoNode), false, 0});
  expect_failed(Code::kLost);
  EXPECT_TRUE(is_done());
}

TEST_F(ContenderIdentityTest, ALookWithAnUnknownAnswerIsRepeated) {
  lose_create();
  synced();
  listed({mine(4)});
  tell(event::Looked{last<action::Look>().ask, kMaybe, false, 0});
  EXPECT_EQ(did<action::Look>(), 1);
}

TEST_F(ContenderIdentityTest, ALookThatIsRefusedDecidesNothing) {
  lose_create();
  synced();
  listed({mine(4)});
  tell(event::Looked{last<action::Look>().ask, no(Code::kOverloaded), false, 0});
  EXPECT_EQ(ever<action::Create>(), 1);
  tell(event::Resumed{last<action::Pause>().ask});
  EXPECT_EQ(did<action::Sync>(), 1);
  tell(event::Cancel{Code::kTimedOut});
  synced();
  listed({mine(4)});
  looked(mine(4), true, 40);
  EXPECT_TRUE(owes(mine(4)));
  EXPECT_TRUE(is_done());
}

TEST_F(ContenderIdentityTest, H06_CancelledWhileATwinIsLookedAtBothAreOwed) {
  tell(event::Start{});
  created(9);
  listed({me_, mine(4)});
  tell(event::Cancel{Code::kTimedOut});
  EXPECT_TRUE(owes(me_));
  EXPECT_FALSE(is_done());
  looked(mine(4), true, 40);
  EXPECT_TRUE(owes(mine(4)));
  EXPECT_TRUE(is_done());
}

TEST_F(ContenderIdentityTest, H06_CancelledWhileTheCreateIsUnansweredItWaitsForTheAnswer) {
  tell(event::Start{});
  const Ask create = last<action::Create>().ask;
  tell(event::Cancel{Code::kTimedOut});
  expect_failed(Code::kTimedOut);
  EXPECT_EQ(did<action::Withdraw>(), 2);
  EXPECT_FALSE(is_done());
  tell(event::Created{create, kOk, mine(4), 40});
  EXPECT_TRUE(owes(mine(4)));
  EXPECT_TRUE(is_done());
}

TEST_F(ContenderIdentityTest, H06_CancelledAndRefusedThereIsNothingToOwe) {
  tell(event::Start{});
  tell(event::Cancel{Code::kCancelled});
  created_not(no(Code::kCancelled));
  EXPECT_EQ(ever<action::Owe>(), 0);
  EXPECT_TRUE(is_done());
}

TEST_F(ContenderIdentityTest, H06_CancelledWithAnUnknownCreateItSearchesAndOwesWhatItFinds) {
  tell(event::Start{});
  tell(event::Cancel{Code::kTimedOut});
  created_not(kMaybe);
  EXPECT_EQ(did<action::Sync>(), 1);
  synced();
  listed({mine(4), mine(5), other(6)});
  looked(mine(4), true, 40);
  looked(mine(5), false, 50);
  EXPECT_TRUE(owes(mine(4)));
  EXPECT_FALSE(owes(mine(5)));
  EXPECT_TRUE(is_done());
  EXPECT_EQ(ever<action::Create>(), 1);
}

TEST_F(ContenderIdentityTest, H06_CancelledWhileSearchingItSearchesOn) {
  lose_create();
  tell(event::Cancel{Code::kTimedOut});
  EXPECT_FALSE(is_done());
  synced();
  listed({});
  EXPECT_TRUE(is_done());
  EXPECT_EQ(ever<action::Create>(), 1);
}

TEST_F(ContenderIdentityTest, H06_ASearchThatIsRefusedFailsButGoesOnInTheBackground) {
  lose_create();
  synced();
  listed_not(no(Code::kNotAuthorized));
  expect_failed(Code::kNotAuthorized);
  EXPECT_FALSE(is_done());
  tell(event::Resumed{last<action::Pause>().ask});
  EXPECT_EQ(did<action::Sync>(), 1);
  synced();
  listed({mine(4)});
  looked(mine(4), true, 40);
  EXPECT_TRUE(owes(mine(4)));
  EXPECT_TRUE(is_done());
}

TEST_F(ContenderIdentityTest, H07_TwoAttemptsOfOneSessionHaveTwoIdentities) {
  tell(event::Start{});
  const std::string first = last<action::Create>().prefix;
  make();
  tell(event::Start{});
  EXPECT_NE(last<action::Create>().prefix, first);
}

}  // namespace
}  // namespace latchkey::queue
