#include "tree/quota.hpp"

#include <gtest/gtest.h>

namespace latchkey::tree {
namespace {

/// What Apache's StatsTrack makes of a text; "refused" where it throws.
std::string reread(std::string_view text) {
  const auto quota = QuotaText::parse(text);
  return quota ? quota->text() : "refused";
}

TEST(QuotaText, IsWrittenAsApacheWritesIt) {
  QuotaText quota;
  EXPECT_EQ(quota.text(), "count=-1,bytes=-1");

  quota.set("bytes", 5);
  quota.set("count", 4);
  EXPECT_EQ(quota.text(), "count=4,bytes=5");

  quota.set("countHardLimit", 10);
  quota.set("byteHardLimit", 7);
  EXPECT_EQ(quota.text(), "count=4,bytes=5=;byteHardLimit=7;countHardLimit=10");
}

TEST(QuotaText, ReadsBackWhatItWrites) {
  const std::string text = "count=4,bytes=5=;byteHardLimit=7;countHardLimit=10";

  const auto quota = QuotaText::parse(text);

  ASSERT_TRUE(quota);
  EXPECT_EQ(quota->get("count"), 4);
  EXPECT_EQ(quota->get("bytes"), 5);
  EXPECT_EQ(quota->get("byteHardLimit"), 7);
  EXPECT_EQ(quota->get("countHardLimit"), 10);
  EXPECT_EQ(quota->text(), text);
}

TEST(QuotaText, ANameThatIsNotThereReadsMinusOne) {
  const auto quota = QuotaText::parse("count=0");

  ASSERT_TRUE(quota);
  EXPECT_EQ(quota->get("count"), 0);
  EXPECT_EQ(quota->get("bytes"), -1);
  EXPECT_EQ(quota->get("byteHardLimit"), -1);
}

TEST(QuotaText, ReadsWhatPeopleWrite) {
  EXPECT_EQ(reread(""), "count=-1,bytes=-1");
  EXPECT_EQ(reread("count=5"), "count=5,bytes=-1");
  EXPECT_EQ(reread("bytes=5=;count=4"), "count=4,bytes=5");
  EXPECT_EQ(reread("count=1,,;bytes=2"), "count=1,bytes=2");
  EXPECT_EQ(reread("count=1,"), "count=1,bytes=-1");
  EXPECT_EQ(reread(","), "count=-1,bytes=-1");
  EXPECT_EQ(reread(";,;"), "count=-1,bytes=-1");
  EXPECT_EQ(reread("zoo=1;alpha=2"), "count=-1,bytes=-1=;alpha=2;zoo=1");
  EXPECT_EQ(reread("count=1,count=2"), "count=2,bytes=-1");
  EXPECT_EQ(reread("count=1=2"), "count=1,bytes=-1");
  EXPECT_EQ(reread("count==5"), "count=-1,bytes=-1");
  EXPECT_EQ(reread("=5"), "count=-1,bytes=-1=;=5");
  EXPECT_EQ(reread(" count=3"), "count=-1,bytes=-1=; count=3");
  EXPECT_EQ(reread("count=+5"), "count=5,bytes=-1");
  EXPECT_EQ(reread("count=-3"), "count=-3,bytes=-1");
  EXPECT_EQ(reread("count=007"), "count=7,bytes=-1");
  EXPECT_EQ(reread("count=9223372036854775807"), "count=9223372036854775807,bytes=-1");
  EXPECT_EQ(reread("count=-9223372036854775808"), "count=-9223372036854775808,bytes=-1");
}

TEST(QuotaText, RefusesWhatApacheRefuses) {
  for (const std::string_view text :
       {",count=1", "count=", "count", "=", "=;b=1", "a==;b=1", "count= 5", "count=5\n", "count=+",
        "count=-", "count=+-3", "count=--3", "count=0x5", "count=9223372036854775808"}) {
    EXPECT_EQ(reread(text), "refused") << text;
  }
}

}  // namespace
}  // namespace latchkey::tree
