#pragma once

#include "command.hpp"

namespace latchkey::app {

/// `latchkey ls [NAME]`: every lock there is, or one lock's queue.
Command add_ls(CLI::App& app);

/// `latchkey who NAME`: who holds it. Exit codes: 0 somebody does, 1 nobody.
Command add_who(CLI::App& app);

}  // namespace latchkey::app
