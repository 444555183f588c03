#include "watch.hpp"

#include <poll.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "exit_code.hpp"
#include "find_locks.hpp"
#include "hold_note.hpp"
#include "json.hpp"
#include "options.hpp"
#include "queue_view.hpp"
#include "screen.hpp"
#include "service.hpp"
#include "terminal.hpp"

namespace latchkey::app {
namespace {

constexpr int kSecond = 1'000;
/// Changes that follow each other closely are shown together.
constexpr int kGatherMs = 50;

struct WatchOptions {
  ServiceOptions service;
  std::string name;
  std::string events;  ///< A path: its events, and no queue.
  bool recursive = false;
  bool json = false;
};

/// What the session's threads leave for the one that shows it.
struct News {
  std::mutex mutex;
  std::vector<Queue> locks;                       // Guarded by mutex.
  std::optional<Error> error;                     // Guarded by mutex.
  std::vector<std::string> lines;                 // Guarded by mutex. Events, ready to be printed.
  SessionState state = SessionState::kConnected;  // Guarded by mutex.

  std::optional<Error> take_error() {
    const std::lock_guard lock(mutex);
    return std::exchange(error, std::nullopt);
  }
};

class Watching {
 public:
  explicit Watching(const WatchOptions& options)
      : options_(options),
        whole_(is_terminal() && !options.json && options.events.empty()),
        news_(std::make_shared<News>()),
        screen_(std::make_shared<Screen>(whole_ ? Screen::Use::kWhole : Screen::Use::kLines)) {}

  int run();

 private:
  Result<void> begin(Session& session);
  Result<void> survey(Session& session);
  int finish(const Error& error);
  void show();
  void show_lines(const std::vector<Queue>& locks);
  void show_screen(const std::vector<Queue>& locks, SessionState state);
  Watcher event_printer();
  /// Rings as long as there is a screen.
  std::function<void()> ringer() {
    return [screen = std::weak_ptr(screen_)] {
      if (const auto live = screen.lock()) live->ring();
    };
  }

