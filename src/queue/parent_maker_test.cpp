#include "queue/parent_maker.hpp"

#include <gtest/gtest.h>

namespace latchkey::queue {
namespace {

using Next = ParentMaker::Next;

TEST(ParentMaker, TriesTheDirectoryItselfFirst) {
  ParentMaker maker("/locks/a/b");
  EXPECT_EQ(maker.path(), "/locks/a/b");
  EXPECT_EQ(maker.present(), Next::kAllThere);
}

TEST(ParentMaker, GoesUpAsFarAsNeededAndDownAgain) {
  ParentMaker maker("/locks/a/b");
  EXPECT_EQ(maker.missing(), Next::kMake);
  EXPECT_EQ(maker.path(), "/locks/a");
  EXPECT_EQ(maker.missing(), Next::kMake);
  EXPECT_EQ(maker.path(), "/locks");
  EXPECT_EQ(maker.present(), Next::kMake);
  EXPECT_EQ(maker.path(), "/locks/a");
  EXPECT_EQ(maker.present(), Next::kMake);
  EXPECT_EQ(maker.path(), "/locks/a/b");
  EXPECT_EQ(maker.present(), Next::kAllThere);
}

TEST(ParentMaker, H39_NoticesThatAFreshLevelWasTakenAway) {
  ParentMaker maker("/locks/a");
  EXPECT_EQ(maker.missing(), Next::kMake);
  EXPECT_EQ(maker.present(), Next::kMake);
  EXPECT_EQ(maker.missing(), Next::kPulledAway);
  EXPECT_EQ(maker.path(), "/locks");
  EXPECT_EQ(maker.present(), Next::kMake);
  EXPECT_EQ(maker.present(), Next::kAllThere);
}

TEST(ParentMaker, SaysSoWhenNotEvenTheRootIsThere) {
  ParentMaker maker("/a");
  EXPECT_EQ(maker.missing(), Next::kNoRoot);
  EXPECT_EQ(ParentMaker("").missing(), Next::kNoRoot);
}

}  // namespace
}  // namespace latchkey::queue
