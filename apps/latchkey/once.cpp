#include "once.hpp"

#include <atomic>

#include <CLI/CLI.hpp>

#include "command_options.hpp"
#include "exit_code.hpp"
#include "latchkey/mutex.hpp"
#include "lock_tenure.hpp"
#include "recipes/entry_data.hpp"
#include "words.hpp"

namespace latchkey::app {
namespace {

using namespace std::chrono_literals;

struct OnceOptions : CommandOptions {
  WaitOptions wait;
  bool forget = false;
};

std::string mark_of(const std::string& lock) { return lock + "/" + kDoneMark; }

Tenure::Refusal done_before(const std::string& lock) {
  return {kOk, lock + " was done before", Tenure::Said::kIfVerbose};
}

/// A lock with a mark beside its queue that says that nothing is left to do.
class OnceTenure final : public LockTenure {
 public:
  OnceTenure(LockWish wish, std::string reason)
      : LockTenure(std::move(wish)), reason_(std::move(reason)) {}

 private:
  std::optional<Refusal> before_queue(Session& session, const Lock& lock,
                                      std::stop_source& stop) override {
    const auto found = session.exists(mark_of(lock.path()), deadline_in(kAnswerPatience),
                                      [done = done_, stop](const WatchEvent& event) mutable {
                                        if (event.kind != EventKind::kCreated) return;
                                        *done = true;
                                        stop.request_stop();
                                      });
    return answer(found, lock);
  }

  /// Whoever had the lock before us made its mark before it let go, and what we saw last was that
  /// it let go.
  std::optional<Refusal> before_command(Session& session, const Lock& lock) override {
    return answer(session.exists(mark_of(lock.path()), deadline_in(kAnswerPatience)), lock);
  }

  std::optional<Refusal> why_stopped(const Lock& lock) override {
    if (!*done_) return std::nullopt;
    return done_before(lock.path());
  }

  std::optional<Refusal> after_command(Session& session, const Lock& lock, const Lease& lease,
                                       keeping::Ending ending) override {
    if (ending != keeping::Ending{kOk, 0}) return std::nullopt;
    const Deadline deadline = deadline_in(kAnswerPatience);
    while (true) {
      const auto kept = make_mark(session, lock, lease, deadline);
      if (kept) return std::nullopt;
      if (is_retryable(kept.error().code()) && !deadline.has_passed(BootClock::now())) continue;
      return Refusal{
          exit_code_of(kept.error().code()),
          "the command ran, but it could not be kept that it did: " + kept.error().message()};
    }
  }

  /// Only as long as the lock is ours: somebody else may be running it by now.
  Result<void> make_mark(Session& session, const Lock& lock, const Lease& lease,
                         Deadline deadline) const {
    const std::string data =
        recipes::entry_data(reason_) + "token=" + to_string(lease.token()) + '\n';
    Multi mark{{Create{mark_of(lock.path()), data}}};
    if (auto ours = lease.guard(mark); !ours) return ours;
    const auto outcome = session.call(mark, deadline);
    if (outcome && outcome->committed) return {};
    // Perhaps this was not the first try, and only the answer to that was lost.
    const auto found = session.exists(mark_of(lock.path()), deadline);
    if (found && *found) return {};
    if (!outcome) return outcome.error();
    return Error(Code::kLost, lock.path() + " was lost before");
  }

  static std::optional<Refusal> answer(const Result<std::optional<Stat>>& found, const Lock& lock) {
    if (!found) return refusal_of(unanswered(found.error()), kNoServer);
    if (!*found) return std::nullopt;
    return done_before(lock.path());
  }

  const std::string reason_;
  const std::shared_ptr<std::atomic<bool>> done_ = std::make_shared<std::atomic<bool>>(false);
};

int forget(const OnceOptions& options, const std::string& path) {
  auto session = open_aloud(options.service, deadline_in(kOpenPatience));
  if (!session) return complain("once", session.error());
  const auto removed = session->remove(mark_of(path), deadline_in(kAnswerPatience));
  const bool was_done = removed || removed.error() != Code::kNoNode;
  if (!removed && was_done) return complain("once", removed.error());
  if (!was_done) say("latchkey once: {} was not done\n", path);
  static_cast<void>(session->close(deadline_in(2s)));
  return kOk;
}

int once(const OnceOptions& options, const std::vector<std::string>& words) {
  const auto path = lock_path(options.name);
  if (!path) return misused("once", path.error().message(), options.status_fd);
  if (options.forget && (!words.empty() || !options.shell_command.empty())) {
    return misused("once", "--forget runs nothing: leave out the command", options.status_fd);
  }
  if (options.forget) return forget(options, *path);
  auto keep_it = keep_options("once", options, words);
  if (!keep_it) return misused("once", keep_it.error().message(), options.status_fd);
  if (const std::string wrong = check_nesting(options, options.wait, {*path}, *keep_it);
      !wrong.empty()) {
    return misused("once", wrong, options.status_fd);
  }
  const std::string reason = reason_of(options, *keep_it);
  const LockWish wish = lock_wish(options, options.wait, [&](const Session& session) -> Lock {
    return Mutex(session, *path, {.reason = reason});
  });
  return keep(*keep_it, [&] { return std::make_unique<OnceTenure>(wish, reason); });
}

}  // namespace

Command add_once(CLI::App& app) {
  CLI::App* command = app.add_subcommand("once", "Run a command once, whoever comes first");
  auto options = std::make_shared<OnceOptions>();
  auto words = std::make_shared<std::vector<std::string>>();
  add_command_options(*command, *options);
  add_wait_options(*command, options->wait);
  command->add_flag("--forget", options->forget, "Let it be run again, and run nothing now");
  command->footer(
      "Examples:\n"
      "  latchkey once schema-42 -- ./migrate.sh   the first migrates, the others wait for it\n"
      "  latchkey once schema-42 --forget          it was not what we wanted: again\n"
      "\n"
      "A command that ends with 0 is done. If it fails, is killed or loses the lock, the next one\n"
      "that waits runs it. Exit codes: 0 if it is done, by whomever; otherwise those of\n"
      "latchkey run.");
  return {command, [options, words] { return once(*options, *words); }, words};
}

}  // namespace latchkey::app
