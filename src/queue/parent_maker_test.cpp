#include "queue/parent_maker.hpp"

#include <gtest/gtest.h>

#include "queue/test_answers.hpp"

namespace latchkey::queue {
namespace {

using Next = ParentMaker::Next;

constexpr Answer kMissing{Answer::Kind::kNo, Code::kNoNode};

TEST(ParentMaker, TriesTheDirectoryItselfFirst) {
  ParentMaker maker("/locks/a/b");
  EXPECT_EQ(maker.begin(), Next::kMake);
  EXPECT_EQ(maker.path(), "/locks/a/b");
  EXPECT_EQ(maker.made(kOk), Next::kAllThere);
}

TEST(ParentMaker, GoesUpAsFarAsNeededAndDownAgain) {
  ParentMaker maker("/locks/a/b");
  EXPECT_EQ(maker.made(kMissing), Next::kMake);
  EXPECT_EQ(maker.path(), "/locks/a");
  EXPECT_EQ(maker.made(kMissing), Next::kMake);
  EXPECT_EQ(maker.path(), "/locks");
  EXPECT_EQ(maker.made(kOk), Next::kMake);
  EXPECT_EQ(maker.path(), "/locks/a");
  EXPECT_EQ(maker.made(kOk), Next::kMake);
  EXPECT_EQ(maker.path(), "/locks/a/b");
  EXPECT_EQ(maker.made(kOk), Next::kAllThere);
}

TEST(ParentMaker, H39_NoticesThatAFreshLevelWasTakenAway) {
  ParentMaker maker("/locks/a");
  EXPECT_EQ(maker.made(kMissing), Next::kMake);
  EXPECT_EQ(maker.made(kOk), Next::kMake);
  EXPECT_EQ(maker.made(kMissing), Next::kMakeLater);
  EXPECT_EQ(maker.path(), "/locks");
  EXPECT_EQ(maker.made(kOk), Next::kMake);
  EXPECT_EQ(maker.made(kOk), Next::kAllThere);
}

TEST(ParentMaker, H39_NoticesThatTheDirectoryWasTakenAwayBeforeItWasUsed) {
  ParentMaker maker("/locks/a");
  EXPECT_EQ(maker.begin(), Next::kMake);
  EXPECT_EQ(maker.made(kOk), Next::kAllThere);
  EXPECT_EQ(maker.begin(), Next::kMakeLater);

  maker.end();

  EXPECT_EQ(maker.begin(), Next::kMake);
}

TEST(ParentMaker, BeginsWithTheWholeDirectoryEachTime) {
  ParentMaker maker("/locks/a");
  EXPECT_EQ(maker.begin(), Next::kMake);
  EXPECT_EQ(maker.made(kMissing), Next::kMake);
  EXPECT_EQ(maker.begin(), Next::kMakeLater);
  EXPECT_EQ(maker.path(), "/locks/a");
}

TEST(ParentMaker, SaysSoWhenNotEvenTheRootIsThere) {
  ParentMaker maker("/a");
  EXPECT_EQ(maker.made(kMissing), Next::kRefused);
  EXPECT_EQ(maker.refusal().code, Code::kNoNode);
  EXPECT_EQ(maker.refusal().why, "create /a: the root of this session does not exist");

  ParentMaker root("");
  EXPECT_EQ(root.begin(), Next::kRefused);
  EXPECT_EQ(root.refusal().code, Code::kNoNode);
  EXPECT_EQ(root.refusal().why, "create /: the root of this session does not exist");
}

TEST(ParentMaker, TakesALevelThatSomebodyElseMade) {
  ParentMaker maker("/locks");
  EXPECT_EQ(maker.made({Answer::Kind::kNo, Code::kNodeExists}), Next::kAllThere);
}

TEST(ParentMaker, MakesTheSameLevelAgainWhenTheAnswerWasLost) {
  ParentMaker maker("/locks/a");
  EXPECT_EQ(maker.made({Answer::Kind::kAmbiguous, Code::kConnectionLoss}), Next::kMake);
  EXPECT_EQ(maker.path(), "/locks/a");
}

TEST(ParentMaker, GivesAServerInTroubleTime) {
  ParentMaker maker("/locks/a");
  EXPECT_EQ(maker.made({Answer::Kind::kAmbiguous, Code::kServerError}), Next::kMakeLater);
  EXPECT_EQ(maker.path(), "/locks/a");
}

TEST(ParentMaker, NamesTheLevelThatWasRefused) {
  ParentMaker maker("/locks/a");
  EXPECT_EQ(maker.made(kMissing), Next::kMake);
  EXPECT_EQ(maker.made({Answer::Kind::kNo, Code::kNotAuthorized}), Next::kRefused);
  EXPECT_EQ(maker.refusal().code, Code::kNotAuthorized);
  EXPECT_EQ(maker.refusal().why, "create /locks");
}

}  // namespace
}  // namespace latchkey::queue
