#include "run.hpp"

#include <algorithm>

#include <CLI/CLI.hpp>

#include "command_options.hpp"
#include "exit_code.hpp"
#include "latchkey/multi_lock.hpp"
#include "latchkey/mutex.hpp"
#include "latchkey/rw_lock.hpp"
#include "latchkey/semaphore.hpp"
#include "lock_tenure.hpp"
#include "options.hpp"

namespace latchkey::app {
namespace {

using keeping::Rules;

struct RunOptions : CommandOptions {
  bool exclusive = false;
  bool shared = false;
  WaitOptions wait;
  std::optional<int> permits;
  std::optional<int> weight;
  std::vector<std::string> also;
  std::string on_lost = "stop";
  std::int64_t lock_delay_ms = 0;
  std::int64_t min_hold_ms = 0;
};

constexpr const char* kRunExamples =
    "Examples:\n"
    "  latchkey run backup -- ./backup.sh /srv       wait for the lock, then run\n"
    "  latchkey run -n nightly ./report.sh           exit 1 at once if it is taken\n"
    "  latchkey run -w 30 -E 99 deploy -- make push  exit 99 if it takes longer than 30 s\n"
    "  latchkey run -s table -- ./read.sh            shared: readers beside each other\n"
    "  latchkey run -N 4 encoders -- ffmpeg ...      at most four at a time, on all hosts\n"
    "  latchkey run a --also b -- ./both.sh          both or none, without deadlock\n"
    "  latchkey run backup -c 'tar c /srv | ssh store'\n"
    "\n"
    "The command finds LATCHKEY_LOCK, LATCHKEY_NODE and LATCHKEY_TOKEN in its environment; with\n"
    "--also the paths have \", \" between them, and the one token is for all of them.\n"
    "Exit codes: the command's own; 128+n if signal n ended it; 1 or -E: not to be had in time;\n"
    "64 usage, 69 no server, 71 system, 75 the lock was lost and the command stopped, 76 not such\n"
    "a lock, 77 not allowed, 78 configuration, 126 and 127 the command cannot be run.";

void add_options(CLI::App& command, RunOptions& options) {
  add_command_options(command, options);
  command.add_flag("-x,-e,--exclusive", options.exclusive, "One at a time (the default)");
  command.add_flag("-s,--shared", options.shared, "Beside other shared ones, not beside exclusive");
  add_wait_options(command, options.wait);
  add_number(command, "-N,--permits", options.permits, 1, kMostPermits, "TOTAL",
             "So many may hold it at a time");
  add_number(command, "--weight", options.weight, 1, kMostPermits, "K [1]",
             "How many of the permits to take");
  add_text(command, "--also", options.also, "NAME", "One more lock, all or none; repeatable")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command.add_option("--on-lost", options.on_lost, "What to do before the lock is lost")
      ->check([](const std::string& value) {
        const bool known = value == "stop" || value == "warn";
        return known ? std::string() : '"' + value + "\" is neither stop nor warn";
      })
      ->option_text("stop|warn [stop]");
  add_duration_or_zero(command, "--lock-delay", options.lock_delay_ms, "TIME",
                       "After a holder vanished, let this much time pass");
  add_duration_or_zero(command, "--min-hold", options.min_hold_ms, "TIME",
                       "Hold at least this long, so that a quick job is not run by every host");
  add_text(command, "--reason", options.reason, "TEXT", "What for, for those who look");
  command.footer(kRunExamples);
}

/// Two names may be one lock. What is no name is told later.
std::string path_or_name(const std::string& name) { return lock_path(name).value_or(name); }

std::vector<std::string> paths_of(const RunOptions& options) {
  std::vector<std::string> all = {path_or_name(options.name)};
  std::ranges::transform(options.also, std::back_inserter(all), path_or_name);
  return all;
}

/// What is wrong with the options together; empty if nothing is.
std::string nonsense(const RunOptions& options) {
  if (options.exclusive && options.shared) return "-x and -s exclude each other";
  if (options.weight && !options.permits) return "--weight needs -N TOTAL, the number of permits";
  if (options.weight.value_or(1) > options.permits.value_or(1)) {
    return "--weight is more than there are permits (-N " + std::to_string(*options.permits) + ")";
  }
  if (options.permits && (options.shared || options.exclusive)) {
    return "-N makes a semaphore, which is neither exclusive nor shared: leave out -x or -s";
  }
  if (!options.also.empty() && (options.shared || options.permits)) {
    return "--also takes exclusive locks: leave out -s or -N";
  }
  std::vector<std::string> all = paths_of(options);
  std::ranges::sort(all);
  if (const auto twice = std::ranges::adjacent_find(all); twice != all.end()) {
    return *twice + " is named twice: it would wait for itself";
  }
  const bool plain = !options.shared && !options.permits && options.also.empty();
  if (options.lock_delay_ms > 0 && !plain) {
    return "--lock-delay is for one exclusive lock: leave out -s, -N or --also";
  }
  return {};
}

/// The lock that the options describe, once there is a session. Errors: kInvalidPath.
Result<std::function<Lock(const Session&)>> recipe_of(const RunOptions& options,
                                                      const std::string& reason) {
  auto path = lock_path(options.name);
  if (!path) return path.error();
  std::vector<Path> paths{Path(*path)};
  for (const std::string& name : options.also) {
    auto more = lock_path(name);
    if (!more) return more.error();
    paths.emplace_back(*more);
  }
  using Recipe = std::function<Lock(const Session&)>;
  const Path first = paths.front();
  if (paths.size() > 1) {
    return Recipe([paths, reason](const Session& session) {
      return MultiLock(session, paths, {.reason = reason});
    });
  }
  if (options.shared) {
    return Recipe([first, reason](const Session& session) {
      return RwLock(session, first, {.reason = reason}).read();
    });
  }
  if (options.permits) {
    return Recipe([first, reason, size = *options.permits,
                   weight = options.weight.value_or(1)](const Session& session) {
      return Semaphore(session, first, {.size = size, .reason = reason}).permits(weight);
    });
  }
  return Recipe([first, reason,
                 delay = std::chrono::milliseconds(options.lock_delay_ms)](const Session& session) {
    return Mutex(session, first, {.reason = reason, .lock_delay = delay});
  });
}

int run(const RunOptions& options, const std::vector<std::string>& words) {
  if (const std::string wrong = nonsense(options); !wrong.empty())
    return misused("run", wrong, options.status_fd);
  auto keep_it = keep_options("run", options, words);
  if (!keep_it) return misused("run", keep_it.error().message(), options.status_fd);
  auto recipe = recipe_of(options, reason_of(options, *keep_it));
  if (!recipe) return misused("run", recipe.error().message(), options.status_fd);

  std::vector<std::string> alone;
  if (!options.shared && !options.permits) alone = paths_of(options);
  if (const std::string wrong = check_nesting(options, options.wait, alone, *keep_it);
      !wrong.empty()) {
    return misused("run", wrong, options.status_fd);
  }

  keep_it->rules.min_hold = std::chrono::milliseconds(options.min_hold_ms);
  if (options.on_lost == "warn") keep_it->rules.on_lost = Rules::OnLost::kWarn;
  const LockWish wish = lock_wish(options, options.wait, *recipe);
  return keep(*keep_it, [&] { return std::make_unique<LockTenure>(wish); });
}

}  // namespace

Command add_run(CLI::App& app) {
  CLI::App* command = app.add_subcommand("run", "Run a command while holding a lock");
  auto options = std::make_shared<RunOptions>();
  auto words = std::make_shared<std::vector<std::string>>();
  add_options(*command, *options);
  return {command, [options, words] { return run(*options, *words); }, words};
}

}  // namespace latchkey::app
