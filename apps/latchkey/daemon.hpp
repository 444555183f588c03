#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "latchkey/deadline.hpp"
#include "latchkey/result.hpp"

namespace latchkey::app {

/// A process of ours that has nothing to do with the one that starts it: another session and
/// process group, no terminal, no descriptor of ours, the root as its folder, all signals as they
/// are for a new program, and it lives on when we end. Inside a latchkey run it comes to be a child
/// of that run, as every orphan does; is_daemon() tells it from what the command has left behind.
struct Daemon {
  std::vector<std::string> words;  ///< After "latchkey".
  std::string log_file;            ///< Takes its standard error; made for this user only.
  int keep = -1;                   ///< The one descriptor it gets, as number 3.
};

/// Starts it and returns the first line of its standard output, which is how it says that it is
/// ready. Errors: kUnreachable if it ended instead, with what it wrote to its log, or was not ready
/// at the deadline; kServerError if there can be no process.
///
///     auto ready = start_daemon({.words = {"serve", "--memory"}, .log_file = log}, deadline);
[[nodiscard]] Result<std::string> start_daemon(const Daemon& daemon, Deadline deadline);

/// Whether start_daemon() has started it: it has the name, and it is this program.
[[nodiscard]] bool is_daemon(pid_t process);

}  // namespace latchkey::app
