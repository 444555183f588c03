#pragma once

#include "command.hpp"

namespace latchkey::app {

/// `latchkey once NAME [--] COMMAND...`: the first runs it, the others wait until it is done and go
/// on without. That it is done is kept by the service, in the node `done` below the lock's path; a
/// command that fails, or whose lock is lost, leaves it to the next.
Command add_once(CLI::App& app);

}  // namespace latchkey::app
