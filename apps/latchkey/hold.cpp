#include "hold.hpp"

#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "command_options.hpp"
#include "daemon.hpp"
#include "exit_code.hpp"
#include "hold_note.hpp"
#include "latchkey/mutex.hpp"
#include "options.hpp"
#include "queue_view.hpp"
#include "screen.hpp"
#include "service.hpp"
#include "terminal.hpp"
#include "until.hpp"
#include "words.hpp"

namespace latchkey::app {
namespace {

using std::chrono::milliseconds;

struct HoldOptions {
  ServiceOptions service;
  std::string name;
  std::int64_t for_ms = 0;
  std::optional<std::int64_t> wait_ms;  ///< Nothing: for ever, unless `now`. 0 is `now`.
  bool now = false;
  std::string reason;
  std::string owner;
  bool force = false;

  [[nodiscard]] bool tries_once() const { return now || wait_ms == 0; }
};

/// "ann@db1"
std::string this_person() {
  const passwd* user = ::getpwuid(::geteuid());
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return fmt::format("{}@{}", user != nullptr ? user->pw_name : std::to_string(::geteuid()),
                     host.data());
}

Deadline wait_deadline(const HoldOptions& options) {
  return options.wait_ms ? deadline_in(milliseconds(*options.wait_ms)) : Deadline::never();
}

// The keeper.

/// Into hold.log, where the lines of every hold stand below each other.
void log(const HoldOptions& options, std::string_view text) {
  say("{} {} (pid {}): {}\n", utc_text(wall_clock_ms()), printable(options.name), ::getpid(),
      printable(text));
}

int tell_failure(const HoldOptions& options, const Error& error) {
  std::string text = error.message();
  std::ranges::replace(text, '\n', ' ');
  print_lines({fmt::format("failed {} {}", static_cast<int>(error.code()), text)});
  log(options, text);
  return exit_code_of(error.code());
}

/// Whoever waits for our first line has gone: nobody wants the lock any more.
void stop_when_unheard(const std::stop_token& over, std::stop_source& stop) {
  constexpr int kLook = 100;
  while (!over.stop_requested()) {
    pollfd reader{STDOUT_FILENO, 0, 0};
    if (::poll(&reader, 1, kLook) > 0 && (reader.revents & (POLLERR | POLLHUP)) != 0) {
      stop.request_stop();
      return;
    }
  }
}

Result<Lease> take(const Mutex& mutex, const HoldOptions& options) {
  std::stop_source unwanted;
  std::jthread listener([&](const std::stop_token& over) { stop_when_unheard(over, unwanted); });
  if (options.tries_once()) {
    Result<Lease> lease = mutex.try_lock(deadline_in(kAnswerPatience), unwanted.get_token());
    if (!lease) return unanswered(lease.error());
    return lease;
  }
  return mutex.lock(wait_deadline(options), unwanted.get_token());
}

/// Until it runs out, is asked for, is lost, or a signal comes. What it was.
std::string_view keep_it(Lease& lease, Screen& screen, Deadline end) {
  const std::stop_callback on_loss(lease.lost(), [&] { screen.ring(); });
  const std::stop_token asked = lease.release_requested();
  const std::stop_callback on_wish(asked, [&] { screen.ring(); });
  while (true) {
    if (lease.state() == LeaseState::kLost) return "the lock was lost";
    if (asked.stop_requested()) return "let go, as somebody asked for it";
    if (screen.has_ended()) return "let go, as a signal came";
    const auto left = std::chrono::ceil<milliseconds>(end.at() - BootClock::now()).count();
    if (left <= 0) return "let go, as its time is over";
    screen.wait(static_cast<int>(std::min<std::int64_t>(left, INT_MAX)));
  }
}

/// When it ends is known only now that the wait is over. Not if somebody has changed the entry:
/// that is a wish, and counts more.
void correct_end(Session& session, const Lease& lease, const std::string& old,
                 const std::string& end) {
  if (old == end) return;
  const Result<Node> node = session.get(lease.node(), deadline_in(kAnswerPatience));
  const std::size_t at = node ? node->data.rfind(old) : std::string::npos;
  if (at == std::string::npos) return;
  std::string data = node->data;
  data.replace(at, old.size(), end);
  static_cast<void>(
      session.set(lease.node(), data, deadline_in(kAnswerPatience), node->stat.version));
}

int keep(const HoldOptions& options) {
  ::signal(SIGPIPE, SIG_IGN);
  Screen screen(Screen::Use::kLines);
  const Result<std::string> path = lock_path(options.name);
  if (!path) return tell_failure(options, path.error());
  Result<Session> session = open_aloud(options.service, deadline_in(kOpenPatience));
  if (!session) return tell_failure(options, session.error());
  const auto end_text = [&] { return utc_text(wall_clock_ms() + options.for_ms); };
  const std::string foreseen = end_text();
  const Mutex mutex(*session, *path,
                    {.reason = format_hold({options.reason, options.owner, foreseen})});
  Result<Lease> lease = take(mutex, options);
  if (!lease) {
    const int code = tell_failure(options, lease.error());
    // Or its place in the queue would be kept until the session has timed out.
    static_cast<void>(session->close(deadline_in(kAnswerPatience)));
    return code;
  }
  const Deadline end = deadline_in(milliseconds(options.for_ms));
  const std::string known = end_text();
  correct_end(*session, *lease, foreseen, known);
  if (print_lines({fmt::format("held {} {}", to_string(lease->token()), lease->node())})) {
    log(options, fmt::format("held for {}, until {}", options.owner, known));
    log(options, keep_it(*lease, screen, end));
  } else {
    log(options, "let go, as nobody wants it any more");
  }
  const bool lost = lease->state() == LeaseState::kLost;
  static_cast<void>(lease->release(deadline_in(kAnswerPatience)));
  static_cast<void>(session->close(deadline_in(kAnswerPatience)));
  return lost ? ExitCode::kLost : kOk;
}

// Those who talk to it.

Daemon keeper_of(const HoldOptions& options) {
  Daemon daemon;
  daemon.words = {"hold-keeper", "--for", fmt::format("{}ms", options.for_ms), "--owner",
                  this_person()};
  const auto add = [&](std::initializer_list<std::string> words) {
    daemon.words.insert(daemon.words.end(), words);
  };
  if (!options.reason.empty()) add({"--reason", options.reason});
  if (options.tries_once()) {
    add({"--nonblock"});
  } else if (options.wait_ms) {
    add({"--wait", fmt::format("{}ms", *options.wait_ms)});
  }
  const std::vector<std::string> service = service_words(options.service);
  daemon.words.insert(daemon.words.end(), service.begin(), service.end());
  add({"--", options.name});
  const Result<std::string> folder = state_folder();
  daemon.log_file = folder ? *folder + "/hold.log" : "/dev/null";
  return daemon;
}

/// The error behind "failed CODE MESSAGE"; nothing if that is not what it says.
std::optional<Error> failure_of(std::string_view line) {
  constexpr std::string_view kFailed = "failed ";
  if (!line.starts_with(kFailed)) return std::nullopt;
  line.remove_prefix(kFailed.size());
  int code = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), code);
  line.remove_prefix(static_cast<std::size_t>(end - line.data()));
  if (line.starts_with(' ')) line.remove_prefix(1);
  return Error(static_cast<Code>(code), std::string(line));
}

