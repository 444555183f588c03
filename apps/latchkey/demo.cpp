#include "demo.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <fmt/format.h>

#include "demo_story.hpp"
#include "demo_watching.hpp"
#include "latchkey/server.hpp"
#include "latchkey/session.hpp"
#include "options.hpp"
#include "process.hpp"
#include "queue/node_name.hpp"
#include "queue/owner.hpp"
#include "terminal.hpp"
#include "words.hpp"

namespace latchkey::app {
namespace {

struct DemoOptions {
  int workers = 6;
  std::int64_t hold_ms = 1'000;
};

constexpr const char* kDirectory = "/locks/demo";
/// Which worker is killed, from 0.
constexpr std::size_t kVictim = 1;
constexpr std::chrono::seconds kPatience(60);

std::int64_t now_ns() { return BootClock::now().time_since_epoch().count(); }

/// Colours, on a terminal that wants them.
struct Paint {
  bool on = wanted_colour() == Colour::kYes;

  [[nodiscard]] std::string operator()(const char* code, const std::string& text) const {
    return on ? fmt::format("\033[{}m{}\033[0m", code, text) : text;
  }
  [[nodiscard]] std::string strong(const std::string& text) const { return (*this)("1;32", text); }
  [[nodiscard]] std::string bad(const std::string& text) const { return (*this)("1;31", text); }
  [[nodiscard]] std::string faint(const std::string& text) const { return (*this)("2", text); }
};

/// A pipe that a watcher rings from any thread. Shared with the watchers, because the last one may
/// still be ringing when the demonstration is over.
class Bell {
 public:
  Bell() { static_cast<void>(::pipe2(ends_.data(), O_CLOEXEC | O_NONBLOCK) == 0); }
  ~Bell() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;

  void ring() { static_cast<void>(::write(ends_[1], "!", 1) == 1); }
  [[nodiscard]] int ear() const { return ends_[0]; }

