#include <time.h>

#include "base/surroundings.hpp"
#include "latchkey/deadline.hpp"

namespace latchkey::inline v0 {

BootClock::time_point BootClock::now() noexcept {
  if (base::surroundings != nullptr) return base::surroundings->now();
  timespec time{};
  ::clock_gettime(CLOCK_BOOTTIME, &time);
  return time_point(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
}

Deadline deadline_in(Duration span) noexcept {
  const Instant now = BootClock::now();
  if (span >= Instant::max() - now) return Deadline::never();
  return {now + span};
}

}  // namespace latchkey::inline v0
