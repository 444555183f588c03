#include "base/path_problem.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace latchkey::base {
namespace {

/// The next code point of UTF-8 text, removed from its front; nothing if it is malformed.
std::optional<std::uint32_t> next_code_point(std::string_view& text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t first = byte(0);
  const std::size_t length = first < 0x80   ? 1
                             : first < 0xC2 ? 0
                             : first < 0xE0 ? 2
                             : first < 0xF0 ? 3
                             : first < 0xF5 ? 4
                                            : 0;
  if (length == 0 || text.size() < length) return std::nullopt;
  std::uint32_t point = length == 1 ? first : first & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80) return std::nullopt;
    point = point << 6U | (byte(i) & 0x3FU);
  }
  const bool overlong = (length == 3 && point < 0x800) || (length == 4 && point < 0x10000);
  if (overlong) return std::nullopt;
  text.remove_prefix(length);
  return point;
}

/// Apache's PathUtils refuses these. Everything outside the basic plane is two surrogates to it.
bool is_refused(std::uint32_t point) {
  return point <= 0x1F || (point >= 0x7F && point <= 0x9F) ||
         (point >= 0xD800 && point <= 0xF8FF) || (point >= 0xFFF0);
}

}  // namespace

std::string_view path_problem(std::string_view path) {
  if (path.empty()) return "it is empty";
  if (path.front() != '/') return "it must begin with /";
  if (path.size() == 1) return {};
  if (path.back() == '/') return "it must not end with /";
  for (std::size_t start = 1; start <= path.size();) {
    const std::size_t end = std::min(path.find('/', start), path.size());
    const std::string_view part = path.substr(start, end - start);
    if (part.empty()) return "a part is empty";
    if (part == "." || part == "..") return "relative parts (. and ..) are not allowed";
    start = end + 1;
  }
  const auto is_plain = [](char letter) { return letter >= ' ' && letter <= '~'; };
  for (std::string_view rest = path; !rest.empty();) {
    if (is_plain(rest.front())) {
      rest.remove_prefix(1);
      continue;
    }
    const auto point = next_code_point(rest);
    if (!point) return "it is not valid UTF-8";
    if (is_refused(*point)) return "it has a character that ZooKeeper does not allow";
  }
  return {};
}

}  // namespace latchkey::base
