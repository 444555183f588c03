#include "watch.hpp"

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
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
constexpr std::chrono::milliseconds kGather(50);
/// How long a server may take to let us go.
constexpr std::chrono::milliseconds kFarewell(500);

struct WatchOptions {
  ServiceOptions service;
  std::string name;
  std::string events;  ///< A path: its events, and no queue.
  bool recursive = false;
  bool json = false;
};

/// What is known, and what is wanted of the one who asks. Any thread.
struct News {
  std::mutex mutex;
  std::condition_variable wanted;
  std::vector<Queue> locks;                        // Guarded by mutex.
  bool known = false;                              // Guarded by mutex. `locks` is an answer.
  std::optional<Error> error;                      // Guarded by mutex.
  std::vector<std::string> lines;                  // Guarded by mutex. Events, ready to be printed.
  SessionState state = SessionState::kConnecting;  // Guarded by mutex.
  bool changed = false;                            // Guarded by mutex. All locks: look again.
  bool unwanted = false;                           // Guarded by mutex. Nobody looks any more.
  bool has_ended = false;                          // Guarded by mutex. Nobody asks any more.

  std::optional<Error> take_error() {
    const std::lock_guard lock(mutex);
    return std::exchange(error, std::nullopt);
  }
  void put(std::vector<Queue> now) {
    const std::lock_guard lock(mutex);
    locks = std::move(now);
    known = true;
  }
  void fail(Error why) {
    const std::lock_guard lock(mutex);
    error = std::move(why);
  }
  void look_again() {
    const std::lock_guard lock(mutex);
    changed = true;
    wanted.notify_all();
  }
};

/// Asks the service, on a thread of its own: the one that shows has to hear keys and signals
/// whatever the service does, and does not wait for this one when it ends.
class Following {
 public:
  Following(WatchOptions options, std::string path, std::shared_ptr<News> news,
            std::function<void()> ring)
      : options_(std::move(options)),
        path_(std::move(path)),
        all_(options_.name.empty() && options_.events.empty()),
        news_(std::move(news)),
        ring_(std::move(ring)) {}

  void run();

 private:
  Result<void> follow();
  Result<void> begin(Session& session);
  Result<void> survey(Session& session);
  Result<void> survey_until_unwanted(Session& session);
  Watcher event_printer();

  const WatchOptions options_;
  const std::string path_;
  const bool all_;
  const std::shared_ptr<News> news_;
  const std::function<void()> ring_;
  std::optional<QueueWatch> watch_;
};

void Following::run() {
  if (const Result<void> followed = follow(); !followed) news_->fail(followed.error());
  {
    const std::lock_guard lock(news_->mutex);
    news_->has_ended = true;
    news_->wanted.notify_all();
  }
  ring_();
}

