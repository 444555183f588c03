#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "base/process.hpp"

namespace latchkey::net {

/// A thread that receives none of the application's signals (H57). Not joinable if the system has
/// no thread to give.
[[nodiscard]] std::thread make_thread(const char* name, std::function<void()> body);

/// The same, detached. False if the system has no thread to give.
bool start_thread(const char* name, std::function<void()> body);

using base::process_id;

/// One object for each process: made on first use, made anew in a forked child, never destroyed.
template <class T>
T& per_process() {
  struct Holder {
    pid_t owner = process_id();
    T* object = new T;
  };
  static std::atomic<Holder*> current(new Holder);
  Holder* holder = current.load(std::memory_order_acquire);
  // In a child the parent's object is left alone: its threads did not come along, and its locks may
  // have been held at the fork.
  if (holder->owner != process_id()) {
    auto* fresh = new Holder;
    if (current.compare_exchange_strong(holder, fresh)) holder = fresh;
  }
  return *holder->object;
}

}  // namespace latchkey::net
