#include "base/process.hpp"

#include <charconv>
#include <fstream>
#include <iterator>

namespace latchkey::base {

std::optional<std::uint64_t> parse_start_ticks(std::string_view stat) {
  // The second field is the program's name in parentheses, with whatever is in it.
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string_view::npos) return std::nullopt;
  std::string_view rest = stat.substr(name_end + 1);
  constexpr int kFieldsBefore = 19;  // State up to the 21st of them all.
  for (int i = 0; i <= kFieldsBefore; ++i) {
    const std::size_t space = rest.find(' ');
    if (space == std::string_view::npos) return std::nullopt;
    rest.remove_prefix(space + 1);
  }
  std::uint64_t ticks = 0;
  const auto [end, error] = std::from_chars(rest.begin(), rest.end(), ticks);
  if (error != std::errc() || end == rest.begin()) return std::nullopt;
  return ticks;
}

std::optional<std::uint64_t> start_ticks(std::string_view process) {
  std::ifstream file("/proc/" + std::string(process) + "/stat");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  return parse_start_ticks(text);
}

}  // namespace latchkey::base
