#include "command_words.hpp"

#include <CLI/CLI.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job.hpp"
#include "json.hpp"

namespace latchkey::app {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;
using Words = std::vector<std::string>;

class CommandWords : public testing::Test {
 protected:
  CommandWords() {
    app_.add_option("NAME", name_);
    app_.add_option("-w,--wait", wait_);
    app_.add_flag("-n", no_wait_);
  }
  Words take(Words words) {
    rest_ = std::move(words);
    return take_command(app_, rest_);
  }

  CLI::App app_;
  std::string name_;
  std::string wait_;
  bool no_wait_ = false;
  Words rest_;
};

TEST_F(CommandWords, H100_EverythingBehindTheDashesIsTheCommands) {
  EXPECT_THAT(take({"a", "-n", "--", "rm", "--", "-n"}), ElementsAre("rm", "--", "-n"));
  EXPECT_THAT(rest_, ElementsAre("a", "-n"));
}

TEST_F(CommandWords, H100_WithoutDashesItBeginsAfterTheName) {
  EXPECT_THAT(take({"-n", "a", "rsync", "-n", "--wait", "x"}),
              ElementsAre("rsync", "-n", "--wait", "x"));
  EXPECT_THAT(rest_, ElementsAre("-n", "a"));
}

TEST_F(CommandWords, TheValueOfAnOptionIsNotTheName) {
  EXPECT_THAT(take({"-w", "5", "a", "true"}), ElementsAre("true"));
  EXPECT_THAT(take({"-w5", "a", "true"}), ElementsAre("true"));
  EXPECT_THAT(take({"-nw", "5", "a", "true"}), ElementsAre("true"));
  EXPECT_THAT(take({"--wait", "5", "a", "true"}), ElementsAre("true"));
  EXPECT_THAT(take({"--wait=5", "a", "true"}), ElementsAre("true"));
  EXPECT_THAT(rest_, ElementsAre("--wait=5", "a"));
}

TEST_F(CommandWords, NothingIsTakenFromACommandLineWithoutOne) {
  EXPECT_THAT(take({"a", "-w", "5"}), IsEmpty());
  EXPECT_THAT(rest_, ElementsAre("a", "-w", "5"));
  EXPECT_THAT(take({"a", "--"}), IsEmpty());
  EXPECT_THAT(take({}), IsEmpty());
  EXPECT_THAT(take({"a", "-w"}), IsEmpty());
}

TEST(Descendants, AreFoundAtAnyDepthAndInAnyOrder) {
  EXPECT_THAT(descendants_of(1, {{4, 3}, {2, 1}, {3, 2}, {9, 8}, {8, 1}, {7, 6}}),
              UnorderedElementsAre(2, 3, 4, 8, 9));
  EXPECT_THAT(descendants_of(1, {}), IsEmpty());
}

TEST(Descendants, ACircleOfReusedNumbersIsNoTrap) {
  EXPECT_THAT(descendants_of(1, {{2, 1}, {3, 2}, {1, 3}}), UnorderedElementsAre(2, 3));
}

TEST(Json, TextIsQuotedSoThatEveryReaderTakesIt) {
  EXPECT_EQ(json_quoted("a\"b\\c\n\x1b\x7f"), "\"a\\\"b\\\\c\\u000a\\u001b\\u007f\"");
  EXPECT_EQ(json_quoted("\xC3\xA4"), "\"\xC3\xA4\"");
  EXPECT_EQ(json_quoted("\xC3(\xFF"), "\"\xEF\xBF\xBD(\xEF\xBF\xBD\"");
  EXPECT_EQ(JsonLine().add("a", 1).add("b", true).add("c", "x").text(),
            "{\"a\":1,\"b\":true,\"c\":\"x\"}");
}

}  // namespace
}  // namespace latchkey::app
