#include "values.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace latchkey::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Values, ATimeHasAUnit) {
  EXPECT_EQ(parse_duration("250").value(), 250'000) << "seconds, as everywhere";
  EXPECT_EQ(parse_duration("250ms").value(), 250);
  EXPECT_EQ(parse_duration("1.5s").value(), 1'500);
  EXPECT_EQ(parse_duration("2 min").value(), 120'000);
  EXPECT_EQ(parse_duration("1h").value(), 3'600'000);
}

TEST(Values, ATimeThatIsNoneSaysHowToWriteOne) {
  for (const std::string text : {"", "soon", "1 fortnight", "s", "1s2", "nan", "inf"}) {
    const auto parsed = parse_duration(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_THAT(parsed.error().message(), HasSubstr("write 500ms")) << text;
  }
  for (const std::string text : {"0", "-1s", "9223372036855", "25d", "1e300h"}) {
    const auto parsed = parse_duration(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_THAT(parsed.error().message(), HasSubstr("between 1ms and 24d")) << text;
  }
}

TEST(Values, WhatFlockCallsSecondsIsSeconds) {
  EXPECT_EQ(parse_duration_or_zero("5").value(), 5'000);
  EXPECT_EQ(parse_duration_or_zero("0.5").value(), 500);
  EXPECT_EQ(parse_duration_or_zero("0").value(), 0);
  EXPECT_EQ(parse_duration_or_zero("0.0").value(), 0);
  EXPECT_EQ(parse_duration_or_zero("-1").error().message(),
            "\"-1\" is less than nothing; write 0 or more");
  EXPECT_EQ(parse_duration_or_zero("250ms").value(), 250);
  EXPECT_EQ(parse_duration_or_zero("2min").value(), 120'000);
  for (const std::string text : {"", ".", "1.2.3", "soon", "-1", "0.0001"}) {
    EXPECT_FALSE(parse_duration_or_zero(text)) << text;
  }
}

TEST(Values, AWordIsFoundThoughItsLettersAreInAnotherOrder) {
  EXPECT_EQ(closest("rnu", {"once", "run", "serve"}), "run");
  EXPECT_EQ(closest("sevre", {"once", "run", "serve"}), "serve");
  EXPECT_EQ(closest("bogus", {"once", "run", "serve"}), "");
}

constexpr std::size_t kMany = std::size_t{1} << 40U;

TEST(Values, ACountMayHaveAUnitOfBytes) {
  EXPECT_EQ(parse_count("500", 1, kMany).value(), 500U);
  EXPECT_EQ(parse_count("4GB", 1, kMany).value(), std::size_t{4} << 30U);
  EXPECT_EQ(parse_count("64K", 1, kMany).value(), 65'536U);
  for (const std::string text : {"", "12abc", "1.5", "0", "-4", "many"}) {
    EXPECT_FALSE(parse_count(text, 1, kMany)) << text;
  }
}

TEST(Values, ACountThatIsTooSmallOrTooLargeSaysWhatWouldDo) {
  for (const std::string text : {"0", "-4", "1023"}) {
    EXPECT_EQ(parse_count(text, 1'024, 65'536).error().message(),
              '"' + text + "\" is too small; choose at least 1024");
  }
  for (const std::string text : {"65537", "1G", "1e300"}) {
    EXPECT_EQ(parse_count(text, 1'024, 65'536).error().message(),
              '"' + text + "\" is too large; choose at most 65536");
  }
}

TEST(Values, ATruthIsSpelledInTheUsualWays) {
  for (const std::string text : {"true", "yes", "on", "1"}) EXPECT_TRUE(parse_bool(text).value());
  for (const std::string text : {"false", "no", "off", "0"}) EXPECT_FALSE(parse_bool(text).value());
  EXPECT_FALSE(parse_bool("maybe"));
}

TEST(Values, SettingsKeepTheirOrderAndLine) {
  const auto settings = parse_settings(
      "# A server.\n\nlisten = 127.0.0.1:2181  # here\nmemory=true\r\n"
      "listen = [\"[::1]:1\", 127.0.0.1:2]\nsuper-digest = \"a:b#c=\"\n");

  ASSERT_TRUE(settings) << settings.error();
  ASSERT_EQ(settings->size(), 4U);
  EXPECT_EQ((*settings)[0].line, 3);
  EXPECT_EQ((*settings)[0].name, "listen");
  EXPECT_THAT((*settings)[0].values, ElementsAre("127.0.0.1:2181"));
  EXPECT_THAT((*settings)[1].values, ElementsAre("true"));
  EXPECT_THAT((*settings)[2].values, ElementsAre("[::1]:1", "127.0.0.1:2"));
  EXPECT_THAT((*settings)[3].values, ElementsAre("a:b#c="));
}

TEST(Values, ALineThatIsNoSettingIsNamed) {
  for (const std::string line : {"[serve]", "memory", "data =", "a = \"b", "a = [b", "a = [b] c",
                                 "a = [,]", "a = \"b\" c", "= b"}) {
    const auto settings = parse_settings("x = 1\n" + line + "\n");
    ASSERT_FALSE(settings) << line;
    EXPECT_TRUE(settings.error().message().starts_with("2: ")) << settings.error();
  }
}

TEST(Values, TheOptionThatWasMeantIsFound) {
  const std::vector<std::string> known = {"--listen", "--unix", "--data"};

  EXPECT_EQ(closest("--listn", known), "--listen");
  EXPECT_EQ(closest("--date", known), "--data");
  EXPECT_EQ(closest("--everything", known), "");
  EXPECT_EQ(closest("--x", {}), "");
}

TEST(Values, ANumberIsWholeAndWithinItsBounds) {
  EXPECT_EQ(parse_number("0", 0, 255).value(), 0);
  EXPECT_EQ(parse_number("255", 0, 255).value(), 255);
  for (const char* text : {"", "-1", "256", "1.5", "two", "1x", " 1", "99999999999"}) {
    const auto number = parse_number(text, 0, 255);
    ASSERT_FALSE(number) << text;
    EXPECT_EQ(number.error().message(), '"' + std::string(text) + "\" is no number from 0 to 255");
  }
}

}  // namespace
}  // namespace latchkey::app
