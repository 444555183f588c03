#pragma once

#include <chrono>

#include "command.hpp"

namespace latchkey::app {

/// Short, so that a dead worker's turn ends while one watches.
inline constexpr std::chrono::milliseconds kSessionTimeout(2'000);

/// `latchkey demo`: workers queue for one lock, one is killed while it holds, the next takes over,
/// and a summary says whether order, exclusion and tokens were as promised; then readers and
/// writers with both ways to watch. The exit code is 0 only if every promise was kept.
Command add_demo(CLI::App& app);

/// `latchkey demo-worker`, one worker, as its own process; not for people. Lines "queued T",
/// "holding T TOKEN NODE", "released T", "woken T N" on standard output, T in nanoseconds of the
/// boot clock.
Command add_demo_worker(CLI::App& app);

}  // namespace latchkey::app
