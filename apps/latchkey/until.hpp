#pragma once

#include <functional>
#include <string>

#include "latchkey/inspect.hpp"

namespace latchkey::app {

/// Watches the lock at `path` until `done` says so. That is called on another thread, and its last
/// call may still be under way when this has returned: it has to own what it needs. Errors:
/// kTimedOut at the deadline, and those of inspect().
///
///     auto freed = wait_until(session, "/locks/backup", is_free, deadline_in(1min));
[[nodiscard]] Result<void> wait_until(const Session& session, const std::string& path,
                                      const std::function<bool(const Queue&)>& done,
                                      Deadline deadline);

}  // namespace latchkey::app
