#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <utility>

#include "testing/timeline.hpp"
#include "testing/world_options.hpp"

namespace latchkey::testing {

/// One direction between a follower and the leader: what is put in comes out in order, as events of
/// the process at the other end, each after a time of its own.
/// Thread safety: one thread at a time.
class Pipe {
 public:
  Pipe(Timeline& timeline, Process& reader, const Span& latency)
      : timeline_(timeline), reader_(reader), latency_(latency) {}

  void put(std::function<void()> task) {
    last_ = std::max(last_, timeline_.now() + timeline_.draw(latency_.least, latency_.most));
    tasks_.emplace_back(last_, std::move(task));
    schedule();
  }
  /// While it is silent everything waits.
  void set_silent(bool silent) {
    silent_ = silent;
    schedule();
  }
  [[nodiscard]] bool is_silent() const { return silent_; }
  /// What is on its way arrives at once.
  void flush() {
    while (!tasks_.empty() && !silent_) {
      const std::function<void()> task = std::move(tasks_.front().second);
      tasks_.pop_front();
      task();
    }
    if (tasks_.empty()) drop();
  }
  /// What is on its way never arrives.
  void drop() {
    tasks_.clear();
    ++generation_;
    scheduled_ = false;
  }

 private:
  void schedule() {
    if (scheduled_ || silent_ || tasks_.empty()) return;
    scheduled_ = true;
    timeline_.at(tasks_.front().first, &reader_, Happens::kDelivery,
                 [this, generation = generation_] {
                   if (generation == generation_) deliver();
                 });
  }
  void deliver() {
    scheduled_ = false;
    if (silent_ || tasks_.empty()) return;
    const std::function<void()> task = std::move(tasks_.front().second);
    tasks_.pop_front();
    schedule();
    task();
  }

  Timeline& timeline_;
  Process& reader_;
  const Span& latency_;
  std::deque<std::pair<Instant, std::function<void()>>> tasks_;
  Instant last_{};
  std::uint64_t generation_ = 0;
  bool scheduled_ = false;
  bool silent_ = false;
};

}  // namespace latchkey::testing
