#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "latchkey/inspect.hpp"
#include "latchkey/session.hpp"

namespace latchkey::app {

/// What somebody who waits wants to know, in one line; `session` is ours.
///
///     waiting for /locks/backup, 2nd in line; held by db1 (pid 4711, nightly run)
[[nodiscard]] std::string format_waiting(const Queue& queue, std::int64_t session);

/// That line on standard error, a terminal, kept up to date until this is destroyed, which removes
/// it. Only while `job`, the process group that the shell knows, has the terminal: over a prompt it
/// would be a nuisance. Thread safety: one thread at a time.
class WaitingLine {
 public:
  WaitingLine(const Session& session, const Path& directory, pid_t job);
  ~WaitingLine();
  WaitingLine(const WaitingLine&) = delete;
  WaitingLine& operator=(const WaitingLine&) = delete;

  /// To be called now and then: the terminal may have gone or come back.
  void refresh();

 private:
  class Line;
  std::shared_ptr<Line> line_;  ///< Shared with the watch, whose last call may come late.
  QueueWatch watch_;
};

}  // namespace latchkey::app
