#pragma once

#include <time.h>

#include <algorithm>
#include <cstdint>

#include "latchkey/deadline.hpp"

namespace latchkey::base {

/// What is left until then, for a system call; nothing if it has passed. Not for Deadline::never().
inline timespec time_left(Deadline deadline) noexcept {
  const auto ns = std::max<std::int64_t>((deadline.at() - BootClock::now()).count(), 0);
  return {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
}

}  // namespace latchkey::base
