#pragma once

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

/// Shows that line on standard error, a terminal, and keeps it up to date until the result is
/// destroyed, which removes it.
[[nodiscard]] std::shared_ptr<void> show_waiting(const Session& session, const Path& directory);

}  // namespace latchkey::app
