#pragma once

#include "command.hpp"

namespace latchkey::app {

/// `latchkey serve`: runs a server until SIGTERM or SIGINT, or until it fails. Exit codes: 0 after
/// a clean shutdown, 1 if it could not start or had to stop, 64 for options that contradict each
/// other, 78 for a configuration file that cannot be used.
Command add_serve(CLI::App& app);

}  // namespace latchkey::app
