#include <gtest/gtest.h>

#include "queue/lock_delay.hpp"
#include "support/contender_rig.hpp"

/// Hand-overs in a deep queue: queue/farewell.hpp.
namespace latchkey::queue {
namespace {

constexpr std::int64_t kNeighbour = 105;  ///< The czxid of other(5).
constexpr std::int64_t kLater = 200;

class ContenderFarewellTest : public ContenderRig {
 protected:
  ContenderFarewellTest() { make({.farewell_from = 2}); }

  /// Number 9 behind 1 to 5; nothing is known of our own entry since.
  void wait() {
    tell(event::Start{});
    created(9);
    listed({me_, other(1), other(2), other(3), other(4), other(5)});
    EXPECT_EQ(ever<action::Watch>(), 1);
    tell(event::Watched{watch_of(other(5)), kOk, kNeighbour});
  }
  void read(const std::string& data, std::int32_t version = 6, std::int64_t mzxid = kLater) {
    tell(event::FarewellRead{last<action::ReadFarewell>().ask, kOk, data, version, mzxid});
  }
  void read_not(Answer answer) {
    tell(event::FarewellRead{.ask = last<action::ReadFarewell>().ask, .answer = answer});
  }
  /// The holder in front said farewell, so we hold.
  void take_over() {
    wait();
    tell(event::Gone{other(5)});
    watched(me_);
    read(format_farewell(kNeighbour));
    proved();
  }
  void expect_a_list_decides() {
    ASSERT_EQ(did<action::List>(), 1);
    EXPECT_EQ(ever<action::Prove>(), 0);
    listed({me_, other(3)});
    EXPECT_EQ(ever<action::Prove>(), 0);
    EXPECT_EQ(last<action::Watch>().name, other(3));
  }
};

TEST_F(ContenderFarewellTest, H05_WhoseNeighbourLeftAsksWhetherItIsStillThereAndForAFarewell) {
  wait();
  tell(event::Gone{other(5)});
  ASSERT_EQ(did_.size(), 2U) << "in one flush";
  EXPECT_EQ(std::get<action::Watch>(did_[0]).name, me_);
  EXPECT_TRUE(std::holds_alternative<action::ReadFarewell>(did_[1]));
}

TEST_F(ContenderFarewellTest, WhoseNeighbourSaidFarewellHoldsWithoutAList) {
  take_over();
  EXPECT_EQ(ever<action::Grant>(), 1);
  EXPECT_EQ(ever<action::List>(), 1) << "the one of its create";
}

TEST_F(ContenderFarewellTest, H05_AFarewellWithoutOurOwnEntryGrantsNothing) {
  wait();
  tell(event::Gone{other(5)});
  watched(me_, no(Code::kNoNode));
  expect_failed(Code::kLost);
  EXPECT_TRUE(is_done());
  read(format_farewell(kNeighbour));
  EXPECT_TRUE(did_nothing());
}

TEST_F(ContenderFarewellTest, H05_AFarewellBeforeTheWatchOnOurselvesWaitsForIt) {
  wait();
  tell(event::Gone{other(5)});
  read(format_farewell(kNeighbour));
  EXPECT_TRUE(did_nothing());
  watched(me_, kMaybe);
  EXPECT_EQ(ever<action::Prove>(), 0);
  watched(me_);
  EXPECT_EQ(did<action::Prove>(), 1);
  EXPECT_EQ(ever<action::List>(), 1);
}

TEST_F(ContenderFarewellTest, H05_WhoMayNotWatchItselfLists) {
  wait();
  tell(event::Gone{other(5)});
  watched(me_, no(Code::kNotAuthorized));
  read(format_farewell(kNeighbour));
  EXPECT_EQ(did<action::List>(), 1);
  listed({me_});
  EXPECT_EQ(did<action::Prove>(), 1);
}

TEST_F(ContenderFarewellTest, H05_WhoseEntryGoesWhileItReadsFails) {
  wait();
  tell(event::Gone{other(5)});
  watched(me_);
  tell(event::Gone{me_});
  expect_failed(Code::kLost);
  EXPECT_TRUE(is_done());
}

TEST_F(ContenderFarewellTest, H27_H72_AnythingElseProvesNothing) {
  for (const std::string& data :
       {std::string(), format_farewell(103), format_farewell(109), std::string("a user's"),
        format_holder(kNeighbour), format_farewell(kNeighbour) + "\n"}) {
    make({.farewell_from = 2});
    all_.clear();
    wait();
    tell(event::Gone{other(5)});
    watched(me_);
    read(data);
    SCOPED_TRACE(data);
    expect_a_list_decides();
  }
}

TEST_F(ContenderFarewellTest, H72_DataFromBeforeTheNeighbourProvesNothing) {
  wait();
  tell(event::Gone{other(5)});
  watched(me_);
  read(format_farewell(kNeighbour), 0, 90);
  expect_a_list_decides();
}

TEST_F(ContenderFarewellTest, NoAnswerProvesNothing) {
  for (const Answer answer : {kMaybe, no(Code::kNotAuthorized), no(Code::kNoNode)}) {
    make({.farewell_from = 2});
    all_.clear();
    wait();
    tell(event::Gone{other(5)});
    watched(me_);
    read_not(answer);
    expect_a_list_decides();
  }
}

TEST_F(ContenderFarewellTest, H26_OfWhoVanishedBeforeItWasWatchedNothingIsKnown) {
  tell(event::Start{});
  created(9);
  listed({me_, other(1), other(2), other(3), other(4), other(5)});
  watched(other(5), no(Code::kNoNode));
  EXPECT_EQ(ever<action::ReadFarewell>(), 0);
  EXPECT_EQ(did<action::List>(), 1);
}

/// It tells by itself that it leaves, before the server knows.
TEST_F(ContenderFarewellTest, OfACompanionNothingIsKnownEither) {
  tell(event::Start{});
  created(9);
  listed({me_, other(1), other(2), other(3), other(4), other(5)});
  watched(other(5));
  tell(event::Gone{other(5)});
  EXPECT_EQ(ever<action::ReadFarewell>(), 0);
  EXPECT_EQ(did<action::List>(), 1);
}

TEST_F(ContenderFarewellTest, H34_ATouchedNeighbourIsWhoItWas) {
  wait();
  tell(event::Touched{other(5)});
  tell(event::Gone{other(5)});
  EXPECT_EQ(did<action::ReadFarewell>(), 1);
}

TEST_F(ContenderFarewellTest, BehindAFewNobodyLooksForAFarewell) {
  tell(event::Start{});
  created(9);
  listed({me_, other(4), other(5)});
  watched(me_);
  tell(event::Watched{watch_of(other(5)), kOk, kNeighbour});
  tell(event::Gone{other(5)});
  EXPECT_EQ(ever<action::ReadFarewell>(), 0);
  EXPECT_EQ(last<action::Watch>().name, other(4));
}

TEST_F(ContenderFarewellTest, WhoIsNotToldToDoesNotLookForOne) {
  make();
  wait();
  tell(event::Gone{other(5)});
  EXPECT_EQ(ever<action::ReadFarewell>(), 0);
  EXPECT_EQ(did<action::List>(), 1);
}

TEST_F(ContenderFarewellTest, H44_WhereAWriterIsAheadOnlyAListTells) {
  tell(event::Start{});
  created(9);
  listed({me_, other(1), other(2, Tag::kWrite), other(3), other(4), other(5)});
  tell(event::Watched{watch_of(other(5)), kOk, kNeighbour});
  tell(event::Gone{other(5)});
  EXPECT_EQ(ever<action::ReadFarewell>(), 0);
  EXPECT_EQ(did<action::List>(), 1);
}

TEST_F(ContenderFarewellTest, H31_WhoeverElseLeavesMeanwhileChangesNothing) {
  wait();
  tell(event::Gone{other(5)});
  for (const int number : {1, 2, 3, 4}) {
    tell(event::Gone{other(number)});
    EXPECT_TRUE(did_nothing());
  }
  watched(me_);
  EXPECT_TRUE(did_nothing());
  read("");
  EXPECT_EQ(did<action::List>(), 1);
}

TEST_F(ContenderFarewellTest, H06_WhoGivesUpWhileItReadsLeavesNothing) {
  wait();
  tell(event::Gone{other(5)});
  tell(event::Cancel{Code::kTimedOut});
  expect_failed(Code::kTimedOut);
  EXPECT_TRUE(owes(me_));
  EXPECT_TRUE(unwatched(me_));
  EXPECT_TRUE(is_done());
}

TEST_F(ContenderFarewellTest, WhoHasLookedSaysFarewellInItsTurn) {
  take_over();
  tell(event::Release{});
  ASSERT_TRUE(owes(me_));
  const auto farewell = last<action::Owe>().farewell;
  ASSERT_TRUE(farewell);
  EXPECT_EQ(farewell->data, format_farewell(109));
  EXPECT_EQ(farewell->version, 6);
}

TEST_F(ContenderFarewellTest, WhoFoundNothingSaysFarewellToo) {
  wait();
  tell(event::Gone{other(5)});
  watched(me_);
  read("", 0);
  listed({me_});
  proved();
  tell(event::Release{});
  ASSERT_TRUE(last<action::Owe>().farewell);
  EXPECT_EQ(last<action::Owe>().farewell->version, 0);
}

TEST_F(ContenderFarewellTest, WhatOthersKeepThereIsLeftAlone) {
  for (const std::string& data : {std::string("a user's"), format_holder(7), format_vanished(7)}) {
    make({.farewell_from = 2});
    all_.clear();
    wait();
    tell(event::Gone{other(5)});
    watched(me_);
    read(data);
    listed({me_});
    proved();
    tell(event::Release{});
    EXPECT_TRUE(owes(me_));
    EXPECT_FALSE(last<action::Owe>().farewell) << data;
  }
}

TEST_F(ContenderFarewellTest, AVersionThatWouldMeanAnyIsNone) {
  wait();
  tell(event::Gone{other(5)});
  watched(me_);
  read(format_farewell(kNeighbour), -1);
  proved();
  tell(event::Release{});
  EXPECT_FALSE(last<action::Owe>().farewell);
}

TEST_F(ContenderFarewellTest, WhoDidNotHaveToWaitSaysNothing) {
  hold();
  tell(event::Release{});
  ASSERT_TRUE(owes(me_));
  EXPECT_FALSE(last<action::Owe>().farewell);
}

TEST_F(ContenderFarewellTest, H27_WhoLeavesWithoutHavingHeldSaysNothing) {
  wait();
  tell(event::Gone{other(5)});
  watched(me_);
  read("");
  listed({me_, other(2)});
  tell(event::Cancel{Code::kTimedOut});
  ASSERT_TRUE(owes(me_));
  EXPECT_FALSE(last<action::Owe>().farewell);
}

TEST_F(ContenderFarewellTest, H09_WhoLosesItsLeaseSaysNothing) {
  take_over();
  tell(event::LeaseOver{});
  ASSERT_TRUE(owes(me_));
  EXPECT_FALSE(last<action::Owe>().farewell);
}

}  // namespace
}  // namespace latchkey::queue
