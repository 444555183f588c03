#pragma once

#include <chrono>

#include "latchkey/export.hpp"

namespace latchkey::inline v0 {

/// Time since boot, suspend included (CLOCK_BOOTTIME). It is the only clock Latchkey decides by:
/// the wall clock jumps, and the ordinary monotonic clock stands still while the machine sleeps,
/// which would let a lease look alive long after the server has given the lock away.
///
///     const Instant start = BootClock::now();
///     auto lease = mutex.lock(Deadline::never());
///     const Duration waited = BootClock::now() - start;
struct LATCHKEY_EXPORT BootClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BootClock>;
  static constexpr bool is_steady = true;

  static time_point now() noexcept;
};

using Instant = BootClock::time_point;
using Duration = BootClock::duration;

/// The one moment by which an operation has to be over. Compute it once, at the edge, and pass it
/// on: a retry never starts it again.
///
///     const Deadline deadline = deadline_in(2s);
///     auto node = session.get("/config", deadline);
///     auto lease = mutex.lock(deadline);  // what the first has left of the two seconds
///
/// Thread safety: immutable.
class Deadline {
 public:
  /// Not explicit on purpose: an Instant *is* a deadline.
  constexpr Deadline(Instant at) noexcept : at_(at) {}

  [[nodiscard]] static constexpr Deadline never() noexcept { return {Instant::max()}; }

  [[nodiscard]] constexpr Instant at() const noexcept { return at_; }
  [[nodiscard]] constexpr bool is_never() const noexcept { return at_ == Instant::max(); }
  [[nodiscard]] constexpr bool has_passed(Instant now) const noexcept { return now >= at_; }

  friend constexpr auto operator<=>(Deadline, Deadline) noexcept = default;

 private:
  Instant at_;
};

/// From now, in any unit: deadline_in(1.5s), deadline_in(days(2)). A span too long to add means
/// never.
[[nodiscard]] LATCHKEY_EXPORT Deadline deadline_in(Duration span) noexcept;
template <class Rep, class Period>
[[nodiscard]] Deadline deadline_in(std::chrono::duration<Rep, Period> span) noexcept {
  // Nanoseconds end after 292 years; what would not fit must not be converted.
  constexpr std::chrono::duration<double> kLongest(9e9);
  if (span >= kLongest) return Deadline::never();
  if (span <= -kLongest) return {Instant::min()};
  return deadline_in(std::chrono::duration_cast<Duration>(span));
}

}  // namespace latchkey::inline v0
