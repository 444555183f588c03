#pragma once

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>

#include "latchkey/deadline.hpp"

namespace latchkey::net {

/// A timer on CLOCK_BOOTTIME. Asio's own timers stand still while the machine sleeps, and a lease
/// that ran out in the meantime would be noticed too late (H14).
/// Thread safety: one thread at a time.
class BootTimer {
 public:
  /// Throws asio::system_error if the process has no descriptor left.
  explicit BootTimer(asio::io_context& context);

  /// Makes sure the timer rings at `at` or earlier. An earlier ring is not taken back: whoever
  /// hears it looks at the clock and arms again. That saves a system call for each request.
  void arm(Instant at);
  /// The same; and a ring that comes before `soon` and is not wanted before it is put off: there
  /// the system call saves a wake-up.
  void arm(Instant at, Instant soon);

  /// Calls `handler(error_code)` when the timer rings, once for each wait.
  template <class Handler>
  void async_wait(Handler&& handler) {
    descriptor_.async_wait(asio::posix::stream_descriptor::wait_read,
                           std::forward<Handler>(handler));
  }

  /// To be called when it has rung, before arming it again.
  void clear();
  void cancel();

 private:
  void set(Instant at);

  asio::posix::stream_descriptor descriptor_;
  Instant armed_ = Instant::max();
};

}  // namespace latchkey::net
