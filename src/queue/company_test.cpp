#include "queue/company.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace latchkey::queue {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;
using testing::SizeIs;

std::string name_at(int number) {
  std::string digits = std::to_string(number);
  return "_c_00000000-0000-4000-8000-000000000000-lock-" + std::string(10 - digits.size(), '0') +
         digits;
}

class CompanyTest : public testing::Test {
 protected:
  void at(Company::Id id, int number) { company_.is_at(id, *parse_place(name_at(number))); }
  void at_in_place_of(Company::Id id, int number, int replaced) {
    company_.is_at(id, *parse_place(name_at(number)), name_at(replaced));
  }
  /// Two stand in line, and a list has shown them, and `others`.
  void be_listed(std::vector<std::string> others = {}) {
    come(1, 4);
    come(2, 5);
    others.insert(others.end(), {name_at(4), name_at(5)});
    company_.listed(others);
    company_.holds(1);
    static_cast<void>(company_.take_due());
  }
  void come(Company::Id id, int number) {
    static_cast<void>(company_.enters(id));
    at(id, number);
  }

  Company company_;
};

TEST_F(CompanyTest, WhoIsAloneLooksByItself) {
  EXPECT_FALSE(company_.enters(1));
  at(1, 7);
  EXPECT_THAT(company_.take_due(), IsEmpty());
  EXPECT_EQ(company_.known_to(1), std::nullopt);
  EXPECT_EQ(company_.ahead_of(1), std::nullopt);
}

TEST_F(CompanyTest, WhoComesLaterWaitsUntilTheOneAheadHoldsOrLeaves) {
  EXPECT_FALSE(company_.enters(1));
  EXPECT_TRUE(company_.enters(2));
  EXPECT_TRUE(company_.enters(3));
  at(1, 7);
  at(2, 9);
  at(3, 10);
  EXPECT_THAT(company_.take_due(), IsEmpty());
  EXPECT_THAT(company_.ahead_of(3), Optional(name_at(9)));

  company_.holds(1);
  EXPECT_THAT(company_.take_due(), ElementsAre(2));
  company_.leaves(1);
  EXPECT_THAT(company_.take_due(), IsEmpty());
  company_.leaves(2);
  EXPECT_THAT(company_.take_due(), ElementsAre(3));
  EXPECT_THAT(company_.take_due(), IsEmpty());
}

TEST_F(CompanyTest, ThoseWhoseTurnIsNearAreToldOnceAndWhoIsFartherBackLater) {
  for (Company::Id id = 1; id <= 40; ++id) come(id, static_cast<int>(id));
  company_.holds(1);
  EXPECT_THAT(company_.take_due(), ElementsAre(2));

  const std::vector<Company::Id> near = company_.take_near();
  ASSERT_THAT(near, SizeIs(30));
  EXPECT_EQ(near.front(), 3U) << "the one before is due";
  EXPECT_EQ(near.back(), 32U);
  EXPECT_THAT(company_.take_near(), IsEmpty());
  company_.leaves(1);
  EXPECT_THAT(company_.take_near(), ElementsAre(33));
}

TEST_F(CompanyTest, WhoseCreateIsAnsweredWhenTheOthersHaveLeftIsDueAtOnce) {
  come(1, 7);
  EXPECT_TRUE(company_.enters(2));
  company_.leaves(1);
  EXPECT_THAT(company_.take_due(), IsEmpty());
  at(2, 8);
  EXPECT_THAT(company_.take_due(), ElementsAre(2));
}

TEST_F(CompanyTest, WhenSomebodyInTheMiddleGivesUpTheNextFollowsTheHolder) {
  come(1, 1);
  come(2, 2);
  come(3, 3);
  company_.holds(1);
  EXPECT_THAT(company_.take_due(), ElementsAre(2));
  company_.leaves(2);
  EXPECT_THAT(company_.take_due(), ElementsAre(3));
}

