#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "base/slab.hpp"
#include "latchkey/deadline.hpp"

namespace latchkey::session {

/// Things to do at a moment: a heap of them, each of which knows where it is and so can be taken
/// out of the middle. In a steady state nothing is allocated but what a task itself needs. Thread
/// safety: one thread at a time.
class Timers {
 public:
  using Task = std::function<void()>;
  /// 0 is no timer.
  using Id = std::uint64_t;

  /// No timer (0) for Instant::max(): it would never be due.
  Id add(Instant at, Task task) {
    if (at == Instant::max()) return 0;
    const Id id = timers_.insert({{at, ++last_}, heap_.size(), std::move(task)});
    heap_.push_back(id);
    rise(heap_.size() - 1);
    return id;
  }

  void cancel(Id id) {
    if (timers_.find(id) != nullptr) static_cast<void>(take(id));
  }

  /// Takes out the next task that is due.
  std::optional<Task> due(Instant now) {
    if (next() > now || heap_.empty()) return std::nullopt;
    return take(heap_.front());
  }

  [[nodiscard]] Instant next() const { return heap_.empty() ? Instant::max() : first_; }

 private:
  using Moment = std::pair<Instant, std::uint64_t>;  ///< And the order of making.
  struct Timer {
    Moment moment;
    std::size_t place;  ///< In the heap.
    Task task;
  };

  [[nodiscard]] Task take(Id id) {
    Timer taken = *timers_.take(id);
    const Id last = heap_.back();
    heap_.pop_back();
    if (taken.place < heap_.size()) {
      put(taken.place, last);
      rise(taken.place);
      sink(timers_.find(last)->place);
    }
    if (!heap_.empty()) first_ = moment_at(0).first;
    return std::move(taken.task);
  }

  [[nodiscard]] const Moment& moment_at(std::size_t place) {
    return timers_.find(heap_[place])->moment;
  }
  void put(std::size_t place, Id id) {
    heap_[place] = id;
    timers_.find(id)->place = place;
  }
  void exchange(std::size_t a, std::size_t b) {
    const Id at_a = heap_[a];
    put(a, heap_[b]);
    put(b, at_a);
  }
  void rise(std::size_t place) {
    while (place > 0 && moment_at(place) < moment_at((place - 1) / 2)) {
      exchange(place, (place - 1) / 2);
      place = (place - 1) / 2;
    }
    first_ = moment_at(0).first;
  }
  void sink(std::size_t place) {
    while (true) {
      std::size_t least = place;
      for (const std::size_t child : {2 * place + 1, 2 * place + 2}) {
        if (child < heap_.size() && moment_at(child) < moment_at(least)) least = child;
      }
      if (least == place) return;
      exchange(place, least);
      place = least;
    }
  }

  base::Slab<Timer> timers_;
  std::vector<Id> heap_;  ///< None comes before the one at half its place.
  Instant first_{};       ///< The moment of the first, if there is one.
  std::uint64_t last_ = 0;
};

}  // namespace latchkey::session
