#include "queue/estate.hpp"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/contender_rig.hpp"

namespace latchkey::queue {
namespace {

using testing::ElementsAre;

Place place(std::int32_t number) { return {.name = "heir", .number = number}; }

TEST(Estate, TheHeirKnowsWhoStoodBehindAndItself) {
  EXPECT_THAT(inherit({"old", 7, {"a", "b"}}, place(8)).children, ElementsAre("a", "b", "heir"));
}

TEST(Estate, IsWholeWhenNobodyCameInBetween) {
  EXPECT_TRUE(inherit({"old", 7, {}}, place(8)).whole);
  EXPECT_FALSE(inherit({"old", 7, {}}, place(9)).whole);
  EXPECT_FALSE(inherit({"old", 7, {}}, place(7)).whole);
  constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
  EXPECT_FALSE(inherit({"old", kMost, {}}, place(std::numeric_limits<std::int32_t>::min())).whole);
}

class ContenderEstateTest : public ContenderRig {
 protected:
  void inherited(std::vector<std::string> children, bool whole) {
    tell(event::Listed{last<action::List>().ask, kOk, std::move(children), true, whole});
  }
};

TEST_F(ContenderEstateTest, AHolderLeavesWhatItsLastListHasShown) {
  tell(event::Start{});
  created(9);
  listed({other(12), me_, other(15), other(11)});
  proved();
  tell(event::Release{});

  const Estate estate = last<action::Bequeath>().estate;
  EXPECT_EQ(estate.entry, me_);
  EXPECT_EQ(estate.last, 15);
  EXPECT_EQ(estate.behind.size(), 3U);
  EXPECT_EQ(estate.behind.back(), other(15)) << "the last one last";
  EXPECT_TRUE(owes(me_));
}

TEST_F(ContenderEstateTest, OthersWithAnotherNameCountAsWhoCameLaterAndAreNotLeft) {
  const std::string named = node_prefix(format_guid(7, 7), Tag::kLock, "jobs") + digits(20);
  tell(event::Start{});
  created(9);
  listed({me_, named, other(12)});
  proved();
  tell(event::Release{});

  EXPECT_EQ(last<action::Bequeath>().estate.last, 20);
  EXPECT_THAT(last<action::Bequeath>().estate.behind, ElementsAre(other(12)));
}

TEST_F(ContenderEstateTest, WhoCameBehindOthersAndKnowsOfNobodySinceLeavesNothing) {
  wait_behind({8});
  tell(event::Gone{other(8)});
  proved();
  tell(event::Release{});

  EXPECT_EQ(ever<action::Grant>(), 1);
  EXPECT_EQ(ever<action::Bequeath>(), 0);
}

TEST_F(ContenderEstateTest, BehindVeryManyNothingIsLeft) {
  tell(event::Start{});
  created(9);
  std::vector<std::string> children{me_};
  for (int i = 0; i <= static_cast<int>(kMostBehind); ++i) children.push_back(other(10 + i));
  listed(children);
  proved();
  tell(event::Release{});

  EXPECT_EQ(ever<action::Bequeath>(), 0);
}

TEST_F(ContenderEstateTest, WhoEndsInAnotherWayLeavesNothing) {
  hold();
  tell(event::LeaseOver{});
  EXPECT_EQ(ever<action::Bequeath>(), 0);
}

TEST_F(ContenderEstateTest, AWholeEstateGrantsWithoutAList) {
  tell(event::Start{});
  created(9);
  inherited({me_}, true);
  EXPECT_EQ(did<action::Prove>(), 1);
  EXPECT_EQ(ever<action::List>(), 1) << "the one that was answered so";
}

TEST_F(ContenderEstateTest, H72_OneThatIsNotWholeGrantsNothing) {
  tell(event::Start{});
  created(9);
  inherited({me_}, false);
  EXPECT_EQ(ever<action::Prove>(), 0);
  ASSERT_EQ(did<action::List>(), 1);
  listed({me_, other(8)});
  EXPECT_EQ(last<action::Watch>().name, other(8));
}

TEST_F(ContenderEstateTest, H72_WhoseKnownOnesHaveAllLeftListsIfThereMayBeOthers) {
  tell(event::Start{});
  created(9);
  inherited({me_, other(5)}, false);
  watched(other(5));
  tell(event::Gone{other(5)});
  EXPECT_EQ(ever<action::Prove>(), 0);
  ASSERT_EQ(did<action::List>(), 1);
  listed({me_});
  EXPECT_EQ(did<action::Prove>(), 1);
}

TEST_F(ContenderEstateTest, TheOneWhoStoodLastIsWatchedBeforeOurNumberIsKnown) {
  tell(event::Start{});
  tell(event::Foreseen{other(8)});
  EXPECT_EQ(last<action::Watch>().name, other(8));
  created(9);
  inherited({other(8), me_}, true);
  watched(other(8));
  EXPECT_EQ(all<action::Watch>().size(), 2U) << "that one and its own";
  watched(me_);
  tell(event::Gone{other(8)});
  EXPECT_EQ(did<action::Prove>(), 1);
}

TEST_F(ContenderEstateTest, H29_WhoeverIsNearerIsWatchedInItsPlace) {
  tell(event::Start{});
  tell(event::Foreseen{other(6)});
  created(9);
  listed({other(6), other(8), me_});
  EXPECT_TRUE(unwatched(other(6)));
  EXPECT_EQ(last<action::Watch>().name, other(8));
}

TEST_F(ContenderEstateTest, H26_OneWhoHasLeftByThenIsForgotten) {
  tell(event::Start{});
  tell(event::Foreseen{other(8)});
  created(9);
  watched(other(8), no(Code::kNoNode));
  listed({me_});
  EXPECT_EQ(did<action::Prove>(), 1);
  EXPECT_FALSE(unwatched(other(8)));
}

TEST_F(ContenderEstateTest, OneThatMayNotBeReadIsNoReasonToWait) {
  tell(event::Start{});
  tell(event::Foreseen{other(8)});
  created(9);
  watched(other(8), no(Code::kNotAuthorized));
  EXPECT_EQ(ever<action::Pause>(), 0);
  listed({me_});
  EXPECT_EQ(did<action::Prove>(), 1);
}

TEST_F(ContenderEstateTest, H29_WhoGivesUpWhileItEntersLeavesNoWatchBehind) {
  tell(event::Start{});
  tell(event::Foreseen{other(8)});
  tell(event::Cancel{Code::kTimedOut});
  EXPECT_TRUE(unwatched(other(8)));
}

TEST_F(ContenderEstateTest, NothingIsForeseenForOneThatHasEntered) {
  hold();
  tell(event::Foreseen{other(8)});
  EXPECT_TRUE(did_nothing());
}

}  // namespace
}  // namespace latchkey::queue
