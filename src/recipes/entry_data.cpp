#include "recipes/entry_data.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <ctime>
#include <string>

#include "queue/owner.hpp"

namespace latchkey::recipes {
namespace {

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text.data(), size};
}

}  // namespace

std::string entry_data(const std::string& reason) {
  return queue::format_owner({.host = host_name(),
                              .pid = ::getpid(),
                              .program = ::program_invocation_short_name,
                              .since = utc_now(),
                              .reason = reason});
}

}  // namespace latchkey::recipes
