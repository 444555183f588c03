#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "latchkey/deadline.hpp"

namespace latchkey::session {

/// Things to do at a moment. Thread safety: one thread at a time.
class Timers {
 public:
  using Task = std::function<void()>;
  /// 0 is no timer.
  using Id = std::uint64_t;

  /// No timer (0) for Instant::max(): it would never be due.
  Id add(Instant at, Task task) {
    if (at == Instant::max()) return 0;
    const Id id = ++last_;
    tasks_.emplace(std::pair(at, id), std::move(task));
    times_.emplace(id, at);
    return id;
  }

  void cancel(Id id) {
    const auto found = times_.find(id);
    if (found == times_.end()) return;
    tasks_.erase({found->second, id});
    times_.erase(found);
  }

  /// Takes out the next task that is due.
  std::optional<Task> due(Instant now) {
    if (tasks_.empty() || tasks_.begin()->first.first > now) return std::nullopt;
    auto first = tasks_.extract(tasks_.begin());
    times_.erase(first.key().second);
    return std::move(first.mapped());
  }

  [[nodiscard]] Instant next() const {
    return tasks_.empty() ? Instant::max() : tasks_.begin()->first.first;
  }

 private:
  std::map<std::pair<Instant, Id>, Task> tasks_;
  std::map<Id, Instant> times_;
  Id last_ = 0;
};

}  // namespace latchkey::session
