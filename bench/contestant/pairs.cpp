#include "pairs.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <exception>
#include <mutex>
#include <semaphore>
#include <stdexcept>
#include <thread>
#include <vector>

namespace latchkey::bench {

namespace {

/// Measured sections are empty, so that two at a time would hardly ever meet; while all warm up
/// they have time to.
constexpr std::chrono::microseconds kSection(200);

enum class Phase { kWarmUp, kMeasured, kOver };

struct Worker {
  std::unique_ptr<Locker> locker;
  Judge* judge = nullptr;
  std::vector<std::uint32_t> latencies_ns;
  std::string error;
};

void work(Worker& worker, const std::atomic<Phase>& phase) {
  std::binary_semaphore nobody(0);
  while (true) {
    const Phase now = phase.load(std::memory_order_relaxed);
    if (now == Phase::kOver) return;
    const auto start = Clock::now();
    worker.judge->enter(worker.locker->lock());
    if (now == Phase::kWarmUp) static_cast<void>(nobody.try_acquire_for(kSection));
    worker.judge->leave();
    worker.locker->unlock();
    const auto took = Clock::now() - start;
    if (now != Phase::kMeasured) continue;
    worker.latencies_ns.push_back(static_cast<std::uint32_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(took).count()));
  }
}

/// Lets the time pass, unless a worker gives up.
class Interval {
 public:
  void give_up() {
    const std::lock_guard guard(mutex_);
    given_up_ = true;
    changed_.notify_all();
  }
  void pass(double seconds) {
    std::unique_lock guard(mutex_);
    changed_.wait_for(guard, std::chrono::duration<double>(seconds), [&] { return given_up_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool given_up_ = false;
};

void add_counts(std::deque<Worker>& workers, Report& report) {
  std::vector<std::uint32_t> all;
  double fewest = 1e18;
  double most = 0;
  for (const Worker& worker : workers) {
    if (!worker.error.empty()) throw std::runtime_error(worker.error);
    const auto own = static_cast<double>(worker.latencies_ns.size());
    fewest = std::min(fewest, own);
    most = std::max(most, own);
    all.insert(all.end(), worker.latencies_ns.begin(), worker.latencies_ns.end());
  }
  report.add("ops", static_cast<double>(all.size()));
  report.add("fewest", fewest);
  report.add("most", most);
  report.add_latencies(all);
}

}  // namespace

int run_pairs(const Options& options, const MakeLocker& make_locker, Report& report) {
  const int sessions = options.number("sessions", 1);
  const int each = options.number("workers", 1);
  const bool one = options.text("locks", "own") == "one";
  std::deque<Judge> judges(one ? 1 : static_cast<std::size_t>(sessions * each));
  std::deque<Worker> workers(static_cast<std::size_t>(sessions * each));
  for (std::size_t i = 0; i < workers.size(); ++i) {
    const std::size_t lock = one ? 0 : i;
    workers[i].judge = &judges[lock];
    workers[i].locker =
        make_locker(static_cast<int>(i) / each, options.text("path") + '/' + std::to_string(lock));
    workers[i].latencies_ns.reserve(1U << 16U);
  }
  std::atomic<Phase> phase{Phase::kWarmUp};
  Interval interval;
  std::vector<std::jthread> threads;
  for (Worker& worker : workers) {
    threads.emplace_back([&worker, &phase, &interval] {
      try {
        work(worker, phase);
      } catch (const std::exception& error) {
        worker.error = error.what();
        phase = Phase::kOver;
        interval.give_up();
      }
    });
  }
  interval.pass(options.real("warmup", 0.5));
  say_begin();
  const double processor_before = processor_s();
  const auto start = Clock::now();
  if (phase != Phase::kOver) phase = Phase::kMeasured;
  interval.pass(options.real("seconds", 1));
  phase = Phase::kOver;
  report.add("seconds", seconds_since(start));
  report.add("cpu_s", processor_s() - processor_before);
  threads.clear();
  add_counts(workers, report);
  report.add("rss_kb", static_cast<double>(resident_kb()));
  int violations = 0;
  for (const Judge& judge : judges) violations += judge.violations();
  return violations;
}

int run_contestant(int argc, char** argv, const std::function<void(const Options&, Report&)>& run) {
  try {
    const Options options(argc, argv);
    Report report;
    run(options, report);
    report.print();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

}  // namespace latchkey::bench
