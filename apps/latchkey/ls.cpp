#include "ls.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "exit_code.hpp"
#include "find_locks.hpp"
#include "json.hpp"
#include "options.hpp"
#include "queue_view.hpp"
#include "service.hpp"
#include "terminal.hpp"
#include "words.hpp"

namespace latchkey::app {
namespace {

struct LookOptions {
  ServiceOptions service;
  std::string name;
  bool recursive = false;
  bool json = false;
  bool names = false;

  [[nodiscard]] bool wants_many() const { return name.empty() || recursive; }
  [[nodiscard]] std::string place() const { return name.empty() ? kLocksRoot : name; }
};

/// Somebody uses it, or it says of itself what it is. Below /locks every directory is a lock's;
/// elsewhere it may be anything.
bool is_surely_a_lock(const Queue& lock) {
  return lock.size || !is_free(lock) || std::ranges::any_of(lock.entries, is_done_mark) ||
         lock_name(lock.directory) != lock.directory;
}

/// One lock if a name was given, else all of them.
Result<std::vector<Queue>> look(const LookOptions& options) {
  const Result<std::string> path = lock_path(options.place());
  if (!path) return path.error();
  Result<Session> session = open_aloud(options.service, deadline_in(kOpenPatience));
  if (!session) return session.error();
  const Deadline deadline = deadline_in(kAnswerPatience);
  if (options.wants_many()) {
    Result<std::vector<Queue>> locks = find_locks(*session, *path, deadline);
    if (locks) std::erase_if(*locks, std::not_fn(is_surely_a_lock));
    return locks;
  }
  Result<Queue> lock = inspect(*session, *path, deadline);
  if (!lock) return lock.error();
  return std::vector{std::move(*lock)};
}

/// A name that is spelled wrong looks like a free lock.
std::string nothing_there(const Queue& lock) {
  return fmt::format("There is nothing at {}: not used lately, or spelled differently.\n",
                     printable(lock.directory));
}

/// What a table of the queue does not say.
void show_remarks(const Queue& lock) {
  if (lock.size && !lock.entries.empty()) say("{}.\n", permits_text(lock));
  if (!lock.exists) say("{}", nothing_there(lock));
  if (!lock.entries.empty() && !is_surely_a_lock(lock)) {
    say("Nobody queues here. latchkey ls -r {} lists the locks below it.\n",
        printable(lock.directory));
  }
  for (const std::string& warning : lock.warnings) {
    say("{}\n", paint("warning: " + printable(warning), Style::kBad, wanted_colour()));
  }
}

int list(const LookOptions& options) {
  const Result<std::vector<Queue>> locks = look(options);
  if (!locks) return complain("ls", locks.error());
  std::vector<std::string> lines;
  if (options.json || options.names) {
    for (const Queue& lock : *locks) {
      lines.push_back(options.json ? queue_json(lock) : printable(lock_name(lock.directory)));
    }
  } else if (options.wants_many() && locks->empty()) {
    say("There are no locks{} at or below {}.\n", options.recursive ? " in use" : "",
        printable(options.place()));
  } else if (options.wants_many()) {
    lines = render(locks_table(*locks, wall_clock_ms()), terminal_width(), wanted_colour());
  } else if (const Queue& lock = locks->front(); lock.entries.empty()) {
    lines = {queue_line(lock)};
  } else {
    lines = render(queue_table(lock, wall_clock_ms()), terminal_width(), wanted_colour());
  }
  print_lines(lines);
  if (!options.json && !options.names && !options.wants_many()) show_remarks(locks->front());
  return kOk;
}

int who(const LookOptions& options) {
  const Result<std::vector<Queue>> locks = look(options);
  if (!locks) return complain("who", locks.error());
  const Queue& lock = locks->front();
  const auto holders = lock.holders();
  if (options.json) {
    print_lines({queue_json(lock)});
  } else if (holders.empty()) {
    say("{}\n", queue_line(lock));
    if (!lock.exists) say("{}", nothing_there(lock));
  } else {
    std::vector<std::string> lines;
    for (const QueueEntry* holder : holders) {
      std::string line =
          who_text(*holder) + ", for " + age_text(wall_clock_ms() - holder->created_ms);
      if (const std::string reason = reason_text(*holder); !reason.empty()) line += ": " + reason;
      lines.push_back(printable(line));
    }
    print_lines(lines);
    if (lock.size) say("{}.\n", permits_text(lock));
  }
  return holders.empty() ? ExitCode::kBusy : kOk;
}

}  // namespace

Command add_ls(CLI::App& app) {
  const auto options = std::make_shared<LookOptions>();
  CLI::App* command = app.add_subcommand("ls", "List the locks, or one lock's queue");
  command->add_option("NAME", options->name, "The lock; without it all below /locks");
  command->add_flag("-r,--recursive", options->recursive,
                    "All locks at or below NAME, wherever that is");
  CLI::Option* json =
      command->add_flag("--json", options->json, "One JSON object to a line, for programs");
  command->add_flag("--names", options->names, "Names only, one to a line")->excludes(json);
  add_service_options(*command, options->service);
  command->footer(
      "Examples:\n"
      "  latchkey ls\n"
      "  latchkey ls backup\n"
      "  latchkey ls /services/ledger/leader\n"
      "  latchkey ls -r /services              every lock that is in use below that path\n"
      "  latchkey ls --json | jq -r 'select(.held) | .lock'\n"
      "\n"
      "A \"!\" behind the state: latchkey doctor NAME says what is wrong there.");
  return {command, [options] { return list(*options); }};
}

Command add_who(CLI::App& app) {
  const auto options = std::make_shared<LookOptions>();
  CLI::App* command = app.add_subcommand("who", "Who holds a lock?");
  command->add_option("NAME", options->name, "The lock")->required();
  command->add_flag("--json", options->json, "The lock as one JSON object, for programs");
  add_service_options(*command, options->service);
  command->footer(
      "Examples:\n"
      "  latchkey who backup\n"
      "  latchkey who backup && echo somebody\n"
      "\n"
      "Exit code: 0 if somebody holds it, 1 if nobody does. By the time you read it that may be\n"
      "past: to do something only if nobody else does it, use latchkey run -n.");
  return {command, [options] { return who(*options); }};
}

}  // namespace latchkey::app
