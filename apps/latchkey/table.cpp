#include "table.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>

#include <fmt/core.h>

#include "utf8.hpp"

namespace latchkey::app {
namespace {

struct Range {
  std::uint32_t from;
  std::uint32_t to;
};

bool within(std::uint32_t code, std::initializer_list<Range> ranges) {
  return std::ranges::any_of(ranges,
                             [&](const Range& one) { return code >= one.from && code <= one.to; });
}

bool is_dangerous(std::uint32_t code) {
  return within(code, {{0, 0x1F},
                       {0x7F, 0x9F},
                       {0x061C, 0x061C},
                       {0x200B, 0x200F},
                       {0x2028, 0x202E},
                       {0x2060, 0x206F},
                       {0xFEFF, 0xFEFF},
                       {0xFFF9, 0xFFFB},
                       {0xE0000, 0xE007F}});
}

std::size_t columns_of(std::uint32_t code) {
  if (within(code, {{0x0300, 0x036F},
                    {0x0483, 0x0489},
                    {0x0591, 0x05BD},
                    {0x064B, 0x065F},
                    {0x1AB0, 0x1AFF},
                    {0x1DC0, 0x1DFF},
                    {0x20D0, 0x20FF},
                    {0xFE00, 0xFE0F},
                    {0xFE20, 0xFE2F}})) {
    return 0;
  }
  const bool wide = within(code, {{0x1100, 0x115F},
                                  {0x2E80, 0x303E},
                                  {0x3041, 0x33FF},
                                  {0x3400, 0x4DBF},
                                  {0x4E00, 0x9FFF},
                                  {0xA000, 0xA4CF},
                                  {0xAC00, 0xD7A3},
                                  {0xF900, 0xFAFF},
                                  {0xFE30, 0xFE6F},
                                  {0xFF00, 0xFF60},
                                  {0xFFE0, 0xFFE6},
                                  {0x1F300, 0x1F64F},
                                  {0x1F680, 0x1F6FF},
                                  {0x1F900, 0x1F9FF},
                                  {0x20000, 0x3FFFD}});
  return wide ? 2 : 1;
}

std::string escape(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    text += byte == '\n'   ? "\\n"
            : byte == '\t' ? "\\t"
            : byte == '\r' ? "\\r"
                           : fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  }
  return text;
}

/// A column is not cut below this, nor its title at all.
constexpr std::size_t kLeast = 6;
constexpr std::string_view kGap = "  ";

using Cells = std::vector<std::vector<std::string>>;

/// How wide each column may be.
std::vector<std::size_t> widths(const Table& table, const Cells& cells, std::size_t most) {
  std::vector<std::size_t> result;
  std::vector<std::size_t> least;
  for (const std::string& title : table.titles) {
    result.push_back(width_of(title));
    least.push_back(std::max(kLeast, width_of(title)));
  }
  for (const auto& row : cells) {
    for (std::size_t i = 0; i < result.size(); ++i) {
      result[i] = std::max(result[i], width_of(row[i]));
    }
  }
  const std::size_t gaps = kGap.size() * (result.empty() ? 0 : result.size() - 1);
  const auto total = [&] { return std::accumulate(result.begin(), result.end(), gaps); };
  while (most > 0 && total() > most) {
    const auto widest = std::max_element(result.begin(), result.end());
    const auto index = static_cast<std::size_t>(widest - result.begin());
    if (*widest <= least[index]) break;
    --*widest;
  }
  return result;
}

std::string line_of(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths) {
  std::string line;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    const std::string cell = cut_to(cells[i], widths[i]);
    line += cell;
    if (i + 1 == widths.size()) break;
    line.append(widths[i] - std::min(widths[i], width_of(cell)), ' ');
    line += kGap;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const Character character = first_character(text);
    const std::size_t size = std::max<std::size_t>(character.size, 1);
    const bool shown = character.size > 0 && !is_dangerous(character.code);
    result += shown ? std::string(text.substr(0, size)) : escape(text.substr(0, size));
    text.remove_prefix(size);
  }
  return result;
}

std::size_t width_of(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const Character character = first_character(text);
    width += columns_of(character.code);
    text.remove_prefix(std::max<std::size_t>(character.size, 1));
  }
  return width;
}

std::string cut_to(std::string_view text, std::size_t width) {
  if (width_of(text) <= width) return std::string(text);
  std::string result;
  for (std::size_t used = 1; !text.empty() && width > 0;) {
    const Character character = first_character(text);
    used += columns_of(character.code);
    if (used > width) break;
    const std::size_t size = std::max<std::size_t>(character.size, 1);
    result += text.substr(0, size);
    text.remove_prefix(size);
  }
  return width > 0 ? result + "\xE2\x80\xA6" : "";
}

std::string paint(std::string text, Style style, Colour colour) {
  if (colour == Colour::kNo || style == Style::kPlain) return text;
  const int code = style == Style::kStrong ? 32 : style == Style::kFaint ? 2 : 31;
  return fmt::format("\033[{}m{}\033[0m", code, text);
}

std::vector<std::string> render(const Table& table, std::size_t width, Colour colour) {
  Cells cells;
  for (const Row& row : table.rows) {
    auto& line = cells.emplace_back();
    for (const std::string& cell : row.cells) line.push_back(printable(cell));
    line.resize(table.titles.size());
  }
  const std::vector<std::size_t> columns = widths(table, cells, width);
  std::vector<std::string> lines{paint(line_of(table.titles, columns), Style::kFaint, colour)};
  for (std::size_t i = 0; i < cells.size(); ++i) {
    lines.push_back(paint(line_of(cells[i], columns), table.rows[i].style, colour));
  }
  return lines;
}

}  // namespace latchkey::app
