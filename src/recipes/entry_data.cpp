#include "recipes/entry_data.hpp"

#include <array>
#include <ctime>
#include <string>
#include <utility>

#include "base/surroundings.hpp"
#include "queue/owner.hpp"

namespace latchkey::recipes {
namespace {

std::string utc_now() {
  const auto now = static_cast<std::time_t>(base::wall_ms() / 1'000);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text.data(), size};
}

}  // namespace

std::string entry_data(const std::string& reason) {
  base::ProcessName process = base::process_name();
  return queue::format_owner({.host = std::move(process.host),
                              .pid = process.pid,
                              .program = std::move(process.program),
                              .since = utc_now(),
                              .reason = reason});
}

}  // namespace latchkey::recipes
