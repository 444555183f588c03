#include "net/callback_pool.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <limits>
#include <memory>
#include <system_error>
#include <utility>

#include <asio/steady_timer.hpp>

#include "net/io_thread.hpp"
#include "net/threads.hpp"

namespace latchkey::net {
namespace {

struct Callbacks : CallbackPool {
  Callbacks() : CallbackPool({.name = "latchkey-call", .most = 256}) {}
};

struct Signals : CallbackPool {
  Signals()
      : CallbackPool(
            {.name = "latchkey-signal", .most = std::numeric_limits<int>::max(), .spare = 1}) {}
};

}  // namespace

CallbackPool& CallbackPool::callbacks() { return per_process<Callbacks>(); }
CallbackPool& CallbackPool::signals() { return per_process<Signals>(); }

CallbackPool::CallbackPool(Rules rules) : rules_(std::move(rules)) {
  ::pthread_sigmask(SIG_SETMASK, nullptr, &mask_);
  std::unique_lock lock(mutex_);
  grow(lock);
  if (idle_ < rules_.spare) throw std::system_error(EAGAIN, std::generic_category(), rules_.name);
}

void CallbackPool::post(Task task) {
  std::unique_lock lock(mutex_);
  tasks_.push_back(std::move(task));
  work_.notify_one();
  grow(lock);
}

int CallbackPool::wanted() const {
  const auto tasks = static_cast<int>(tasks_.size());
  return std::min(tasks + rules_.spare - idle_, rules_.most - threads_);
}

void CallbackPool::grow(std::unique_lock<std::mutex>& lock) {
  while (wanted() > 0) {
    ++threads_;
    ++idle_;
    lock.unlock();
    const auto body = [this] { run(); };
    const bool started =
        rules_.start ? rules_.start(rules_.name, body) : start_thread(rules_.name, body);
    lock.lock();
    if (started) continue;
    --threads_;
    --idle_;
    return ask_again_later();
  }
}

void CallbackPool::ask_again_later() {
  constexpr std::chrono::milliseconds kPause(10);
  if (tasks_.empty() && threads_ == 0) return;  // The constructor says so.
  if (std::exchange(asks_again_, true)) return;
  const auto timer = std::make_shared<asio::steady_timer>(IoThread::shared().context(), kPause);
  timer->async_wait([this, timer](const asio::error_code&) {
    std::unique_lock lock(mutex_);
    asks_again_ = false;
    grow(lock);
  });
}

void CallbackPool::run() {
  constexpr std::chrono::seconds kPatience(5);
  const auto called = [this] { return !tasks_.empty(); };
  std::unique_lock lock(mutex_);
  while (true) {
    if (idle_ <= rules_.spare) {
      work_.wait(lock, called);
    } else if (!work_.wait_for(lock, kPatience, called)) {
      if (idle_ > rules_.spare) break;
      continue;
    }
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    --idle_;
    grow(lock);  // For the next one, before user code takes its time.
    lock.unlock();
    sigset_t ours;
    ::pthread_sigmask(SIG_SETMASK, &mask_, &ours);
    try {
      task();
    } catch (...) {  // NOLINT(bugprone-empty-catch): session::Guard tells of user code.
    }
    task = nullptr;
    ::pthread_sigmask(SIG_SETMASK, &ours, nullptr);
    lock.lock();
    ++idle_;
  }
  --idle_;
  --threads_;
}

}  // namespace latchkey::net
