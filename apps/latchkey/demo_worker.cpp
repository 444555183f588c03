#include <poll.h>

#include <algorithm>
#include <atomic>
#include <iostream>
#include <memory>

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

std::int64_t now_ns() { return BootClock::now().time_since_epoch().count(); }

/// One line at once: two threads speak here.
void say(const std::string& what, std::int64_t when, const std::string& more = {}) {
  print_lines({fmt::format("{} {}{}", what, when, more)});
}

int run_demo_worker(const WorkerOptions& options) {
  using std::chrono::seconds;
  // Whoever is woken looks at the queue again; the first look is not one of those.
  // By then it has its place in the queue.
  const auto looks = std::make_shared<std::atomic<int>>(0);
  SessionOptions how{.timeout = kSessionTimeout};
  how.on_operation = [looks, began = now_ns()](const OperationReport& report) {
    if (report.operation.starts_with("getChildren") && ++*looks == 1) say("queued", began);
  };
  auto session = Session::open(options.connect, how, deadline_in(seconds(10)));
  if (!session) return std::cerr << options.name << ": " << session.error() << '\n', 1;
  const Lock lock = lock_of(options, *session);

  auto lease = lock.lock(deadline_in(seconds(60)));
  if (!lease) return std::cerr << options.name << ": " << lease.error() << '\n', 1;

  say("holding", now_ns(), fmt::format(" {} {}", to_string(lease->token()), lease->node()));
  ::poll(nullptr, 0, static_cast<int>(options.hold_ms));  // The work that only one may do.
  say("released", now_ns());
  lease->release();
  say("woken", now_ns(), fmt::format(" {}", std::max(0, *looks - 1)));
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
  return {command, [options] { return run_demo_worker(*options); }};
}

}  // namespace latchkey::app
