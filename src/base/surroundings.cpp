#include "base/surroundings.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>

#include "base/process.hpp"

namespace latchkey::base {

thread_local constinit Surroundings* surroundings = nullptr;

std::int64_t wall_ms() noexcept {
  if (surroundings != nullptr) return surroundings->wall_ms();
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

ProcessName process_name() {
  // The same everywhere: a node's size, and with it the trace of a run, must not hang on it.
  if (surroundings != nullptr) return {"simulated", 1, "simulation"};
  std::array<char, 256> host{};
  const bool known = ::gethostname(host.data(), host.size() - 1) == 0;
  return {known ? host.data() : "unknown", process_id(), ::program_invocation_short_name};
}

}  // namespace latchkey::base
