#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "latchkey/deadline.hpp"

namespace latchkey::base {

/// Where a thread sleeps until another wakes it. Shared by the thread and by those who are about to
/// wake it: they may be late.
///
/// Thread safety: park_until() by its own thread, wake() by any.
class Parker {
 public:
  static std::shared_ptr<Parker> of_this_thread();

  /// Returns after a wake() since the last park_until(), at the deadline, or for no reason.
  void park_until(Deadline deadline) noexcept;
  void wake() noexcept;

 private:
  enum : std::uint32_t { kAwake, kAsleep, kWoken };
  std::atomic<std::uint32_t> state_ = kAwake;
};

/// While one exists on a thread, whom that thread wakes is woken when the outermost one ends: for
/// whoever holds a lock that the woken will want at once.
class LateWakes {
 public:
  LateWakes() noexcept;
  ~LateWakes();
  LateWakes(const LateWakes&) = delete;
  LateWakes& operator=(const LateWakes&) = delete;

  /// How many are to be woken.
  [[nodiscard]] std::size_t count() const noexcept;

  /// Wakes now, or later if there is a LateWakes on this thread.
  static void wake(std::shared_ptr<Parker> parker);
};

}  // namespace latchkey::base
