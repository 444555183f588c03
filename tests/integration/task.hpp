#pragma once

#include <atomic>
#include <coroutine>
#include <exception>
#include <memory>
#include <utility>

#include "support/eventually.hpp"

namespace latchkey::test_support {

/// As little of a coroutine type as will do. Destroying it destroys the coroutine, which must not
/// be running at that moment: it waits, or has ended.
class Task {
 public:
  struct promise_type {
    /// Says that the coroutine has ended when it is suspended for the last time, and not before.
    struct End {
      std::shared_ptr<std::atomic<bool>> ended;
      bool await_ready() noexcept { return false; }
      void await_suspend(std::coroutine_handle<>) noexcept { *std::shared_ptr(ended) = true; }
      void await_resume() noexcept {}
    };

    Task get_return_object() {
      return Task(std::coroutine_handle<promise_type>::from_promise(*this), ended);
    }
    std::suspend_never initial_suspend() noexcept { return {}; }
    End final_suspend() noexcept { return {ended}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }

    std::shared_ptr<std::atomic<bool>> ended = std::make_shared<std::atomic<bool>>(false);
  };

  Task(std::coroutine_handle<promise_type> handle, std::shared_ptr<std::atomic<bool>> ended)
      : handle_(handle), ended_(std::move(ended)) {}
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  ~Task() { handle_.destroy(); }

  [[nodiscard]] bool ends() const {
    return eventually([this] { return ended_->load(); });
  }

 private:
  std::coroutine_handle<promise_type> handle_;
  std::shared_ptr<std::atomic<bool>> ended_;
};

}  // namespace latchkey::test_support
