#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "options.hpp"
#include "report.hpp"

namespace latchkey::bench {

/// One lock in the hands of one worker. Errors are thrown: a benchmark in which something fails is
/// no measurement.
class Locker {
 public:
  virtual ~Locker() = default;

  /// Returns when the lock is held: a number that has to grow from hold to hold of one lock (a
  /// fencing token, a sequence number), or 0 where the contestant has none.
  virtual std::int64_t lock() = 0;
  virtual void unlock() = 0;
};

/// Watches one lock from the inside. Wrong is: somebody else is in, or a number that did not grow.
class Judge {
 public:
  void enter(std::int64_t number) {
    if (inside_.exchange(true)) ++violations_;
    if (number != 0 && last_.exchange(number) >= number) ++violations_;
  }
  void leave() { inside_.store(false); }
  [[nodiscard]] int violations() const { return violations_; }

 private:
  std::atomic<bool> inside_{false};
  std::atomic<std::int64_t> last_{0};
  std::atomic<int> violations_{0};
};

/// Makes the locker of a worker: on which session, and for which path.
using MakeLocker = std::function<std::unique_ptr<Locker>(int session, const std::string& path)>;

/// Workload "pairs": `--sessions` times `--workers` threads lock and unlock for `--warmup` and then
/// `--seconds`, each a lock of its own under `--path` or, with `--locks one`, all the same one.
/// Adds counts, latencies of whole pairs, processor time and memory; returns the violations, which
/// the caller adds to its own.
int run_pairs(const Options& options, const MakeLocker& make_locker, Report& report);

/// Runs the program: prints what was thrown and returns the status of main().
int run_contestant(int argc, char** argv, const std::function<void(const Options&, Report&)>& run);

}  // namespace latchkey::bench