  const WatchOptions& options_;
  const bool whole_;
  const std::shared_ptr<News> news_;
  std::shared_ptr<Screen> screen_;
  std::string path_;
  std::optional<QueueWatch> watch_;
  std::map<std::string, std::string> shown_;  ///< The last line of each lock.
};

Watcher Watching::event_printer() {
  return [news = news_, ring = ringer(), json = options_.json](const WatchEvent& event) {
    const std::string when = utc_text(wall_clock_ms());
    const std::lock_guard lock(news->mutex);
    if (event.kind == EventKind::kSessionOver) {
      news->error = Error(Code::kSessionLost, "the session is over: events may have been missed");
    } else if (json) {
      news->lines.push_back(JsonLine()
                                .add("time", when)
                                .add("event", name(event.kind))
                                .add("path", event.path)
                                .text());
    } else {
      news->lines.push_back(fmt::format("{} {} {}", when, name(event.kind), printable(event.path)));
    }
    ring();
  };
}

Result<void> Watching::begin(Session& session) {
  const Deadline deadline = deadline_in(kAnswerPatience);
  if (!options_.events.empty()) {
    const WatchMode mode =
        options_.recursive ? WatchMode::kPersistentRecursive : WatchMode::kPersistent;
    return session.call(AddWatch{path_, mode, event_printer()}, deadline);
  }
  if (options_.name.empty()) {
    const auto watcher = [ring = ringer()](const WatchEvent&) { ring(); };
    if (Result<void> added =
            session.call(AddWatch{path_, WatchMode::kPersistentRecursive, watcher}, deadline);
        !added) {
      return added;
    }
    return survey(session);
  }
  watch_.emplace(session, path_, [news = news_, ring = ringer()](Result<Queue> queue) {
    const std::lock_guard lock(news->mutex);
    if (queue) {
      news->locks = {std::move(*queue)};
    } else {
      news->error = queue.error();
    }
    ring();
  });
  return {};
}

Result<void> Watching::survey(Session& session) {
  Result<std::vector<Queue>> locks = find_locks(session, path_, deadline_in(kAnswerPatience));
  if (!locks && is_retryable(locks.error().code())) return {};  // The next change shows it.
  if (!locks) return locks.error();
  const std::lock_guard lock(news_->mutex);
  news_->locks = std::move(*locks);
  return {};
}

void Watching::show_lines(const std::vector<Queue>& locks) {
  std::vector<std::string> lines;
  std::map<std::string, std::string> now;
  for (const Queue& lock : locks) {
    now[lock.directory] = options_.json ? queue_json(lock) : queue_line(lock);
  }
  for (const auto& [path, line] : shown_) {
    if (now.contains(path)) continue;
    Queue gone;
    gone.directory = path;
    lines.push_back(options_.json ? queue_json(gone) : queue_line(gone));
  }
  for (const auto& [path, line] : now) {
    if (const auto old = shown_.find(path); old != shown_.end() && old->second == line) continue;
    lines.push_back(line);
  }
  shown_ = std::move(now);
  if (!options_.json) {
    for (std::string& line : lines) line.insert(0, utc_text(wall_clock_ms()) + " ");
  }
  print_lines(lines);
}

void Watching::show_screen(const std::vector<Queue>& locks, SessionState state) {
  const std::size_t width = terminal_width();
  const std::int64_t now = wall_clock_ms();
  std::vector<std::string> lines;
  const bool one = !options_.name.empty();
  std::string title = one && !locks.empty() ? queue_line(locks.front())
                                            : fmt::format("{} locks below {}", locks.size(), path_);
  if (state != SessionState::kConnected) title += "  (no connection: looking for a server)";
  lines.push_back(cut_to(title, width));
  lines.push_back(
      paint(cut_to(utc_text(now) + "  q or Ctrl-C ends", width), Style::kFaint, wanted_colour()));
  const Table table =
      one && !locks.empty() ? queue_table(locks.front(), now) : locks_table(locks, now);
  for (std::string& line : render(table, width, wanted_colour())) lines.push_back(std::move(line));
  if (one && !locks.empty()) {
    for (const std::string& warning : locks.front().warnings) {
      lines.push_back(
          paint(cut_to("warning: " + printable(warning), width), Style::kBad, wanted_colour()));
    }
  }
  screen_->draw(lines);
}

void Watching::show() {
  std::vector<Queue> locks;
  std::vector<std::string> lines;
  SessionState state{};
  {
    const std::lock_guard lock(news_->mutex);
    locks = news_->locks;
    lines.swap(news_->lines);
    state = news_->state;
  }
  if (!options_.events.empty()) {
    print_lines(lines);
  } else if (whole_) {
    show_screen(locks, state);
  } else {
    show_lines(locks);
  }
}

int Watching::finish(const Error& error) {
  screen_.reset();  // The terminal is as it was, and keeps the message.
  return complain("watch", error);
}

int Watching::run() {
  const bool all = options_.name.empty() && options_.events.empty();
  const Result<std::string> path =
      all ? Result<std::string>(kLocksRoot)
          : lock_path(options_.events.empty() ? options_.name : options_.events);
  if (!path) return finish(path.error());
  path_ = *path;
  SessionOptions hooks;
  hooks.on_state = [news = news_, ring = ringer()](SessionState state) {
    const std::lock_guard lock(news->mutex);
    news->state = state;
    if (state == SessionState::kExpired) {
      news->error = Error(Code::kSessionLost, "the session is over: no server was found in time");
    }
    ring();
  };
  Result<Session> session = open_service(options_.service, deadline_in(kOpenPatience), hooks);
  if (!session) return finish(session.error());
  if (const Result<void> begun = begin(*session); !begun) return finish(begun.error());
  if (all) show();
  while (!screen_->has_ended()) {
    const bool news = screen_->wait(whole_ ? kSecond : -1);
    if (news && all) {
      ::poll(nullptr, 0, kGatherMs);
      if (const Result<void> seen = survey(*session); !seen) return finish(seen.error());
    }
    if (news || whole_) show();
    if (const std::optional<Error> error = news_->take_error()) return finish(*error);
  }
  watch_.reset();
  return screen_->exit_code();
}

}  // namespace

Command add_watch(CLI::App& app) {
  const auto options = std::make_shared<WatchOptions>();
  CLI::App* command = app.add_subcommand("watch", "Watch the queues live, or a node's events");
  CLI::Option* name =
      command->add_option("NAME", options->name, "The lock; without it all below /locks");
  command->add_flag("--json", options->json, "One JSON object for each change, for programs");
  CLI::Option* events =
      add_text(*command, "--events", options->events, "PATH",
               "Print what happens to PATH: created, deleted, its data or children changed");
  events->excludes(name)->check([](const std::string& path) {
    return path.starts_with('-') ? "\"" + path + "\" is no path; write --events PATH" : "";
  });
  command->add_flag("-r,--recursive", options->recursive, "With --events: of everything below too")
      ->needs(events);
  add_service_options(*command, options->service);
  command->footer(
      "Examples:\n"
      "  latchkey watch\n"
      "  latchkey watch backup\n"
      "  latchkey watch --json backup | while read -r change; do ...; done\n"
      "  latchkey watch --events /locks/backup\n"
      "\n"
      "On a terminal it fills the screen, like top, until q or Ctrl-C; elsewhere it prints a line\n"
      "for each change.");
  return {command, [options] { return Watching(*options).run(); }};
}

}  // namespace latchkey::app