int hold(const HoldOptions& options) {
  if (const Result<std::string> path = lock_path(options.name); !path) {
    return complain("hold", path.error());
  }
  // It always has an answer in the end; if it dies without one, that is seen at once.
  const Result<std::string> line = start_daemon(keeper_of(options), Deadline::never());
  if (!line) return complain("hold", line.error());
  if (const std::optional<Error> failure = failure_of(*line)) {
    const int code = exit_code_of(failure->code());
    if (code != ExitCode::kBusy) return complain("hold", *failure);
    say("latchkey hold: {0} is taken{1}; latchkey who {0} says by whom\n", printable(options.name),
        options.tries_once() ? "" : " and did not become free in time");
    return code;
  }
  say("Held until {}; latchkey release {} ends it before.\n",
      utc_text(wall_clock_ms() + options.for_ms), options.name);
  return kOk;
}

int release(const HoldOptions& options) {
  const Result<std::string> path = lock_path(options.name);
  if (!path) return complain("release", path.error());
  Result<Session> session = open_aloud(options.service, deadline_in(kOpenPatience));
  if (!session) return complain("release", session.error());
  const Result<Queue> lock = inspect(*session, *path, deadline_in(kAnswerPatience));
  if (!lock) return complain("release", lock.error());
  const QueueEntry* found = nullptr;
  std::string other;
  for (const QueueEntry* holder : lock->holders()) {
    const std::optional<HoldNote> note = parse_hold(holder->reason);
    if (!note) continue;
    const bool ours = note->owner == this_person();
    if (ours || options.force) found = holder;
    if (!ours) other = note->owner;
  }
  if (found == nullptr && !other.empty()) {
    say("latchkey release: {} holds it; --force ends that all the same\n", printable(other));
    return kNoPermission;
  }
  if (found == nullptr) {
    say("latchkey release: nobody holds it by latchkey hold; {}. latchkey revoke asks any "
        "holder\n",
        queue_line(*lock));
    return ExitCode::kBusy;
  }
  const std::string node = found->node;
  const Result<void> asked =
      latchkey::revoke(*session, *path + "/" + node, deadline_in(kAnswerPatience));
  if (!asked && asked.error() != Code::kNoNode) return complain("release", asked.error());
  const auto gone = [node](const Queue& now) {
    return std::ranges::none_of(now.entries, [&](const auto& one) { return one.node == node; });
  };
  const Result<void> left = wait_until(*session, *path, gone, deadline_in(kAnswerPatience));
  return left ? kOk : complain("release", left.error());
}

}  // namespace

