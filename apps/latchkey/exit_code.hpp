#pragma once

#include <string_view>

#include "latchkey/error.hpp"

namespace latchkey::app {

/// How `latchkey` ends when it is not a command's own code that it passes on. Scripts rely on them:
/// they are in the manual. 128+n: a signal n has ended the command.
enum ExitCode : int {
  kOk = 0,
  kBusy = 1,  ///< Not to be had at once, or not in time. -E chooses another.
  kUsage = 64,
  kNoServer = 69,
  kOsError = 71,  ///< fork and the like.
  kLost = 75,
  kIncompatible = 76,  ///< The path holds something that is not such a lock.
  kNoPermission = 77,  ///< Authentication or access.
  kConfiguration = 78,
  kCannotExecute = 126,
  kNotFound = 127,
};

/// What an error of the library means to a script.
[[nodiscard]] ExitCode exit_code_of(Code code);

/// Says on standard error what went wrong for `latchkey <command>`, and returns its exit code.
///
///     if (!session) return complain("who", session.error());
int complain(std::string_view command, const Error& error);

}  // namespace latchkey::app
