#pragma once

#include "command.hpp"

namespace latchkey::app {

/// `latchkey watch [NAME]`: the queues as they change, on the whole screen of a terminal, as lines
/// elsewhere; with --events the changes of one node. Runs until it is interrupted.
Command add_watch(CLI::App& app);

}  // namespace latchkey::app
