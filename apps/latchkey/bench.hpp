#pragma once

#include "command.hpp"

namespace latchkey::app {

/// `latchkey bench`: a few seconds of sessions, locks and hand-overs against the service in use, on
/// a lock of its own that is removed in the end. Not the benchmark of this project, which is
/// ./dev bench: it tells how fast *this* service is from *here*.
Command add_bench(CLI::App& app);

}  // namespace latchkey::app
