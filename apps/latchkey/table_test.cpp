#include "table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace latchkey::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(Printable, LeavesTextOfEveryLanguageAsItIs) {
  EXPECT_EQ(printable("nightly run, Zürich, 東京, \xF0\x9F\x94\x92"),
            "nightly run, Zürich, 東京, \xF0\x9F\x94\x92");
}

TEST(Printable, EscapesWhatATerminalWouldObey) {
  EXPECT_EQ(printable("a\x1b[2Jb\nc\td\re"), "a\\x1b[2Jb\\nc\\td\\re");
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
  EXPECT_EQ(printable("\xC2\x9B"
                      "31m"),
            "\\xc2\\x9b31m");                               // The one-character form of ESC [.
  EXPECT_EQ(printable("\xE2\x80\xAE"), "\\xe2\\x80\\xae");  // Turns the writing around.
}

TEST(Printable, EscapesBytesThatAreNoText) {
  EXPECT_EQ(printable("\xFF"
                      "a\xC3"),
            "\\xffa\\xc3");
  EXPECT_EQ(printable("\xC0\x80"), "\\xc0\\x80");           // Overlong.
  EXPECT_EQ(printable("\xED\xA0\x80"), "\\xed\\xa0\\x80");  // Half a pair.
}

TEST(Width, CountsColumnsAndNotBytes) {
  EXPECT_EQ(width_of("abc"), 3U);
  EXPECT_EQ(width_of("Zürich"), 6U);
  EXPECT_EQ(width_of("東京"), 4U);
  EXPECT_EQ(width_of("e\xCC\x81"), 1U);  // A letter and its accent.
}

TEST(Width, CutsBetweenCharacters) {
  EXPECT_EQ(cut_to("abcdef", 6), "abcdef");
  EXPECT_EQ(cut_to("abcdef", 4), "abc…");
  EXPECT_EQ(cut_to("東京都", 4), "東…");
  EXPECT_EQ(cut_to("東京都", 5), "東京…");
  EXPECT_EQ(cut_to("abc", 0), "");
}

Table example() {
  return {{"NAME", "REASON"},
          {{{"a", "the nightly run of everything"}, Style::kStrong}, {{"backup", "b"}}}};
}

TEST(Render, AlignsColumnsAndLeavesNoTrailingBlanks) {
  EXPECT_THAT(render(example(), 0, Colour::kNo),
              ElementsAre("NAME    REASON", "a       the nightly run of everything", "backup  b"));
}

TEST(Render, CutsTheWidestColumnToFit) {
  const auto lines = render(example(), 20, Colour::kNo);
  EXPECT_THAT(lines, ElementsAre("NAME    REASON", "a       the nightly…", "backup  b"));
  for (const std::string& line : lines) EXPECT_LE(width_of(line), 20U);
}

TEST(Render, GivesUpCuttingBeforeNothingIsLeft) {
  EXPECT_THAT(render(example(), 3, Colour::kNo),
              ElementsAre("NAME    REASON", "a       the n…", "backup  b"));
}

TEST(Render, PaintsOnlyWhereColoursAreWanted) {
  EXPECT_THAT(render(example(), 0, Colour::kYes)[1],
              testing::AllOf(testing::StartsWith("\033[32m"), testing::EndsWith("\033[0m")));
  EXPECT_THAT(render(example(), 0, Colour::kNo)[1], Not(HasSubstr("\033")));
}

TEST(Render, ForeignDataCannotForgeALine) {
  const Table table{{"NAME", "REASON"}, {{{"a", "x\nbackup  root holds"}}}};
  EXPECT_THAT(render(table, 0, Colour::kNo),
              ElementsAre("NAME  REASON", "a     x\\nbackup  root holds"));
}

TEST(Render, ARowMayHaveTooFewCells) {
  const Table table{{"A", "B"}, {{{"only"}}}};
  EXPECT_THAT(render(table, 0, Colour::kNo), ElementsAre("A     B", "only"));
}

}  // namespace
}  // namespace latchkey::app
