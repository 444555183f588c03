#pragma once

#include <atomic>
#include <utility>

namespace latchkey::base {

/// Things that many put and one takes away, all at once and in the order they came. A thing has a
/// member `next` of type T* for the pile's own use, and has to live until it is taken.
///
/// For things that are left to whoever has a lock: if you put one and then do not get the lock,
/// whoever has it finds the pile not empty after having let go of it.
///
/// Thread safety: any thread.
template <class T>
class Pile {
 public:
  void put(T& thing) noexcept {
    T* top = top_.load(std::memory_order_relaxed);
    do {
      thing.next = top;
    } while (!top_.compare_exchange_weak(top, &thing, std::memory_order_acq_rel,
                                         std::memory_order_relaxed));
  }

  /// The first to have come; `next` leads to the others.
  [[nodiscard]] T* take_all() noexcept {
    T* oldest = nullptr;
    for (T* thing = top_.exchange(nullptr, std::memory_order_acq_rel); thing != nullptr;) {
      oldest = std::exchange(thing, std::exchange(thing->next, oldest));
    }
    return oldest;
  }

  /// Written as well as read: of a put() and this one comes first, so that what was done before it,
  /// such as letting go of a lock, is seen by the other.
  [[nodiscard]] bool is_empty() noexcept {
    return top_.fetch_add(0, std::memory_order_acq_rel) == nullptr;
  }

 private:
  std::atomic<T*> top_ = nullptr;
};

}  // namespace latchkey::base
