#pragma once

#include "command.hpp"

namespace latchkey::app {

/// `latchkey doctor [NAME]`: what is wrong with the servers and the locks, and what to try. Exit
/// codes: 0 nothing, 1 something, 69 no server.
Command add_doctor(CLI::App& app);

/// `latchkey gc`: removes directories of locks that nobody uses.
Command add_gc(CLI::App& app);

}  // namespace latchkey::app
