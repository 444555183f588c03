#pragma once

#include <sys/types.h>

#include <optional>
#include <span>
#include <string>

#include "latchkey/deadline.hpp"
#include "latchkey/result.hpp"
#include "locate.hpp"

namespace latchkey::app {

/// The address of the user's own server, "unix:...", which is started if there is none.
///
/// One at a time, whoever asks: a file in its folder is locked by the one who starts it, and the
/// lock is handed on to the server, which has it until its process ends, in whatever way. The
/// address is in that file: the one who starts it may see other folders than those who come later
/// (a cron job has no XDG_RUNTIME_DIR).
///
/// It does not promise that somebody listens there: a server that is about to begin has its lock
/// already, one that is about to end has it still. Ask again when nobody answers.
/// Errors: kInvalidOption for folders that cannot be used, kUnreachable and kServerError if the
/// server does not start, or if it runs on another host that shares the folder.
[[nodiscard]] Result<std::string> find_own_server(const OwnServer& own, Deadline deadline);

/// The process that listens at "unix:..."; nothing if nobody does.
[[nodiscard]] std::optional<pid_t> listener_at(const std::string& address);

/// A folder for this user only; made if it is missing, its parents as well. Errors: kInvalidOption.
[[nodiscard]] Result<void> make_private_folder(const std::string& folder);

/// The same when it has just been lost: one that was killed may keep its lock for a moment longer
/// than its connections.
[[nodiscard]] Result<std::string> revive_own_server(const OwnServer& own, Deadline deadline);

/// The first of these names for a socket whose folder is for this user only, or could be made so.
[[nodiscard]] std::optional<std::string> choose_socket(std::span<const std::string> names);

}  // namespace latchkey::app
