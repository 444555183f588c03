#include "queue/entry.hpp"

#include <gtest/gtest.h>

namespace latchkey::queue {
namespace {

constexpr ListOutcome kAllLists[] = {ListOutcome::kShowsOwn,  ListOutcome::kLacksOwn,
                                     ListOutcome::kNoNode,    ListOutcome::kRefused,
                                     ListOutcome::kAmbiguous, ListOutcome::kUnanswered};

TEST(Entry, H71_OnlyAnAnsweredCreateAndAListWithOurNodeDecide) {
  for (const CreateOutcome create :
       {CreateOutcome::kUnanswered, CreateOutcome::kOk, CreateOutcome::kNoNode,
        CreateOutcome::kNodeExists, CreateOutcome::kRefused, CreateOutcome::kRolledBack,
        CreateOutcome::kAmbiguous}) {
    for (const ListOutcome list : kAllLists) {
      const bool decides = after_pair(create, list) == AfterPair::kDecide;
      EXPECT_EQ(decides, create == CreateOutcome::kOk && list == ListOutcome::kShowsOwn);
    }
  }
}

TEST(Entry, H71_BehindACreateThatWasAnsweredTheListTells) {
  const auto after = [](ListOutcome list) { return after_pair(CreateOutcome::kOk, list); };
  EXPECT_EQ(after(ListOutcome::kUnanswered), AfterPair::kWait);
  EXPECT_EQ(after(ListOutcome::kLacksOwn), AfterPair::kLost);
  EXPECT_EQ(after(ListOutcome::kNoNode), AfterPair::kLost);
  EXPECT_EQ(after(ListOutcome::kAmbiguous), AfterPair::kListAgain);
  EXPECT_EQ(after(ListOutcome::kRefused), AfterPair::kReportList);
}

TEST(Entry, H71_BehindAnyOtherCreateTheListIsNotEvenRead) {
  for (const ListOutcome list : kAllLists) {
    EXPECT_EQ(after_pair(CreateOutcome::kUnanswered, list), AfterPair::kWait);
    EXPECT_EQ(after_pair(CreateOutcome::kNoNode, list), AfterPair::kMakeParents);
    EXPECT_EQ(after_pair(CreateOutcome::kNodeExists, list), AfterPair::kCounterEnded);
    EXPECT_EQ(after_pair(CreateOutcome::kRefused, list), AfterPair::kReportCreate);
    EXPECT_EQ(after_pair(CreateOutcome::kRolledBack, list), AfterPair::kEnterAgain);
    EXPECT_EQ(after_pair(CreateOutcome::kAmbiguous, list), AfterPair::kSearch);
  }
}

}  // namespace
}  // namespace latchkey::queue
