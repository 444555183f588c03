#pragma once

#include "command.hpp"

namespace latchkey::app {

/// `latchkey hold NAME --for TIME`: a person's lock, kept by a process in the background until it
/// runs out or is released. Exit codes: 0 held, 1 busy or not in time.
Command add_hold(CLI::App& app);

/// `latchkey hold-keeper`: that process; not for people. Its first line is "held TOKEN NODE" or
/// "failed CODE MESSAGE".
Command add_hold_keeper(CLI::App& app);

/// `latchkey release NAME`: ends it. Exit codes: 0 released, 1 nobody holds it by hand or it did
/// not end in time, 77 somebody else does.
Command add_release(CLI::App& app);

}  // namespace latchkey::app
