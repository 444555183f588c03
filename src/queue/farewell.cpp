#include "queue/farewell.hpp"

#include <charconv>
#include <system_error>

namespace latchkey::queue {
namespace {

constexpr std::string_view kLeft = "left ";

}  // namespace

std::string format_farewell(std::int64_t czxid) {
  return std::string(kLeft) + std::to_string(czxid);
}

std::optional<std::int64_t> parse_farewell(std::string_view data) {
  if (!data.starts_with(kLeft)) return std::nullopt;
  const std::string_view number = data.substr(kLeft.size());
  std::int64_t czxid = 0;
  const char* const end = number.data() + number.size();
  const auto [stop, error] = std::from_chars(number.data(), end, czxid);
  if (error != std::errc() || stop != end) return std::nullopt;
  // One way to write each number, or it is not ours.
  if (czxid <= 0 || number.front() == '0') return std::nullopt;
  return czxid;
}

bool makes_room(std::string_view data) { return data.empty() || parse_farewell(data); }

}  // namespace latchkey::queue
