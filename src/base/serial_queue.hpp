#pragma once

#include <deque>
#include <functional>
#include <memory>

#include "base/thread_annotations.hpp"

namespace latchkey::base {

/// Runs tasks one at a time and in order on an executor that may have many threads. Putting a task
/// in its place and getting the queue going are two steps, so that the order can be fixed under a
/// lock and the executor, which is the user's, be called without it.
///
///     if (queue->push(task)) queue->start();
///
/// A task that throws does not stop the ones behind it.
/// Thread safety: any thread. Owned by a shared_ptr, because a running queue outlives its caller.
class SerialQueue : public std::enable_shared_from_this<SerialQueue> {
 public:
  using Task = std::function<void()>;
  using Executor = std::function<void(Task)>;

  explicit SerialQueue(Executor executor) : executor_(std::move(executor)) {}

  /// True if the queue stood still: the caller has to start() it.
  [[nodiscard]] bool push(Task task);
  void start();

 private:
  void run();

  const Executor executor_;

  LocalMutex mutex_;
  std::deque<Task> tasks_ LATCHKEY_GUARDED_BY(mutex_);
  bool running_ LATCHKEY_GUARDED_BY(mutex_) = false;
};

}  // namespace latchkey::base
