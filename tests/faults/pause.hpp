#pragma once

#include <condition_variable>
#include <mutex>

#include "latchkey/deadline.hpp"

namespace latchkey::faults {

/// The length of a fault, or of a client's work: part of the load, never a wait for something to
/// have happened. Thread safety: any thread.
inline void pause_for(Duration length) {
  std::mutex mutex;
  std::condition_variable never_signalled;
  std::unique_lock lock(mutex);
  never_signalled.wait_for(lock, length, [] { return false; });
}

}  // namespace latchkey::faults
