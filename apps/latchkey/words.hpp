#pragma once

#include <unistd.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "latchkey/deadline.hpp"

/// What we say to people, on standard error. It is never a reason to fail: nobody may listen.
namespace latchkey::app {

/// Writes what can be written. Waits for a reader that is slow.
void write_words(std::string_view text, int fd = STDERR_FILENO);

///     say("latchkey wait: not free in time; {}\n", why);
template <typename... T>
void say(fmt::format_string<T...> format, T&&... values) {
  write_words(fmt::format(format, std::forward<T>(values)...));
}

/// The same for those who must not wait, because a lock may be lost meanwhile (H95): a pipe that
/// nobody reads or a terminal that Ctrl-S has halted keeps a thread of its own, and only while
/// there is something to write. Thread safety: any thread.
class Speaker {
 public:
  /// Beyond `most` texts that nobody has taken, more are only counted.
  explicit Speaker(std::size_t most = 100, int fd = STDERR_FILENO);

  void say(std::string text) const;
  /// Waits until all is written, but no longer than `most`.
  void finish(Duration most) const;

 private:
  struct Words;
  const std::shared_ptr<Words> words_;  ///< Shared with the thread, which may never end.
};

}  // namespace latchkey::app