TEST_F(CompanyTest, OneListServesEverybodyWhoIsInIt) {
  come(1, 1);
  come(2, 4);
  come(3, 6);
  come(4, 8);
  company_.listed({name_at(6), "stranger", name_at(2), name_at(4), name_at(1)});

  EXPECT_THAT(company_.known_to(2), Optional(ElementsAre(name_at(1), name_at(2), name_at(4))));
  EXPECT_EQ(company_.known_to(4), std::nullopt) << "it came after the list";
  company_.leaves(1);
  company_.gone(name_at(2));
  EXPECT_THAT(company_.known_to(3), Optional(ElementsAre(name_at(4), name_at(6))));
}

TEST_F(CompanyTest, BehindAHolderAloneThereIsNothingToWaitFor) {
  come(1, 1);
  company_.holds(1);
  EXPECT_FALSE(company_.enters(2));
  at(2, 2);
  EXPECT_TRUE(company_.enters(3));
  for (Company::Id one = 1; one <= 3; ++one) company_.leaves(one);
  EXPECT_FALSE(company_.enters(4));
  EXPECT_TRUE(company_.enters(5)) << "nobody holds any more";
}

/// Numbers of a directory that was made anew say nothing about the old one's.
TEST_F(CompanyTest, H39_WhoHoldsInAnOldDirectoryProvesNothingAboutTheNew) {
  come(1, 2);
  come(2, 3);
  company_.listed({name_at(0), name_at(1), name_at(3)});
  company_.holds(1);
  EXPECT_THAT(company_.known_to(2), Optional(ElementsAre(name_at(0), name_at(1), name_at(3))));
}

TEST_F(CompanyTest, H35_AnotherEntryOfOnesOwnNumberIsShown) {
  come(1, 5);
  come(2, 6);
  const std::string twin = "_c_ffffffff-0000-4000-8000-000000000000-lock-0000000005";
  company_.listed({name_at(5), twin});
  EXPECT_THAT(company_.known_to(1), Optional(ElementsAre(name_at(5), twin)));
}

TEST_F(CompanyTest, WhoHoldsProvesThatEverybodyAheadIsGone) {
  come(1, 4);
  come(2, 6);
  company_.listed({name_at(1), name_at(2), name_at(4), name_at(5), name_at(6)});
  company_.holds(1);
  EXPECT_THAT(company_.known_to(2), Optional(ElementsAre(name_at(4), name_at(5), name_at(6))));
}

TEST_F(CompanyTest, AListThatShowsASemaphoreServesNobody) {
  come(1, 1);
  come(2, 2);
  company_.listed({name_at(1), name_at(2), std::string(kLeases)});
  EXPECT_EQ(company_.known_to(2), std::nullopt);
}

/// A writer and the reader it became have one number between them.
TEST_F(CompanyTest, H44_TwoEntriesOfOneNumberAreTwo) {
  come(1, 9);
  come(2, 10);
  const std::string writer = "_c_00000000-0000-4000-8000-000000000000-__WRIT__0000000003";
  const std::string reader = "_c_00000000-0000-4000-8000-000000000000-__READ__0000000003";
  company_.listed({writer, reader, name_at(9)});
  company_.gone(reader);
  EXPECT_THAT(company_.known_to(1), Optional(ElementsAre(writer, name_at(9))));
  company_.gone(writer);
  EXPECT_THAT(company_.known_to(1), Optional(ElementsAre(writer, name_at(9)))) << "it may read on";
}

TEST_F(CompanyTest, WhoComesBackRightBehindTheLastNeedsNoList) {
  be_listed();
  company_.leaves(1);
  EXPECT_THAT(company_.left(), ElementsAre(name_at(4)));
  static_cast<void>(company_.enters(3));
  at_in_place_of(3, 6, 4);
  EXPECT_THAT(company_.known_to(3), Optional(ElementsAre(name_at(5), name_at(6))));

  company_.holds(2);
  company_.leaves(2);
  static_cast<void>(company_.enters(4));
  at_in_place_of(4, 7, 5);
  EXPECT_THAT(company_.known_to(4), Optional(ElementsAre(name_at(6), name_at(7))));
  EXPECT_THAT(company_.left(), IsEmpty());
}

