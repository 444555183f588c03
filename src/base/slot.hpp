#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "latchkey/deadline.hpp"

namespace latchkey::base {

/// Where one thread waits for the one value another will bring. Thread safety: any thread; set()
/// once, take() once.
template <class T>
class Slot {
 public:
  void set(T value) {
    const std::lock_guard lock(mutex_);
    value_.emplace(std::move(value));
    // Under the lock: whoever sees the value may destroy the slot as soon as it is let go.
    there_.notify_one();
  }

  /// True as soon as the value is there, false at the deadline.
  bool wait_until(Deadline deadline) {
    std::unique_lock lock(mutex_);
    while (!value_) {
      if (deadline.is_never()) {
        there_.wait(lock);
        continue;
      }
      const Instant now = BootClock::now();
      if (deadline.has_passed(now)) return false;
      there_.wait_for(lock, deadline.at() - now);
    }
    return true;
  }

  [[nodiscard]] bool is_set() {
    const std::lock_guard lock(mutex_);
    return value_.has_value();
  }

  T take() {
    const std::lock_guard lock(mutex_);
    return std::move(*value_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable there_;
  std::optional<T> value_;
};

}  // namespace latchkey::base
