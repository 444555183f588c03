#pragma once

#include "command.hpp"

namespace latchkey::app {

/// `latchkey wait NAME`: returns when nobody holds the lock and nobody waits for it. Exit codes: 0,
/// or 1 if that did not happen in time.
Command add_wait(CLI::App& app);

/// `latchkey revoke NAME`: asks whoever holds it to let go. Exit codes: 0 asked, 1 nobody holds it,
/// or with --wait they did not let go in time.
Command add_revoke(CLI::App& app);

}  // namespace latchkey::app
