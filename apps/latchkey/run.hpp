#pragma once

#include "command.hpp"

namespace latchkey::app {

/// `latchkey run NAME [--] COMMAND...`: runs a command while a lock is held, with flock's letters
/// where flock has them.
Command add_run(CLI::App& app);

}  // namespace latchkey::app
