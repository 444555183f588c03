#include "queue/lock_delay.hpp"

#include <charconv>
#include <system_error>

namespace latchkey::queue {
namespace {

constexpr std::string_view kHeld = "held ";

}  // namespace

std::string format_holder(std::int64_t czxid) { return std::string(kHeld) + std::to_string(czxid); }

bool has_vanished(std::string_view data, std::int64_t own) {
  if (!data.starts_with(kHeld)) return false;
  data.remove_prefix(kHeld.size());
  std::int64_t czxid = 0;
  const char* const end = data.data() + data.size();
  const auto [stop, error] = std::from_chars(data.data(), end, czxid);
  return error == std::errc() && stop == end && czxid != own;
}

}  // namespace latchkey::queue
