#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "base/parker.hpp"
#include "latchkey/deadline.hpp"

namespace latchkey::base {

/// Where one thread, the one that makes it, waits for the one value another will bring. Thread
/// safety: set() by any thread, once; the rest by the one that waits.
template <class T>
class Slot {
 public:
  void set(T value) {
    value_.emplace(std::move(value));
    // Whoever sees the value may destroy the slot.
    auto waiting = waiting_;
    is_set_.store(true, std::memory_order_release);
    LateWakes::wake(std::move(waiting));
  }

  /// True as soon as the value is there, false at the deadline.
  bool wait_until(Deadline deadline) {
    while (!is_set()) {
      if (deadline.has_passed(BootClock::now())) return false;
      waiting_->park_until(deadline);
    }
    return true;
  }

  [[nodiscard]] bool is_set() const { return is_set_.load(std::memory_order_acquire); }

  T take() { return std::move(*value_); }

 private:
  std::shared_ptr<Parker> waiting_ = Parker::of_this_thread();
  std::atomic<bool> is_set_ = false;
  std::optional<T> value_;
};

}  // namespace latchkey::base
