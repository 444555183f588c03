#include "recipes/companions.hpp"

#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "session/machine_rig.hpp"

namespace latchkey::recipes {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string name_of(int number) {
  return "_c_00000000-0000-4000-8000-000000000000-lock-000000000" + std::to_string(number);
}

class CompanionsTest : public testing::Test {
 protected:
  /// Writes down what it hears.
  class One : public Companion {
   public:
    One(CompanionsTest& test, int number)
        : company_(test.company_),
          place_(queue::parse_place(name_of(number))),
          id(company_->join(*this)) {}

    [[nodiscard]] const std::vector<std::string>& extra_tags() const override { return tags_; }
    [[nodiscard]] const std::optional<queue::Place>& stands_at() const override { return place_; }
    void is_due(std::optional<std::vector<std::string>> known) override {
      story.emplace_back(known ? "due" : "due, and nothing is known");
      if (when_due) when_due();
    }
    void companion_left(const std::string& name) override { story.push_back("left " + name); }
    void watch_yourself() override { story.emplace_back("watch yourself"); }

    bool enters() { return company_->enters(id); }
    void is_placed() { company_->is_at(id, *place_, {}); }
    void comes() {
      static_cast<void>(enters());
      is_placed();
    }
    void holds() { company_->holds(id); }
    void leaves() { company_->leaves(id); }
    /// As a contender does before its delete is owed.
    void gives_up() { place_.reset(); }

   private:
    const std::vector<std::string> tags_;
    const std::shared_ptr<Companions> company_;
    std::optional<queue::Place> place_;

   public:
    const Companions::Id id;
    std::vector<std::string> story;
    std::function<void()> when_due;
  };

  session::Rig rig_;
  std::shared_ptr<Companions> company_ = std::make_shared<Companions>(rig_.machine);
};

TEST_F(CompanionsTest, WhoIsAloneIsToldNothingAndKnownByItsEntry) {
  One one(*this, 1);
  EXPECT_FALSE(one.enters());
  EXPECT_FALSE(company_->is_known_by(one.id, name_of(1)));
  one.is_placed();
  one.holds();
  EXPECT_TRUE(company_->is_known_by(one.id, name_of(1)));
  EXPECT_FALSE(company_->is_known_by(one.id, name_of(2))) << "a twin of its";
  EXPECT_FALSE(company_->watch(one.id, name_of(0)));
  EXPECT_EQ(company_->ahead_of(one.id), std::nullopt);
  one.leaves();
  EXPECT_THAT(one.story, IsEmpty());
}

TEST_F(CompanionsTest, WhoGivesUpItsEntryIsStillKnownByItUntilItLeaves) {
  One one(*this, 1);
  one.comes();
  one.gives_up();
  EXPECT_TRUE(company_->is_known_by(one.id, name_of(1)));
}

TEST_F(CompanionsTest, TheSecondWaitsForOneThatIsEntering) {
  One first(*this, 1);
  static_cast<void>(first.enters());
  One second(*this, 2);
  EXPECT_TRUE(second.enters());
  second.is_placed();
  EXPECT_THAT(second.story, ElementsAre("due, and nothing is known")) << "it may stand ahead";

  One third(*this, 3);
  EXPECT_TRUE(third.enters());
  first.is_placed();
  third.is_placed();
  EXPECT_EQ(company_->ahead_of(third.id), name_of(2));
}

TEST_F(CompanionsTest, TheSecondWaitsForOneThatStandsInLine) {
  One first(*this, 1);
  first.comes();
  One second(*this, 2);
  EXPECT_TRUE(second.enters());
  second.is_placed();
  EXPECT_EQ(company_->ahead_of(second.id), name_of(1));
  EXPECT_THAT(second.story, ElementsAre("watch yourself")) << "its turn is near";

  first.leaves();
  EXPECT_EQ(second.story.back(), "due, and nothing is known");
}

TEST_F(CompanionsTest, TheSecondLooksAtOnceBehindOneThatHolds) {
  One first(*this, 1);
  first.comes();
  first.holds();
  One second(*this, 2);
  EXPECT_FALSE(second.enters());
  second.is_placed();
  EXPECT_TRUE(company_->watch(second.id, name_of(1)));
  EXPECT_THAT(first.story, ElementsAre("watch yourself"));

  first.leaves();
  EXPECT_THAT(second.story, ElementsAre("left " + name_of(1)));
}

TEST_F(CompanionsTest, H09_OneWhoseLossIsBeingToldHasNoPlaceToWaitBehind) {
  One first(*this, 1);
  first.comes();
  first.holds();
  first.gives_up();
  One second(*this, 2);
  static_cast<void>(second.enters());
  second.is_placed();
  EXPECT_EQ(company_->ahead_of(second.id), std::nullopt) << "it lists, and that tells";
}

TEST_F(CompanionsTest, WhenAllHaveLeftTheNextOneIsAloneAgain) {
  One first(*this, 1);
  One second(*this, 2);
  first.comes();
  second.comes();
  first.leaves();
  second.leaves();

  One third(*this, 3);
  EXPECT_FALSE(third.enters());
  third.is_placed();
  EXPECT_TRUE(company_->is_known_by(third.id, name_of(3)));
  One fourth(*this, 4);
  EXPECT_TRUE(fourth.enters());
  fourth.is_placed();
  EXPECT_EQ(company_->ahead_of(fourth.id), name_of(3));
}

TEST_F(CompanionsTest, OneMayJoinWhileAnotherIsBeingTold) {
  One first(*this, 1);
  One second(*this, 2);
  std::unique_ptr<One> third;
  second.when_due = [&] {
    second.leaves();
    third = std::make_unique<One>(*this, 3);
    third->comes();
  };
  first.comes();
  second.comes();
  first.leaves();

  ASSERT_TRUE(third);
  EXPECT_TRUE(company_->is_known_by(third->id, name_of(3)));
}

TEST_F(CompanionsTest, WhoEndsWithTheSessionLeavesNobodyBehind) {
  auto first = std::make_unique<One>(*this, 1);
  first->comes();
  company_->forget(first->id);
  first.reset();
  One second(*this, 2);
  EXPECT_FALSE(second.enters());
}

TEST_F(CompanionsTest, AnEstateIsLeftOnce) {
  company_->bequeath({name_of(1), 1, {}});
  const auto estate = company_->take_estate();
  ASSERT_TRUE(estate);
  EXPECT_EQ(estate->entry, name_of(1));
  EXPECT_FALSE(company_->take_estate());
}

}  // namespace
}  // namespace latchkey::recipes
