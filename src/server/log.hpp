#pragma once

#include <functional>
#include <string_view>
#include <utility>

#include "base/thread_annotations.hpp"
#include "latchkey/session.hpp"

namespace latchkey::server {

/// The user's log sink, called by one thread at a time. Thread safety: any thread.
class Log {
 public:
  using Sink = std::function<void(LogLevel, std::string_view)>;

  explicit Log(Sink sink) : sink_(std::move(sink)) {}

  void operator()(LogLevel level, std::string_view text) LATCHKEY_EXCLUDES(mutex_) {
    if (!sink_) return;
    const base::LocalLock lock(mutex_);
    sink_(level, text);
  }

 private:
  const Sink sink_;
  base::LocalMutex mutex_;
};

}  // namespace latchkey::server
