#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// Text for a terminal, as functions of values.
namespace latchkey::app {

/// What others wrote, fit to be shown: control characters, those that turn the direction of writing
/// around and bytes that are no UTF-8 appear as escapes, so that nothing moves the cursor, changes
/// the colour or poses as another line.
///
///     printable("a\x1b[2J");  // "a\x1b[2J" with a backslash
[[nodiscard]] std::string printable(std::string_view text);

/// How many columns of a terminal printable text takes.
[[nodiscard]] std::size_t width_of(std::string_view printable_text);

/// The beginning of printable text that fits, with an ellipsis if something is missing.
[[nodiscard]] std::string cut_to(std::string_view printable_text, std::size_t width);

enum class Style { kPlain, kStrong, kFaint, kBad };
enum class Colour { kNo, kYes };

[[nodiscard]] std::string paint(std::string text, Style style, Colour colour);

struct Row {
  std::vector<std::string> cells;  ///< As they came; made printable when they are shown.
  Style style = Style::kPlain;
};

struct Table {
  std::vector<std::string> titles;
  std::vector<Row> rows;
};

/// Lines without ends: the titles, then the rows, in columns. If that is wider than `width`, which
/// is 0 for any, the widest columns are cut until it fits or nothing can be cut any more.
[[nodiscard]] std::vector<std::string> render(const Table& table, std::size_t width, Colour colour);

}  // namespace latchkey::app