TEST_F(CompanyTest, H72_WhoMayHaveAStrangerBetweenListsAndSoDoesWhoeverComesAfterIt) {
  be_listed();
  company_.leaves(1);
  static_cast<void>(company_.enters(3));
  at_in_place_of(3, 7, 4);
  EXPECT_EQ(company_.known_to(3), std::nullopt);

  company_.leaves(2);
  static_cast<void>(company_.enters(4));
  at_in_place_of(4, 8, 5);
  EXPECT_EQ(company_.known_to(4), std::nullopt);
}

TEST_F(CompanyTest, WhoeverIsNotOfTheCompanyCountsAsWell) {
  const std::string stranger = "_c_00000000-0000-4000-8000-000000000001-jobs_lock_0000000006";
  be_listed({stranger});
  company_.leaves(1);
  static_cast<void>(company_.enters(3));
  at_in_place_of(3, 7, 4);
  EXPECT_THAT(company_.known_to(3), Optional(ElementsAre(name_at(5), stranger, name_at(7))));
}

TEST_F(CompanyTest, H39_WhoReplacesWhatNoListHasShownMayBeInAnotherDirectory) {
  be_listed();
  come(3, 6);
  company_.leaves(3);
  EXPECT_THAT(company_.left(), IsEmpty());
  static_cast<void>(company_.enters(4));
  at_in_place_of(4, 6, 6);
  EXPECT_EQ(company_.known_to(4), std::nullopt);
  static_cast<void>(company_.enters(5));
  at(5, 6);
  EXPECT_EQ(company_.known_to(5), std::nullopt) << "and so may who replaces nothing";
}

TEST_F(CompanyTest, AListBetweenReleaseAndDeleteShowsTheOldEntryOnce) {
  be_listed();
  company_.leaves(1);
  static_cast<void>(company_.enters(3));
  company_.listed({name_at(4), name_at(5)});
  EXPECT_THAT(company_.left(), IsEmpty());
  at_in_place_of(3, 6, 4);
  EXPECT_THAT(company_.known_to(3), Optional(ElementsAre(name_at(5), name_at(6))));
}

TEST_F(CompanyTest, WhatWasGivenUpBeforeTheListCameAndIsAheadOfTheHolderIsKnownAsWell) {
  be_listed();
  company_.leaves(1);
  static_cast<void>(company_.enters(3));
  company_.listed({name_at(4), name_at(5)});
  company_.holds(2);
  at_in_place_of(3, 6, 4);
  EXPECT_THAT(company_.known_to(3), Optional(ElementsAre(name_at(5), name_at(6))));
}

TEST_F(CompanyTest, OfThoseWhoNeverComeBackOnlySomeAreKept) {
  std::vector<std::string> names;
  for (int i = 1; i <= 100; ++i) {
    come(static_cast<Company::Id>(i), i);
    names.push_back(name_at(i));
  }
  company_.listed(names);
  for (Company::Id id = 1; id <= 99; ++id) company_.leaves(id);
  EXPECT_LT(company_.left().size(), 99U);
  EXPECT_EQ(company_.left().back(), name_at(99));
}

TEST_F(CompanyTest, WhoEntersAgainHasNoPlaceUntilItIsAnswered) {
  come(1, 1);
  come(2, 2);
  EXPECT_TRUE(company_.enters(1));
  EXPECT_EQ(company_.owner_of(name_at(1)), std::nullopt);
  EXPECT_THAT(company_.owner_of(name_at(2)), Optional(2));
  EXPECT_THAT(company_.take_due(), ElementsAre(2));
  at(1, 3);
  EXPECT_THAT(company_.take_due(), IsEmpty());
  EXPECT_THAT(company_.ahead_of(1), Optional(name_at(2)));
}

TEST_F(CompanyTest, WhoGoesAloneIsNeverDue) {
  come(1, 1);
  come(2, 2);
  company_.goes_alone(2);
  company_.leaves(1);
  EXPECT_THAT(company_.take_due(), IsEmpty());
}

}  // namespace
}  // namespace latchkey::queue
