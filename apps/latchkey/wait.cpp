#include "wait.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "command_options.hpp"
#include "exit_code.hpp"
#include "options.hpp"
#include "queue_view.hpp"
#include "service.hpp"
#include "terminal.hpp"
#include "until.hpp"
#include "words.hpp"

namespace latchkey::app {
namespace {

struct AskOptions {
  ServiceOptions service;
  std::string name;
  std::optional<std::int64_t> wait_ms;  ///< Nothing: as long as it takes. 0: one look.
  bool force = false;
};

Deadline deadline_of(const AskOptions& options) {
  return options.wait_ms ? deadline_in(std::chrono::milliseconds(*options.wait_ms))
                         : Deadline::never();
}

/// However short somebody's patience is, a server that has let us in may say something.
constexpr std::chrono::seconds kFirstLook(5);
constexpr std::int64_t kForEver = std::chrono::milliseconds(kOpenPatience).count();

/// What a wait has seen last. Any thread.
class LastSeen {
 public:
  void put(const Queue& queue) {
    const std::lock_guard lock(mutex_);
    queue_ = queue;
  }
  [[nodiscard]] std::optional<Queue> get() const {
    const std::lock_guard lock(mutex_);
    return queue_;
  }

 private:
  mutable std::mutex mutex_;
  std::optional<Queue> queue_;
};

int wait(const AskOptions& options) {
  const Result<std::string> path = lock_path(options.name);
  if (!path) return complain("wait", path.error());
  const Duration patience = std::chrono::milliseconds(options.wait_ms.value_or(kForEver));
  Result<Session> session = open_aloud(
      options.service, deadline_in(std::clamp<Duration>(patience, kFirstLook, kOpenPatience)));
  if (!session) return complain("wait", session.error());
  // Only from here: that there is a server does not depend on how patient somebody is.
  const Deadline first_look = deadline_in(kFirstLook);
  const auto seen = std::make_shared<LastSeen>();
  const auto looks_free = [seen](const Queue& queue) {
    seen->put(queue);
    return is_free(queue);
  };
  const Result<void> freed = wait_until(*session, *path, looks_free, deadline_of(options));
  if (freed) return kOk;
  if (freed.error() != Code::kTimedOut) {
    return complain("wait", in_our_words(freed.error(), options.service));
  }
  // The time is over: whoever has seen the queue does not ask again.
  std::optional<Queue> lock = seen->get();
  if (!lock) {
    Result<Queue> looked = inspect(*session, *path, first_look);
    if (!looked) {
      say("latchkey wait: the server has not answered in time: {}\n",
          printable(looked.error().message()));
      return ExitCode::kBusy;
    }
    lock = std::move(*looked);
  }
  if (is_free(*lock)) return kOk;
  say("latchkey wait: not free in time; {}\n", queue_line(*lock));
  return ExitCode::kBusy;
}

struct Holder {
  std::string node;  ///< Its path.
  std::string who;
};

/// A path that is a holder's node itself stands for its own.
Result<std::vector<Holder>> find_holders(Session& session, const std::string& path) {
  const Deadline deadline = deadline_in(kAnswerPatience);
  const Result<Queue> lock = inspect(session, path, deadline);
  if (!lock) return lock.error();
  std::vector<Holder> found;
  for (const QueueEntry* holder : lock->holders()) {
    found.push_back({path + "/" + holder->node, who_text(*holder)});
  }
  const std::size_t slash = path.rfind('/');
  if (!found.empty() || !lock->exists || slash == 0) return found;
  const Result<Queue> above = inspect(session, path.substr(0, slash), deadline);
  if (!above) return above.error();
  for (const QueueEntry& one : above->entries) {
    if (one.node != path.substr(slash + 1)) continue;
    if (one.standing != QueueEntry::Standing::kForeign) found.push_back({path, who_text(one)});
  }
  return found;
}

/// How many were asked, or made to let go. Whoever went meanwhile has let go.
Result<int> ask(Session& session, const std::vector<Holder>& holders, bool force) {
  int asked = 0;
  for (const auto& [node, who] : holders) {
    const Result<void> done = force ? session.remove(node, deadline_in(kAnswerPatience))
                                    : latchkey::revoke(session, node, deadline_in(kAnswerPatience));
    if (!done && done.error() != Code::kNoNode) return done.error();
    if (!done) continue;
    ++asked;
    say("latchkey revoke: {} {}\n", force ? "removed the entry of" : "asked", printable(who));
  }
  return asked;
}

/// Leaders' entries have a name of their own, and their data is the leader's name: a wish written
/// there would be taken for it.
bool is_leaders(const Holder& holder) {
  return holder.node.find("latch-", holder.node.rfind('/')) != std::string::npos;
}

int revoke_holders(const AskOptions& options) {
  const Result<std::string> path = lock_path(options.name);
  if (!path) return complain("revoke", path.error());
  Result<Session> session = open_aloud(options.service, deadline_in(kOpenPatience));
  if (!session) return complain("revoke", session.error());
  const Result<std::vector<Holder>> holders = find_holders(*session, *path);
  if (!holders) return complain("revoke", holders.error());
  if (!options.force && std::ranges::any_of(*holders, is_leaders)) {
    say("latchkey revoke: {0} is an election, and a leader cannot be asked: end its process, or "
        "take the lead away with latchkey revoke --force {0}\n",
        printable(options.name));
    return kIncompatible;
  }
  const Result<int> asked = ask(*session, *holders, options.force);
  if (!asked) return complain("revoke", asked.error());
  if (*asked == 0) {
    say("latchkey revoke: nobody holds {}\n", printable(options.name));
    return ExitCode::kBusy;
  }
  if (options.wait_ms.value_or(0) == 0) return kOk;
  const bool one_node = holders->front().node == *path;
  const std::string directory = one_node ? path->substr(0, path->rfind('/')) : *path;
  std::set<std::string> all;
  for (const Holder& holder : *holders) all.insert(holder.node);
  const auto gone = [all, directory](const Queue& lock) {
    return std::ranges::none_of(lock.entries, [&](const QueueEntry& entry) {
      return all.contains(directory + "/" + entry.node);
    });
  };
  const Result<void> left = wait_until(*session, directory, gone, deadline_of(options));
  return left ? kOk : complain("revoke", in_our_words(left.error(), options.service));
}

}  // namespace

Command add_wait(CLI::App& app) {
  const auto options = std::make_shared<AskOptions>();
  CLI::App* command = app.add_subcommand("wait", "Wait until a lock is free, and take nothing");
  command->add_option("NAME", options->name, "The lock")->required();
  add_duration_or_zero(*command, "-w,--wait", options->wait_ms, "TIME",
                       "At most so long, 0 is one look; else for ever");
  add_service_options(*command, options->service);
  command->footer(
      "Examples:\n"
      "  latchkey wait deploy && echo over\n"
      "  latchkey wait -w 30s deploy\n"
      "\n"
      "Exit code: 0 when nobody holds it and nobody waits for it, 1 if that took too long, 69 no\n"
      "server, 75 the server was lost meanwhile.\n"
      "Somebody may take it right after: to have it to yourself use latchkey run.");
  return {command, [options] { return wait(*options); }};
}

Command add_revoke(CLI::App& app) {
  const auto options = std::make_shared<AskOptions>();
  CLI::App* command = app.add_subcommand("revoke", "Ask whoever holds a lock to let go");
  command->add_option("NAME", options->name, "The lock, or the path of one entry of its queue")
      ->required();
  add_duration_or_zero(*command, "-w,--wait", options->wait_ms, "TIME",
                       "Wait so long for them to let go");
  command->add_flag("--force", options->force,
                    "Remove the holder's entry instead of asking: it has lost the lock then");
  add_service_options(*command, options->service);
  command->footer(
      "Examples:\n"
      "  latchkey revoke backup\n"
      "  latchkey revoke -w 10s backup\n"
      "  latchkey revoke --force backup     # the holder finds that it has lost the lock\n"
      "\n"
      "Asking is a wish: latchkey run and hold follow it, and so do programs that listen, those "
      "of\n"
      "Curator too; the leader of an election can only be made to, with --force. Exit code: 0\n"
      "asked, 1 nobody holds it or nobody let go in time, 76 it is an election.");
  return {command, [options] { return revoke_holders(*options); }};
}

}  // namespace latchkey::app