Watcher Following::event_printer() {
  return [news = news_, ring = ring_, json = options_.json](const WatchEvent& event) {
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

Result<void> Following::begin(Session& session) {
  const Deadline deadline = deadline_in(kAnswerPatience);
  if (!options_.events.empty()) {
    const WatchMode mode =
        options_.recursive ? WatchMode::kPersistentRecursive : WatchMode::kPersistent;
    return session.call(AddWatch{path_, mode, event_printer()}, deadline);
  }
  if (all_) {
    const auto watcher = [news = news_](const WatchEvent&) { news->look_again(); };
    return session.call(AddWatch{path_, WatchMode::kPersistentRecursive, watcher}, deadline);
  }
  watch_.emplace(session, path_, [news = news_, ring = ring_](Result<Queue> queue) {
    if (queue) {
      news->put({std::move(*queue)});
    } else {
      news->fail(queue.error());
    }
    ring();
  });
  return {};
}

Result<void> Following::survey(Session& session) {
  Result<std::vector<Queue>> locks = find_locks(session, path_, deadline_in(kAnswerPatience));
  if (!locks) return locks.error();
  news_->put(std::move(*locks));
  ring_();
  return {};
}

Result<void> Following::survey_until_unwanted(Session& session) {
  news_->look_again();
  std::unique_lock lock(news_->mutex);
  while (true) {
    news_->wanted.wait(lock, [this] { return news_->changed || news_->unwanted; });
    if (news_->unwanted) return {};
    // Changes that follow each other closely are seen together.
    if (news_->wanted.wait_for(lock, kGather, [this] { return news_->unwanted; })) return {};
    news_->changed = false;
    lock.unlock();
    const Result<void> seen = survey(session);
    lock.lock();
    if (seen) continue;
    if (!is_retryable(seen.error().code())) return seen;
    news_->changed = true;
  }
}

Result<void> Following::follow() {
  SessionOptions hooks;
  hooks.on_state = [news = news_, ring = ring_](SessionState state) {
    {
      const std::lock_guard lock(news->mutex);
      news->state = state;
      if (state == SessionState::kExpired) {
        news->error = Error(Code::kSessionLost, "the session is over");
      }
    }
    // What happened meanwhile is told to nobody.
    if (state == SessionState::kConnected) news->look_again();
    ring();
  };
  Result<Session> session = open_service(options_.service, deadline_in(kOpenPatience), hooks);
  if (!session) return session.error();
  Result<void> outcome = begin(*session);
  if (outcome && all_) outcome = survey_until_unwanted(*session);
  if (outcome && !all_) {
    std::unique_lock lock(news_->mutex);
    news_->wanted.wait(lock, [this] { return news_->unwanted; });
  }
  watch_.reset();
  static_cast<void>(session->close(deadline_in(kFarewell)));
  return outcome;
}

/// Shows it. Thread safety: the main thread.
class Watching {
 public:
  explicit Watching(const WatchOptions& options)
      : options_(options),
        whole_(is_terminal() && !options.json && options.events.empty()),
        news_(std::make_shared<News>()),
        screen_(std::make_shared<Screen>(whole_ ? Screen::Use::kWhole : Screen::Use::kLines)) {}

  int run();

 private:
  int finish(const Error& error);
  /// The one who asks has ended, or does in a moment.
  [[nodiscard]] bool dismiss();
  /// False: nobody takes what we print.
  [[nodiscard]] bool show();
  [[nodiscard]] bool show_lines(const std::vector<Queue>& locks);
  void show_screen(const std::vector<Queue>& locks, bool known, SessionState state);
  int watch();

  const WatchOptions& options_;
  const bool whole_;
  const std::shared_ptr<News> news_;
  std::shared_ptr<Screen> screen_;
  std::string path_;
  std::map<std::string, std::string> shown_;  ///< The last line of each lock.
};

bool Watching::show_lines(const std::vector<Queue>& locks) {
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
  return print_lines(lines);
}

void Watching::show_screen(const std::vector<Queue>& locks, bool known, SessionState state) {
  const std::size_t width = terminal_width();
  const std::int64_t now = wall_clock_ms();
  std::vector<std::string> lines;
  const bool one = !options_.name.empty();
  const std::string title = one && !locks.empty() ? queue_line(locks.front())
                            : known ? fmt::format("{} locks below {}", locks.size(), path_)
                                    : path_;
  lines.push_back(cut_to(title, width));
  const std::string trouble = !known ? "  (looking for the service)"
                              : state != SessionState::kConnected
                                  ? "  (no connection: looking for a server)"
                                  : "";
  lines.push_back(paint(cut_to(utc_text(now) + "  q or Ctrl-C ends" + trouble, width),
                        Style::kFaint, wanted_colour()));
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

bool Watching::show() {
  std::vector<Queue> locks;
  std::vector<std::string> lines;
  SessionState state{};
  bool known = false;
  {
    const std::lock_guard lock(news_->mutex);
    locks = news_->locks;
    lines.swap(news_->lines);
    state = news_->state;
    known = news_->known;
  }
  if (!options_.events.empty()) return print_lines(lines);
  if (!whole_) return show_lines(locks);
  show_screen(locks, known, state);
  return true;
}

int Watching::finish(const Error& error) {
  screen_.reset();  // The terminal is as it was, and keeps the message.
  return complain("watch", in_our_words(error, options_.service));
}

bool Watching::dismiss() {
  std::unique_lock lock(news_->mutex);
  news_->unwanted = true;
  news_->wanted.notify_all();
  return news_->wanted.wait_for(lock, 2 * kFarewell, [this] { return news_->has_ended; });
}

int Watching::watch() {
  while (!screen_->has_ended()) {
    const bool news = screen_->wait(whole_ ? kSecond : -1);
    if (screen_->has_ended()) break;
    // What cannot be printed is told in the end, as of every other command.
    if ((news || whole_) && !show()) return kOk;
    if (const std::optional<Error> error = news_->take_error()) return finish(*error);
  }
  return screen_->exit_code();
}

int Watching::run() {
  const bool all = options_.name.empty() && options_.events.empty();
  const Result<std::string> path =
      all ? Result<std::string>(kLocksRoot)
          : lock_path(options_.events.empty() ? options_.name : options_.events);
  if (!path) return finish(path.error());
  path_ = *path;
  const auto ring = [screen = std::weak_ptr(screen_)] {
    if (const auto live = screen.lock()) live->ring();
  };
  std::thread([options = options_, path = path_, news = news_, ring] {
    Following(options, path, news, ring).run();
  }).detach();
  const int code = watch();
  screen_.reset();
  if (dismiss()) return code;
  // It waits for a service that does not answer; what it uses must not go before it does.
  std::fflush(nullptr);
  ::_exit(std::ferror(stdout) == 0 ? code : static_cast<int>(kOsError));
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
      "for each change. Exit code: 0 after q, 128+n after signal n, 69 no server, 71 nobody takes\n"
      "what it prints, 75 the server was lost for longer than the session's time-out.");
  return {command, [options] { return Watching(*options).run(); }};
}

}  // namespace latchkey::app
