#include "base/serial_queue.hpp"

#include <utility>

namespace latchkey::base {

bool SerialQueue::push(Task task) {
  const LocalLock lock(mutex_);
  tasks_.push_back(std::move(task));
  return !std::exchange(running_, true);
}

void SerialQueue::start() {
  executor_([self = shared_from_this()] { self->run(); });
}

void SerialQueue::run() {
  while (true) {
    Task task;
    {
      const LocalLock lock(mutex_);
      if (tasks_.empty()) {
        running_ = false;
        return;
      }
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    try {
      task();
    } catch (...) {  // NOLINT(bugprone-empty-catch): session::Guard tells of user code.
    }
  }
}

}  // namespace latchkey::base
