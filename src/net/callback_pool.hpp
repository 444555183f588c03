#pragma once

#include <signal.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

namespace latchkey::net {

/// The process's threads for user code. A task does not wait for another one: if every thread is
/// busy a new one is started, up to a limit; a thread with nothing to do ends after a while. If the
/// system has no thread to give, the pool asks again until it has one.
///
/// There are two pools, shared by all sessions and never destroyed, so that sessions may be
/// destroyed after main() (H52). User code runs with the signal mask of the thread that opened the
/// first session, so that its child processes can be ended by a signal.
/// Thread safety: any thread.
class CallbackPool {
 public:
  using Task = std::function<void()>;
  /// As start_thread().
  using Starter = std::function<bool(const char* name, std::function<void()> body)>;

  struct Rules {
    const char* name;    ///< Of its threads.
    int most;            ///< Threads at a time.
    int spare = 0;       ///< Threads that are there before a task comes.
    Starter start = {};  ///< For tests.
  };

  /// For answers, watchers and hooks. A forked child gets a pool of its own.
  static CallbackPool& callbacks();
  /// For what tells user code to stop. It waits neither for callbacks nor for the signals of other
  /// locks. One thread is there from the first session on, and the next is made before user code
  /// runs on it; only if the system has no thread to give then, a second signal waits for one, or
  /// for the first to return (H56). Throws std::system_error if the first cannot be had.
  static CallbackPool& signals();

  /// Throws std::system_error if the spare threads cannot be had.
  explicit CallbackPool(Rules rules);

  void post(Task task);

 private:
  void run();
  /// How many threads should be made now.
  [[nodiscard]] int wanted() const;
  void grow(std::unique_lock<std::mutex>& lock);
  void ask_again_later();

  const Rules rules_;
  sigset_t mask_{};

  std::mutex mutex_;
  std::condition_variable work_;
  std::deque<Task> tasks_;
  int threads_ = 0;
  int idle_ = 0;  ///< Of them, without a task, or about to begin.
  bool asks_again_ = false;
};

}  // namespace latchkey::net
