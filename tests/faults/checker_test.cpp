#include "checker.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/temp_dir.hpp"

/// The checker is trusted with the verdict over the product, so every rule is shown to fire on a
/// history that breaks it, and only on that.
namespace latchkey::faults {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::int64_t kWriter = 1000;

class FaultChecker : public testing::Test {
 protected:
  Rules rules_{
      {{"mutex", {1}}, {"rw", {kWriter}}, {"semaphore", {3, Order::kNone}}, {"election", {1}}},
      {},
      {}};
  std::vector<Event> events_;

  void add(std::int64_t at, std::string who, std::uint64_t operation, What what,
           std::int64_t number = 0, std::string text = "-") {
    events_.push_back({at, std::move(who), operation, lock_, what, number, std::move(text)});
  }

  /// A whole operation on lock_ whose belief is proven from `from` to `to`.
  void hold(const std::string& who, std::uint64_t operation, std::int64_t token, std::int64_t from,
            std::int64_t to, std::int64_t weight = 1) {
    add(from - 2, who, operation, What::kWant, weight);
    add(from - 1, who, operation, What::kGranted, token);
    add(from, who, operation, What::kHolds, token);
    add(to, who, operation, What::kHolds, token);
    add(to + 1, who, operation, What::kReleased);
  }

  [[nodiscard]] std::vector<std::string> broken() {
    std::stable_sort(events_.begin(), events_.end(),
                     [](const Event& a, const Event& b) { return a.at_ns < b.at_ns; });
    std::vector<std::string> result;
    for (const Violation& violation : check(events_, rules_)) result.push_back(violation.rule);
    return result;
  }