  [[nodiscard]] bool has_rung() {
    bool rung = false;
    std::array<char, 64> rings{};
    while (::read(ends_[0], rings.data(), rings.size()) > 0) rung = true;
    return rung;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

/// The demonstration under way. Thread safety: one thread at a time.
class Demo {
 public:
  Demo(const DemoOptions& options, std::string connect, Session session)
      : options_(options), connect_(std::move(connect)), session_(std::move(session)) {}
  ~Demo() { static_cast<void>(session_.close(deadline_in(std::chrono::seconds(2)))); }
  Demo(const Demo&) = delete;
  Demo& operator=(const Demo&) = delete;

  /// The first act.
  void run();
  /// The last words, about both; the exit code.
  [[nodiscard]] int show_summary(const WakeUps& second);

 private:
  void start_workers();
  void start_worker();
  void wait_for_news();
  void hear_workers();
  void tell(WorkerStory& story, const std::string& what);
  void kill_victim();
  void show_queue();
  std::string worker_behind(const std::string& node);
  [[nodiscard]] bool everyone_has_ended() const;
  void line(std::int64_t when, const std::string& text);

  const DemoOptions options_;
  const std::string connect_;
  Session session_;
  const Paint paint_;
  const std::int64_t start_ = now_ns();
  const std::shared_ptr<Bell> bell_ = std::make_shared<Bell>();  ///< The queue has changed.
  std::vector<Process> processes_;
  std::vector<WorkerStory> stories_;
  std::map<std::string, std::string> owners_;  ///< Worker by node.
  std::string shown_;
  Chronicle chronicle_;
  std::int64_t killed_at_ = 0;
  bool taken_over_ = false;
};

void Demo::line(std::int64_t when, const std::string& text) {
  chronicle_.add(when,
                 fmt::format("{:6.2f} s  {}", static_cast<double>(when - start_) / 1e9, text));
}

/// The victim is the second in the queue, and the third comes after it; the rest as they like.
void Demo::start_workers() {
  while (stories_.size() < static_cast<std::size_t>(options_.workers)) {
    const bool in_turn = !stories_.empty() && stories_.size() <= kVictim + 1;
    if (in_turn && stories_.back().queued == 0) return;
    start_worker();
  }
}

void Demo::start_worker() {
  const bool is_victim = stories_.size() == kVictim;
  stories_.push_back({.name = fmt::format("worker {}", stories_.size() + 1)});
  // The victim holds until it is killed, whoever is slow today.
  processes_.emplace_back(
      std::vector<std::string>{
          own_path(), "demo-worker", "--connect", connect_, "--directory", kDirectory, "--name",
          stories_.back().name, "--hold", is_victim ? "1h" : fmt::format("{}ms", options_.hold_ms),
          "--timeout", fmt::format("{}ms", (is_victim ? kVictimTimeout : kWorkerTimeout).count())},
      Process::Output::kPipe);
}

std::string Demo::worker_behind(const std::string& node) {
  const auto known = owners_.find(node);
  if (known != owners_.end()) return known->second;
  const auto read = session_.get(std::string(kDirectory) + "/" + node, deadline_in(kPatience));
  if (!read) return "somebody";  // Gone again before we could look.
  const auto owner = queue::parse_owner(read->data);
  return owners_[node] = owner ? owner->reason : "somebody else";
}

void Demo::show_queue() {
  const auto listed = session_.children(kDirectory, deadline_in(kPatience),
                                        [bell = bell_](const WatchEvent&) { bell->ring(); });
  std::map<std::int32_t, std::string> queue;
  if (listed) {
    for (const std::string& child : listed->names) {
      if (const auto place = queue::parse_place(child)) queue[place->number] = worker_behind(child);
    }
  }
  std::string text;
  for (const auto& [number, name] : queue) {
    text += text.empty() ? paint_.strong(name) + (queue.size() > 1 ? "  <-  " : "") : name + "  ";
  }
  if (text.empty()) text = "(empty)";
  if (text == shown_) return;
  shown_ = text;
  line(now_ns(), paint_.faint("queue: ") + text);
}

void Demo::tell(WorkerStory& story, const std::string& what) {
  if (what == "woken") return;
  if (what == "queued") return line(story.queued, story.name + " asks for the lock");
  if (what == "released") return line(story.ended, story.name + " lets go");
  if (what == "lost") return line(story.ended, paint_.bad(story.name + " has lost the lock"));
  std::string text =
      fmt::format("{} {}  token {}", story.name, paint_.strong("HOLDS"), story.token);
  if (killed_at_ != 0 && !std::exchange(taken_over_, true)) {
    text += fmt::format("  (took over {:.1f} s after the kill)",
                        static_cast<double>(story.held - killed_at_) / 1e9);
  }
  line(story.held, text);
}

void Demo::kill_victim() {
  if (stories_.size() <= kVictim) return;
  WorkerStory& story = stories_[kVictim];
  // In the middle of its work, not at the first moment of it.
  const Instant half =
      Instant(Duration(story.held)) + std::chrono::milliseconds(options_.hold_ms) / 2;
  const Instant now = BootClock::now();
  if (killed_at_ != 0 || story.held == 0 || story.ended != 0 || now < half) return;
  processes_[kVictim].kill_and_reap();
  killed_at_ = now.time_since_epoch().count();
  story.ended = killed_at_;
  story.killed = true;
  line(killed_at_, paint_.bad(story.name + " is killed with kill -9 while it holds the lock"));
  line(killed_at_, paint_.faint(fmt::format("its session runs out after {} s; then the server "
                                            "removes its entry",
                                            kVictimTimeout.count() / 1'000)));
}

void Demo::hear_workers() {
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    std::vector<std::string> lines;
    processes_[i].read_lines(lines);
    for (const std::string& text : lines) {
      if (const auto what = read_line(text, stories_[i])) tell(stories_[i], *what);
    }
  }
}

void Demo::wait_for_news() {
  std::vector<pollfd> ends{{bell_->ear(), POLLIN, 0}};
  for (const Process& process : processes_) {
    if (process.output() >= 0) ends.push_back({process.output(), POLLIN, 0});
  }
  ::poll(ends.data(), ends.size(), 50);
}

bool Demo::everyone_has_ended() const {
  if (processes_.size() < static_cast<std::size_t>(options_.workers)) {
    // Whoever ends before the next may start has failed.
    return !processes_.empty() && processes_.back().output() < 0;
  }
  for (const Process& process : processes_) {
    if (process.output() >= 0) return false;
  }
  return true;
}

void Demo::run() {
  static_cast<void>(session_.create("/locks", "", {}, deadline_in(kPatience)));
  static_cast<void>(session_.create(kDirectory, "", {}, deadline_in(kPatience)));
  start_workers();
  show_queue();
  const Deadline deadline =
      deadline_in(kPatience + options_.workers * std::chrono::milliseconds(options_.hold_ms));
  while (!everyone_has_ended() && !deadline.has_passed(BootClock::now())) {
    wait_for_news();
    hear_workers();
    start_workers();
    // The watch is used up when the bell rings; until then the queue is as it was.
    if (bell_->has_rung()) show_queue();
    kill_victim();
    print_lines(chronicle_.take(now_ns()));
  }
  print_lines(chronicle_.take_all());
}

int Demo::show_summary(const WakeUps& second) {
  const Verdict verdict = judge(stories_);
  const auto mark = [&](bool good) { return good ? paint_.strong("yes") : paint_.bad("NO"); };
  fmt::print("\nWhat happened\n");
  fmt::print("  order of arrival   {}\n", fmt::join(verdict.arrival, ", "));
  fmt::print("  order of holding   {}\n", fmt::join(verdict.holding, ", "));
  fmt::print("  fencing tokens     {}\n", fmt::join(verdict.tokens, " < "));
  fmt::print("\nWhat was promised\n");
  fmt::print("  everyone held the lock once              {}\n", mark(verdict.everyone_held));
  fmt::print("  order of arrival equals order of holding {}\n", mark(verdict.in_order));
  fmt::print("  never two holders at a time              {}\n", mark(verdict.exclusive));
  fmt::print("  every token larger than the one before   {}\n", mark(verdict.tokens_grow));
  fmt::print("  a dead holder's lock passed on           {}\n", mark(taken_over_));
  fmt::print("  readers and writers all had their turn   {}\n", mark(second.everyone_held));
  fmt::print("  fewer wake-ups by watching who is ahead  {}  ({} and {})\n", mark(second.fewer()),
             second.targeted, second.directory);
  return verdict.good() && taken_over_ && second.everyone_held && second.fewer() ? 0 : 1;
}

int run_demo(const DemoOptions& options) {
  const auto fail = [](const Error& error) {
    say("latchkey demo: {}\n", error.message());
    return 69;
  };
  ServerOptions server_options;
  server_options.min_session_timeout = kVictimTimeout;
  server_options.tick = kVictimTimeout / 6;
  auto server = Server::start(server_options);
  if (!server) return fail(server.error());
  auto session = Session::open(server->connect_string(), {}, deadline_in(std::chrono::seconds(10)));
  if (!session) return fail(session.error());
  fmt::print(
      "Latchkey demonstration: {} processes, one lock, only one may hold it at a time.\n"
      "Each asks a ZooKeeper server for a place in the queue, waits for its turn, holds the lock "
      "for\n"
      "a moment and lets it go. The second holder is killed in the middle of its work.\n\n"
      "The server is Latchkey's own, inside this process, on {}.\n\n",
      options.workers, server->connect_string());
  std::fflush(stdout);
  Demo demo(options, server->connect_string(), std::move(*session));
  demo.run();
  const WakeUps second = show_watching(server->connect_string());
  return demo.show_summary(second);
}

}  // namespace

Command add_demo(CLI::App& app) {
  const auto options = std::make_shared<DemoOptions>();
  CLI::App* command =
      app.add_subcommand("demo", "Watch processes queue for a lock, and one die while holding it");
  add_number(*command, "--workers", options->workers, 3, 50, "N [6], 3 to 50",
             "How many processes contend");
  add_duration(*command, "--hold", options->hold_ms, "How long each holds the lock");
  command->footer(
      "Example:\n"
      "  latchkey demo --workers 8 --hold 300ms");
  return {command, [options] { return run_demo(*options); }};
}

}  // namespace latchkey::app