Command add_hold(CLI::App& app) {
  const auto options = std::make_shared<HoldOptions>();
  CLI::App* command = app.add_subcommand("hold", "Hold a lock by hand, beyond the shell");
  command->add_option("NAME", options->name, "The lock")->required();
  add_duration(*command, "--for", options->for_ms, "How long, at most")->required();
  add_text(*command, "--reason", options->reason, "TEXT", "Shown to those who look");
  CLI::Option* now = command->add_flag("-n,--nonblock", options->now, "Do not wait for it");
  add_duration_or_zero(*command, "-w,--wait", options->wait_ms, "TIME",
                       "Wait for it at most so long; 0 is -n")
      ->excludes(now);
  add_service_options(*command, options->service);
  command->footer(
      "Examples:\n"
      "  latchkey hold deploy --for 2h --reason \"moving the database\"\n"
      "  latchkey hold -n deploy --for 30min\n"
      "  latchkey release deploy\n"
      "\n"
      "A process in the background keeps it until the time is over, latchkey release or latchkey\n"
      "revoke; latchkey ls shows owner, reason and end. It does not survive the end of this\n"
      "machine. Exit code: 0 held, 1 somebody else has it.");
  return {command, [options] { return hold(*options); }};
}

Command add_hold_keeper(CLI::App& app) {
  const auto options = std::make_shared<HoldOptions>();
  CLI::App* command = app.add_subcommand("hold-keeper", "The process behind latchkey hold");
  command->add_option("NAME", options->name)->required();
  add_duration(*command, "--for", options->for_ms, "")->required();
  add_duration_or_zero(*command, "--wait", options->wait_ms, "TIME", "");
  command->add_flag("--nonblock", options->now);
  command->add_option("--reason", options->reason);
  command->add_option("--owner", options->owner)->required();
  add_service_options(*command, options->service);
  return {command, [options] { return keep(*options); }};
}

Command add_release(CLI::App& app) {
  const auto options = std::make_shared<HoldOptions>();
  CLI::App* command = app.add_subcommand("release", "End what latchkey hold began");
  command->add_option("NAME", options->name, "The lock")->required();
  command->add_flag("--force", options->force, "Even if another person holds it");
  add_service_options(*command, options->service);
  command->footer(
      "Example:\n"
      "  latchkey release deploy\n"
      "\n"
      "Exit code: 0 released, 1 nobody holds it by hand, 77 another person does.");
  return {command, [options] { return release(*options); }};
}

}  // namespace latchkey::app