  std::string lock_ = "mutex";
};

TEST_F(FaultChecker, AcceptsHoldsOneAfterTheOther) {
  hold("w0.0", 1, 5, 100, 200);
  hold("w1.0", 1, 6, 210, 300);
  hold("w0.0", 2, 9, 310, 400);

  EXPECT_THAT(broken(), IsEmpty());
}

TEST_F(FaultChecker, CatchesOverlappingHolds) {
  hold("w0.0", 1, 5, 100, 200);
  hold("w1.0", 1, 6, 199, 300);

  EXPECT_THAT(broken(), ElementsAre("exclusion"));
}

TEST_F(FaultChecker, CatchesAHoldInsideAnother) {
  hold("w0.0", 1, 5, 100, 200);
  hold("w1.0", 1, 6, 150, 160);

  EXPECT_THAT(broken(), ElementsAre("exclusion"));
}

TEST_F(FaultChecker, AStoppedProcessProvesNothingBeyondItsLastWord) {
  add(1, "w0.0", 1, What::kWant, 1);
  add(2, "w0.0", 1, What::kGranted, 5);
  add(3, "w0.0", 1, What::kHolds, 5);
  hold("w1.0", 1, 6, 100, 200);
  add(150, "w0.0", 1, What::kLost);

  EXPECT_THAT(broken(), IsEmpty());
}

TEST_F(FaultChecker, CatchesAProcessThatBelievesOnAfterAPause) {
  add(1, "w0.0", 1, What::kWant, 1);
  add(2, "w0.0", 1, What::kGranted, 5);
  add(3, "w0.0", 1, What::kHolds, 5);
  hold("w1.0", 1, 6, 100, 200);
  add(150, "w0.0", 1, What::kHolds, 5);

  EXPECT_THAT(broken(), ElementsAre("exclusion"));
}

TEST_F(FaultChecker, CatchesATokenThatGoesDown) {
  hold("w0.0", 1, 6, 100, 200);
  hold("w1.0", 1, 5, 300, 400);

  EXPECT_THAT(broken(), ElementsAre("order"));
}

TEST_F(FaultChecker, CatchesATokenThatIsGrantedTwice) {
  hold("w0.0", 1, 5, 100, 200);
  add(290, "w1.0", 1, What::kWant, 1);
  add(300, "w1.0", 1, What::kGranted, 5);

  EXPECT_THAT(broken(), ElementsAre("token"));
}

TEST_F(FaultChecker, LetsReadersShareAndReorderAmongThemselves) {
  lock_ = "rw";
  hold("w0.0", 1, 6, 100, 200, 1);
  hold("w1.0", 1, 5, 150, 300, 1);
  hold("w2.0", 1, 7, 310, 400, kWriter);
  hold("w0.0", 2, 8, 410, 500, 1);

  EXPECT_THAT(broken(), IsEmpty());
}

TEST_F(FaultChecker, CatchesAReaderWithAWriter) {
  lock_ = "rw";
  hold("w0.0", 1, 5, 100, 200, 1);
  hold("w1.0", 1, 6, 150, 300, kWriter);

  EXPECT_THAT(broken(), ElementsAre("exclusion"));
}

TEST_F(FaultChecker, CatchesAReaderThatOvertookAWriter) {
  lock_ = "rw";
  hold("w0.0", 1, 7, 100, 200, kWriter);
  hold("w1.0", 1, 6, 300, 400, 1);

  EXPECT_THAT(broken(), ElementsAre("order"));
}

TEST_F(FaultChecker, CatchesAWriterThatOvertookAReader) {
  lock_ = "rw";
  hold("w0.0", 1, 7, 100, 200, 1);
  hold("w1.0", 1, 6, 300, 400, kWriter);

  EXPECT_THAT(broken(), ElementsAre("order"));
}

TEST_F(FaultChecker, ADowngradedWriterReadsOnUnderItsToken) {
  lock_ = "rw";
  hold("w0.0", 1, 5, 100, 200, kWriter);
  add(201, "w0.0", 2, What::kWant, 1, std::string(kDowngrade));
  add(202, "w0.0", 2, What::kGranted, 5);
  add(203, "w0.0", 2, What::kHolds, 5);
  hold("w1.0", 1, 7, 300, 400, kWriter);
  EXPECT_THAT(broken(), IsEmpty());

  add(350, "w0.0", 2, What::kHolds, 5);

  EXPECT_THAT(broken(), ElementsAre("exclusion"));
}

TEST_F(FaultChecker, CountsPermits) {
  lock_ = "semaphore";
  hold("w0.0", 1, 7, 100, 200, 2);
  hold("w1.0", 1, 6, 150, 300, 1);
  EXPECT_THAT(broken(), IsEmpty());

  hold("w2.0", 1, 8, 160, 170, 1);

  EXPECT_THAT(broken(), ElementsAre("exclusion"));
}

TEST_F(FaultChecker, CatchesAMissingOutcomeOfAProcessThatEndedInOrder) {
  add(1, "w0.0", 1, What::kWant, 1);
  EXPECT_THAT(broken(), IsEmpty()) << "it may have been killed";

  add(2, "w0.0", 0, What::kEnded);

  EXPECT_THAT(broken(), ElementsAre("outcome"));
}

TEST_F(FaultChecker, CatchesAnOutcomeThatNeverCame) {
  add(1, "w0.0", 1, What::kWant, 1);
  add(2, "w0.0", 1, What::kSilent);

  EXPECT_THAT(broken(), ElementsAre("outcome"));
}

TEST_F(FaultChecker, CatchesADoubledOutcome) {
  add(1, "w0.0", 1, What::kWant, 1);
  add(2, "w0.0", 1, What::kFailed, 0, "TimedOut");
  add(3, "w0.0", 1, What::kFailed, 0, "TimedOut");

  EXPECT_THAT(broken(), ElementsAre("outcome"));
}

TEST_F(FaultChecker, CatchesAGrantAfterAFailure) {
  add(1, "w0.0", 1, What::kWant, 1);
  add(2, "w0.0", 1, What::kFailed, 0, "TimedOut");
  add(3, "w0.0", 1, What::kGranted, 5);

  EXPECT_THAT(broken(), ElementsAre("outcome"));
}

TEST_F(FaultChecker, CatchesAGrantNobodyAskedFor) {
  add(3, "w0.0", 1, What::kGranted, 5);

  EXPECT_THAT(broken(), ElementsAre("outcome"));
}

TEST_F(FaultChecker, CatchesAHoldThatComesBackAfterItsLoss) {
  add(1, "w0.0", 1, What::kWant, 1);
  add(2, "w0.0", 1, What::kGranted, 5);
  add(3, "w0.0", 1, What::kLost);
  add(4, "w0.0", 1, What::kHolds, 5);

  EXPECT_THAT(broken(), ElementsAre("loss"));
}

TEST_F(FaultChecker, CatchesAnOlderTokenAcceptedAfterANewerOne) {
  add(1, "w0.0", 1, What::kAccepted, 5);
  add(2, "w0.0", 1, What::kAccepted, 5);
  add(3, "w1.0", 1, What::kAccepted, 7);
  EXPECT_THAT(broken(), IsEmpty());

  add(4, "w0.0", 1, What::kAccepted, 6);

  EXPECT_THAT(broken(), ElementsAre("fence"));
}

TEST_F(FaultChecker, CatchesARefusalOfAHolder) {
  hold("w0.0", 1, 5, 100, 200);
  add(201, "w0.0", 1, What::kRefused, 5);
  EXPECT_THAT(broken(), IsEmpty()) << "it was over by then, for all we know";

  add(150, "w0.0", 1, What::kRefused, 5);

  EXPECT_THAT(broken(), ElementsAre("fence"));
}

TEST_F(FaultChecker, CatchesANumberThatIsAcknowledgedTwice) {
  hold("w0.0", 1, 5, 100, 200);
  hold("w1.0", 1, 6, 300, 400);
  add(150, "w0.0", 1, What::kCounted, 41);
  add(350, "w1.0", 1, What::kCounted, 41);

  EXPECT_THAT(broken(), ElementsAre("ledger"));
}

TEST_F(FaultChecker, CatchesAnOlderTokenThatCountsAfterANewerOne) {
  hold("w0.0", 1, 5, 100, 200);
  hold("w1.0", 1, 6, 300, 400);
  add(350, "w1.0", 1, What::kCounted, 41);
  add(410, "w0.0", 1, What::kCounted, 42);

  EXPECT_THAT(broken(), ElementsAre("ledger"));
}

TEST_F(FaultChecker, CatchesAnAcknowledgedNumberThatIsGoneInTheEnd) {
  hold("w0.0", 1, 5, 100, 200);
  add(150, "w0.0", 1, What::kCounted, 41);
  rules_.ledger = 41;
  EXPECT_THAT(broken(), IsEmpty());

  rules_.ledger = 40;

  EXPECT_THAT(broken(), ElementsAre("ledger"));
}

TEST_F(FaultChecker, CatchesAWorkerThatIsNotServedInTheEnd) {
  rules_.locks = {{"mutex", {1}}};
  rules_.workers = {"w0", "w1"};
  for (const char* who : {"w0.3", "w1.0"}) {
    add(1, who, 1, What::kWant, 1, std::string(kSettle));
  }
  add(2, "w0.3", 1, What::kGranted, 5);
  add(3, "w1.0", 1, What::kFailed, 0, "TimedOut");

  EXPECT_THAT(broken(), ElementsAre("liveness"));
}

TEST_F(FaultChecker, ShowsTheLinesOfAllWhoTakePart) {
  hold("w0.0", 1, 5, 100, 200);
  hold("w1.0", 1, 6, 150, 300);
  ASSERT_THAT(broken(), ElementsAre("exclusion"));

  std::ostringstream shown;
  shown << check(events_, rules_).front();

  EXPECT_THAT(shown.str(), testing::StartsWith("exclusion: mutex is held by 2 at once"));
  EXPECT_THAT(shown.str(), testing::HasSubstr("100 w0.0 1 mutex holds 5 -\n"));
  EXPECT_THAT(shown.str(), testing::HasSubstr("150 w1.0 1 mutex holds 6 -\n"));
}

TEST(FaultHistory, ALineReadsBackAsWhatWasWritten) {
  for (int what = 0; what <= static_cast<int>(What::kEnded); ++what) {
    const Event event{12, "w0.1", 7, "rw", static_cast<What>(what), -3, "two words"};
    std::string line = to_line(event);
    line.pop_back();

    EXPECT_EQ(from_line(line), event);
  }
}

TEST(FaultHistory, WhatIsNotALineIsNothing) {
  for (const char* line : {"", "12", "x w0.1 7 rw holds 3 -", "12 w0.1 7 rw sleeps 3 -",
                           "12 w0.1 7 rw holds 3", "12 w0.1 7 rw holds 3x -"}) {
    EXPECT_EQ(from_line(line), std::nullopt) << line;
  }
}

TEST(FaultHistory, AFileTornByAKillIsReadUpToItsLastWholeLine) {
  const test_support::TempDir folder;
  const Event first{12, "w0.1", 7, "rw", What::kWant, 1, "-"};
  const Event second{11, "w1.0", 7, "rw", What::kWant, 1, "-"};
  HistoryWriter(folder.path() / "w0.1").add(first);
  HistoryWriter(folder.path() / "w1.0").add(second);
  std::ofstream(folder.path() / "w0.1", std::ios::app) << "13 w0.1 7 rw gra";

  EXPECT_THAT(read_histories(folder.path()), ElementsAre(second, first));
}

TEST(FaultHistory, ALineThatIsNoneIsAnErrorWithItsFile) {
  const test_support::TempDir folder;
  std::ofstream(folder.path() / "w0.1") << "garbage\n";

  EXPECT_THAT([&] { static_cast<void>(read_histories(folder.path())); },
              testing::ThrowsMessage<std::runtime_error>(testing::HasSubstr("w0.1")));
}

}  // namespace
}  // namespace latchkey::faults
