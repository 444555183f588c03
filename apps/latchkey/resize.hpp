#pragma once

#include "command.hpp"

namespace latchkey::app {

/// `latchkey resize`: changes how many permits a semaphore of `latchkey run -N` has.
Command add_resize(CLI::App& app);

}  // namespace latchkey::app
