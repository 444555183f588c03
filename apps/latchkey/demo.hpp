#pragma once

#include <chrono>
#include <string>

namespace latchkey::app {

/// Short, so that a dead worker's turn ends while one watches.
inline constexpr std::chrono::milliseconds kSessionTimeout(2'000);

struct DemoOptions {
  int workers = 5;
  std::chrono::milliseconds hold{700};
};

/// Runs the demonstration: workers queue for one lock, one is killed while it holds, the next takes
/// over, and a summary says whether order, exclusion and tokens were as promised. Returns the exit
/// code: 0 only if they were.
int run_demo(const DemoOptions& options);

struct DemoWorkerOptions {
  std::string connect;
  std::string directory;
  std::string name;
  std::chrono::milliseconds hold{700};
};

/// One worker, as its own process: lines "queued T", "holding T TOKEN NODE", "released T" on
/// standard output, T in nanoseconds of the boot clock.
int run_demo_worker(const DemoWorkerOptions& options);

}  // namespace latchkey::app
