#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

namespace latchkey::net {

/// The process's threads for user callbacks. A task never waits for another one: if every thread is
/// busy a new one is started, up to a limit; a thread with nothing to do ends after a while. So a
/// slow callback of one session does not hold up the loss signal of another (H56).
///
/// There is one, shared and never destroyed, so that sessions may be destroyed after main() (H52).
/// Thread safety: any thread.
class CallbackPool {
 public:
  using Task = std::function<void()>;

  /// This process's pool: a forked child gets one of its own.
  static CallbackPool& shared();

  void post(Task task);

 private:
  static constexpr int kMaxThreads = 256;

  void run();

  std::mutex mutex_;
  std::condition_variable work_;
  std::deque<Task> tasks_;
  int threads_ = 0;
  int idle_ = 0;
};

}  // namespace latchkey::net
