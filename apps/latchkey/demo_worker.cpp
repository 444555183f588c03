#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <iostream>
#include <memory>
#include <mutex>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "demo.hpp"
#include "latchkey/mutex.hpp"
#include "latchkey/rw_lock.hpp"
#include "options.hpp"
#include "terminal.hpp"

namespace latchkey::app {
namespace {

struct WorkerOptions {
  std::string connect;
  std::string directory;
  std::string name;
  std::string mode = "mutex";
  std::string watch = "targeted";
  std::int64_t hold_ms = 700;
  std::int64_t timeout_ms = kWorkerTimeout.count();
  int until_queued = 0;  ///< Hold until so many are in the queue, and then for `hold_ms`.
};

Lock lock_of(const WorkerOptions& options, const Session& session) {
  if (options.mode == "mutex") {
    return Mutex(session, options.directory, {.reason = options.name});
  }
  const RwLock lock(
      session, options.directory,
      {.reason = options.name,
       .watch = options.watch == "directory" ? WatchPolicy::kDirectory : WatchPolicy::kTargeted});
  return options.mode == "write" ? lock.write() : lock.read();
}

constexpr std::chrono::seconds kWorkerPatience(60);

std::int64_t boot_ns() { return BootClock::now().time_since_epoch().count(); }

/// One line at once: two threads speak here.
void tell_story(const std::string& what, std::int64_t when, const std::string& more = {}) {
  print_lines({fmt::format("{} {}{}", what, when, more)});
}

/// That we have our place, told once and before anything that comes of it. Any thread.
class PlaceNews {
 public:
  void tell() {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(told_, true)) tell_story("queued", boot_ns());
  }

 private:
  std::mutex mutex_;
  bool told_ = false;
};

/// The work that only one may do. False: the lock was lost meanwhile.
bool work(const Lease& lease, std::chrono::milliseconds time) {
  std::mutex mutex;
  std::condition_variable_any lost;
  std::unique_lock lock(mutex);
  lost.wait_for(lock, lease.lost(), time, [] { return false; });
  return !lease.lost().stop_requested();
}

bool wait_for_others(Session& session, const WorkerOptions& options, const Lease& lease) {
  constexpr std::chrono::milliseconds kLookAgain(20);
  const Deadline deadline = deadline_in(kWorkerPatience);
  while (!deadline.has_passed(BootClock::now())) {
    const auto queue = session.children(options.directory, deadline);
    if (!queue || static_cast<int>(queue->names.size()) >= options.until_queued) break;
    if (!work(lease, kLookAgain)) return false;
  }
  return true;
}

int run_demo_worker(const WorkerOptions& options) {
  // Whoever is woken looks at the queue again; the first look is not one of those.
  // By then it has its place in the queue.
  const auto looks = std::make_shared<std::atomic<int>>(0);
  SessionOptions how{.timeout = std::chrono::milliseconds(options.timeout_ms)};
  const auto place = std::make_shared<PlaceNews>();
  how.on_operation = [looks, place](const OperationReport& report) {
    if (report.operation.starts_with("getChildren") && ++*looks == 1) place->tell();
  };
  auto session = Session::open(options.connect, how, deadline_in(kWorkerPatience));
  if (!session) return std::cerr << options.name << ": " << session.error() << '\n', 1;
  const Lock lock = lock_of(options, *session);

  auto lease = lock.lock(deadline_in(kWorkerPatience));
  if (!lease) return std::cerr << options.name << ": " << lease.error() << '\n', 1;

  place->tell();
  const int woken = std::max(0, *looks - 1);
  tell_story("holding", boot_ns(), fmt::format(" {} {}", to_string(lease->token()), lease->node()));
  const bool held = wait_for_others(*session, options, *lease) &&
                    work(*lease, std::chrono::milliseconds(options.hold_ms));
  tell_story(held ? "released" : "lost", boot_ns());
  lease->release();
  tell_story("woken", boot_ns(), fmt::format(" {}", woken));
  return 0;
}

}  // namespace

Command add_demo_worker(CLI::App& app) {
  const auto options = std::make_shared<WorkerOptions>();
  CLI::App* command = app.add_subcommand("demo-worker", "One process of the demonstration");
  command->group("");  // Left out of the help.
  command->add_option("--connect", options->connect)->required();
  command->add_option("--directory", options->directory)->required();
  command->add_option("--name", options->name)->required();
  command->add_option("--mode", options->mode);
  command->add_option("--watch", options->watch);
  add_duration(*command, "--hold", options->hold_ms, "");
  add_duration(*command, "--timeout", options->timeout_ms, "");
  command->add_option("--until-queued", options->until_queued);
  return {command, [options] { return run_demo_worker(*options); }};
}

}  // namespace latchkey::app
