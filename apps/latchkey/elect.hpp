#pragma once

#include "command.hpp"

namespace latchkey::app {

/// `latchkey elect NAME [--] COMMAND...`: keeps one instance of a command running somewhere;
/// `latchkey elect NAME --observe` prints who leads, as it changes.
Command add_elect(CLI::App& app);

}  // namespace latchkey::app
