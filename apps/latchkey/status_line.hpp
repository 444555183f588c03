#pragma once

#include <optional>
#include <string>

#include "keeper.hpp"
#include "latchkey/deadline.hpp"

namespace latchkey::app {

/// What --status-fd tells a program that cannot know from the exit code alone: a command may well
/// exit with 1 or 75 by itself.
struct Status {
  int code = 0;
  std::string error;  ///< Empty: nothing went wrong with the lock.
  std::string lock;
  std::string node;
  std::string token;  ///< Empty: it was never held.
  bool lost = false;
  std::optional<keeping::Ending> ending;  ///< Of the command, if it ran.
  int signal = 0;                         ///< The last one that came to us.
  Instant began = Instant::min();
  Instant granted = Instant::min();
  Instant ended = Instant::min();
};

/// One line without its end:
///
///     {"outcome":"ended","exit":0,"lock":"/locks/backup","token":"4294967321",...}
///
/// The outcome is "ended" (the command did, by itself or by a signal), "lost", "not_started",
/// "done_before" (latchkey once), "interrupted" (while waiting) or "refused".
[[nodiscard]] std::string format_status(const Status& status);
/// That line and its end, to a descriptor that may have no reader, or one that does not read: it is
/// given a second.
void write_status(int fd, const Status& status);

}  // namespace latchkey::app
