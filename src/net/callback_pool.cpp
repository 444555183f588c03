#include "net/callback_pool.hpp"

#include <chrono>

#include "net/threads.hpp"

namespace latchkey::net {

CallbackPool& CallbackPool::shared() { return per_process<CallbackPool>(); }

void CallbackPool::post(Task task) {
  bool grow = false;
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    grow = static_cast<std::size_t>(idle_) < tasks_.size() && threads_ < kMaxThreads;
    if (grow) ++threads_;
  }
  if (!grow) return work_.notify_one();
  if (start_thread("latchkey-call", [this] { run(); })) return;
  // No new thread: the existing ones, or the next call, will get to it.
  const std::lock_guard lock(mutex_);
  --threads_;
  work_.notify_one();
}

void CallbackPool::run() {
  constexpr std::chrono::seconds kPatience(5);
  std::unique_lock lock(mutex_);
  while (true) {
    if (tasks_.empty()) {
      ++idle_;
      const bool called = work_.wait_for(lock, kPatience, [&] { return !tasks_.empty(); });
      --idle_;
      if (!called) break;
    }
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    try {
      task();
    } catch (...) {  // NOLINT(bugprone-empty-catch): user code; there is nobody left to tell.
    }
    task = nullptr;
    lock.lock();
  }
  --threads_;
}

}  // namespace latchkey::net
