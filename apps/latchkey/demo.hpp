#pragma once

#include <chrono>

#include "command.hpp"

namespace latchkey::app {

/// Of the worker that is killed: short, so that its turn ends while one watches.
inline constexpr std::chrono::milliseconds kVictimTimeout(3'000);
/// Of the others: a machine that stands still for a while is not what this is about.
inline constexpr std::chrono::milliseconds kWorkerTimeout(30'000);

/// `latchkey demo`: workers queue for one lock, one is killed while it holds, the next takes over;
/// then readers and writers with both ways to watch. A summary in the end says whether order,
/// exclusion, tokens and wake-ups were as promised. The exit code is 0 only if they were.
Command add_demo(CLI::App& app);

/// `latchkey demo-worker`, one worker, as its own process; not for people. Lines "queued T",
/// "holding T TOKEN NODE", "released T" or "lost T", "woken T N" on standard output, T in
/// nanoseconds of the boot clock.
Command add_demo_worker(CLI::App& app);

}  // namespace latchkey::app
