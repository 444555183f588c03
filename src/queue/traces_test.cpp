#include "queue/traces.hpp"

#include <gtest/gtest.h>

#include "queue/test_answers.hpp"

namespace latchkey::queue {
namespace {

using TracesNext = Traces::Next;

// ---- The answers of a search --------------------------------------------------------------------

TEST(AfterSearch, BothAnswersAreNeeded) {
  EXPECT_EQ(after_search({}, {}), AfterSearch::kWait);
  EXPECT_EQ(after_search(kOk, {}), AfterSearch::kWait);
  EXPECT_EQ(after_search({}, kOk), AfterSearch::kWait);
  EXPECT_EQ(after_search(kOk, kOk), AfterSearch::kKnown);
}

TEST(AfterSearch, NothingCanBeThereWhereNotEvenTheDirectoryIs) {
  EXPECT_EQ(after_search(kOk, no(Code::kNoNode)), AfterSearch::kKnown);
}

TEST(AfterSearch, H02_AnAnswerThatWasLostMeansToSearchAgain) {
  EXPECT_EQ(after_search(kMaybe, {}), AfterSearch::kSearchAgain);
  EXPECT_EQ(after_search({}, kMaybe), AfterSearch::kSearchAgain);
  EXPECT_EQ(after_search(no(Code::kNotAuthorized), kMaybe), AfterSearch::kSearchAgain);
}

TEST(AfterSearch, H02_WithoutTheSyncAListProvesNothing) {
  EXPECT_EQ(after_search(no(Code::kReadOnlyServer), kOk), AfterSearch::kSyncRefused);
  EXPECT_EQ(after_search(no(Code::kNoNode), kOk), AfterSearch::kSyncRefused);
  EXPECT_EQ(after_search(kOk, no(Code::kNotAuthorized)), AfterSearch::kLookRefused);
}

// ---- What the traces are ------------------------------------------------------------------------

class TracesTest : public testing::Test {
 protected:
  static std::string node(const std::string& guid, int number) {
    return node_prefix(guid, Tag::kLock) + "000000000" + std::to_string(number);
  }
  [[nodiscard]] std::string mine(int number) const { return node(guid_, number); }

  void collect(const std::vector<std::string>& children, const std::string& known = {}) {
    traces_.collect(children, [&](const std::string& child) {
      return has_node_prefix(child, guid_, Tag::kLock) && child != known;
    });
  }
  /// Asks for whatever is unseen, with the numbers that follow.
  std::vector<std::string> look() {
    std::vector<std::string> looked_at;
    for (Traces::Trace& trace : traces_.all()) {
      if (!trace.is_unseen()) continue;
      trace.ask = ++last_ask_;
      looked_at.push_back(trace.place.name);
    }
    return looked_at;
  }

  const std::string guid_ = format_guid(1, 1);
  Ask last_ask_ = 0;
  Traces traces_;
};

TEST_F(TracesTest, OnlyWhatCarriesOurGuidAndIsNotKnownIsATrace) {
  collect({mine(1), node(format_guid(2, 2), 2), "config", mine(3)}, mine(3));

  EXPECT_EQ(look(), std::vector{mine(1)});
}

TEST_F(TracesTest, H04_AStrangerWithOurGuidIsRememberedAndNotLookedAtAgain) {
  collect({mine(1)});
  look();
  EXPECT_EQ(traces_.looked({1, kOk, false, 101}), TracesNext::kSettle);

  const Traces::Found found = traces_.settle();
  EXPECT_TRUE(found.foreign);
  EXPECT_TRUE(found.ours.empty());
  collect({mine(1)});
  EXPECT_TRUE(traces_.empty());
}

TEST_F(TracesTest, WhatIsOursComesInTheOrderOfItsNumbers) {
  collect({mine(7), mine(2)});
  look();
  EXPECT_EQ(traces_.looked({1, kOk, true, 107}), TracesNext::kWait);
  EXPECT_EQ(traces_.looked({2, kOk, true, 102}), TracesNext::kSettle);

  const Traces::Found found = traces_.settle();
  ASSERT_EQ(found.ours.size(), 2U);
  EXPECT_EQ(found.ours[0].place.name, mine(2));
  EXPECT_EQ(found.ours[0].czxid, 102);
  EXPECT_EQ(found.ours[1].place.name, mine(7));
  EXPECT_TRUE(traces_.empty());
}

TEST_F(TracesTest, WhatIsGoneWhenLookedAtWasPerhapsOurs) {
  collect({mine(1)});
  look();
  EXPECT_EQ(traces_.looked({1, no(Code::kNoNode)}), TracesNext::kSettle);

  const Traces::Found found = traces_.settle();
  EXPECT_TRUE(found.gone);
  EXPECT_FALSE(found.foreign);
}

TEST_F(TracesTest, ALookWhoseAnswerWasLostIsRepeatedAndNoOther) {
  collect({mine(1), mine(2)});
  look();

  EXPECT_EQ(traces_.looked({1, kMaybe}), TracesNext::kLookAgain);

  EXPECT_EQ(look(), std::vector{mine(1)});
}

TEST_F(TracesTest, ALookThatIsRefusedProvesNothing) {
  collect({mine(1)});
  look();
  EXPECT_EQ(traces_.looked({1, no(Code::kNotAuthorized)}), TracesNext::kUnclear);
}

TEST_F(TracesTest, AnAnswerToAnEarlierLookIsNoAnswer) {
  collect({mine(1)});
  look();
  collect({mine(1)});
  look();
  EXPECT_EQ(traces_.looked({1, kOk, true, 101}), TracesNext::kWait);
  EXPECT_EQ(traces_.looked({0, kOk, true, 101}), TracesNext::kWait);
  EXPECT_EQ(traces_.looked({2, kOk, true, 101}), TracesNext::kSettle);
}

}  // namespace
}  // namespace latchkey::queue
