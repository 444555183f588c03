#include "lock_tenure.hpp"

#include <unistd.h>

#include <algorithm>
#include <future>
#include <utility>

#include <fmt/core.h>

#include "exit_code.hpp"
#include "latchkey/inspect.hpp"
#include "queue_view.hpp"
#include "waiting_line.hpp"

namespace latchkey::app {
namespace {

using namespace std::chrono_literals;

/// How long the service may take to answer for the first time.
constexpr Duration kShortestSearch = 5s;
constexpr Duration kLongestSearch = 10s;
/// Whoever gets the lock sooner than this sees no line about waiting.
constexpr auto kQuietWait = 200ms;
/// How often the line looks whether the terminal is ours.
constexpr auto kRefresh = 300ms;
/// For one more look at the queue, by somebody whose time is over.
constexpr Duration kLastLook = 1s;

}  // namespace

LockWish lock_wish(const CommandOptions& options, const WaitOptions& wait,
                   std::function<Lock(const Session&)> make) {
  LockWish wish{.service = options.service, .make = std::move(make)};
  if (!wait.waits()) wish.wait = LockWish::Wait::kNo;
  if (wait.wait_ms) wish.patience = std::chrono::milliseconds(*wait.wait_ms);
  wish.busy_code = wait.conflict_code;
  wish.path = *lock_path(options.name);
  wish.job = ::getpgrp();
  wish.verbose = options.verbose;
  if (::isatty(STDERR_FILENO) != 0) {
    wish.telling = LockWish::Telling::kLine;
  } else if (options.verbose) {
    wish.telling = LockWish::Telling::kRemarks;
  }
  return wish;
}

Tenure::Refusal refusal_of(const Error& error, int busy_code) {
  const int code = exit_code_of(error.code());
  if (code == kBusy) return {busy_code, error.message(), Tenure::Said::kIfVerbose};
  if (error == Code::kSizeMismatch) {
    return {code, error.message() +
                      "; come with the -N that is stored, or change it for all with latchkey "
                      "resize"};
  }
  // What the library says of a semaphore's permits is -N here.
  const bool semaphore =
      error == Code::kKindMismatch && error.message().find(" is a semaphore") != std::string::npos;
  return {code, error.message() + (semaphore ? "; latchkey run -N TOTAL takes one" : "")};
}

LockTenure::LockTenure(LockWish wish)
    : SessionTenure(wish.service), wish_(std::move(wish)), deadline_(deadline_in(wish_.patience)) {}

LockTenure::~LockTenure() {
  stop_.request_stop();
  all_gone();
  join();
}

void LockTenure::contend(std::function<void(News)> tell) {
  stop_ = std::stop_source();
  departure_ = std::make_shared<Departure>();
  tell_ = std::move(tell);
  answered_ = false;
  work([this, stop = stop_] {
    News news = ask(stop);
    const bool is_ours = std::holds_alternative<Grant>(news);
    {
      const std::lock_guard lock(mutex_);
      if (std::exchange(answered_, true)) return;
      tell_(std::move(news));
    }
    // Only now: a wish or a loss that is there already is one of what has been granted.
    if (is_ours) listen();
  });
}

void LockTenure::withdraw() {
  stop_.request_stop();
  const std::lock_guard lock(mutex_);
  // Without a session nothing of us is on the server, and there is nothing to wait for.
  if (!session_ && !std::exchange(answered_, true)) tell_(Refusal{kBusy});
}

Tenure::News LockTenure::ask(std::stop_source stop) {
  std::optional<Session> session = this->session();
  if (!session) {
    const bool waits = wish_.wait == LockWish::Wait::kYes;
    const Duration within =
        waits ? std::clamp(wish_.patience, kShortestSearch, kLongestSearch) : kShortestSearch;
    auto opened = search(deadline_in(within), tell_);
    if (!opened) return refusal_of(unanswered(opened.error()), kNoServer);
    session = *opened;
    if (wish_.verbose) remark_on_timeout(*session, tell_);
  }
  lock_ = wish_.make(*session);
  if (auto refusal = before_queue(*session, *lock_, stop)) return *refusal;
  auto lease = wait(*session, stop.get_token());
  if (auto why = why_stopped(*lock_)) return *why;
  if (!lease) return refuse(*session, lease.error());
  if (auto refusal = before_command(*session, *lock_)) return *refusal;
  if (lease->lost().stop_requested()) {
    return Refusal{kLost, lock_->path() + " was lost before the command could start"};
  }
  lease_ = std::move(*lease);
  return Grant{lock_->path(), lease_->node(), to_string(lease_->token())};
}

Result<Lease> LockTenure::wait(const Session& session, std::stop_token stop) const {
  if (wish_.wait == LockWish::Wait::kNo) {
    auto lease = lock_->try_lock(deadline_in(kAnswerPatience), std::move(stop));
    if (!lease) return unanswered(lease.error());
    return lease;
  }
  if (wish_.telling == LockWish::Telling::kNothing) return lock_->lock(deadline_, std::move(stop));
  auto lease = lock_->lock_async(deadline_, std::move(stop)).future();
  if (lease.wait_for(kQuietWait) == std::future_status::ready) return lease.get();
  if (wish_.telling == LockWish::Telling::kRemarks) {
    const QueueWatch watch(session, wish_.path,
                           [tell = tell_, id = session.id(),
                            last = std::string()](const Result<Queue>& queue) mutable {
                             if (!queue) return;
                             std::string text = format_waiting(*queue, id);
                             if (std::exchange(last, text) != text) tell(Remark{std::move(text)});
                           });
    lease.wait();
    return lease.get();
  }
  WaitingLine line(session, wish_.path, wish_.job);
  while (lease.wait_for(kRefresh) != std::future_status::ready) line.refresh();
  return lease.get();
}

Tenure::Refusal LockTenure::refuse(Session& session, const Error& error) const {
  Refusal refusal = refusal_of(in_our_words(error, wish_.service), wish_.busy_code);
  if (!wish_.verbose || exit_code_of(error.code()) != kBusy) return refusal;
  // Who is in the way, and not only the name of a node.
  const Result<Queue> queue = inspect(session, wish_.path, deadline_in(kLastLook));
  if (!queue || queue->holders().empty()) return refusal;
  refusal.text = fmt::format(
      "{}; {}",
      wish_.wait == LockWish::Wait::kNo ? "not to be had at once" : "not to be had in time",
      queue_line(*queue));
  return refusal;
}

void LockTenure::listen() {
  on_wish_ =
      std::make_unique<StopCallback>(lease_->release_requested(), [tell = tell_] { tell(Wish{}); });
  on_loss_ = std::make_unique<StopCallback>(
      lease_->lost(), [tell = tell_, departure = departure_, timeout = session_->timeout()] {
        tell(Loss{});
        // The lock passes on when this returns, if the service is there: not before the last
        // process is gone (H95).
        departure->wait(timeout);
      });
}

void LockTenure::all_gone() {
  if (departure_) departure_->complete();
}

std::optional<Tenure::Refusal> LockTenure::release(const std::optional<keeping::Ending>& ending) {
  all_gone();
  join();  // The thread that told the grant may still be about to listen.
  std::optional<Refusal> refusal;
  if (ending) refusal = after_command(*session_, *lock_, *lease_, *ending);
  on_wish_.reset();
  on_loss_.reset();
  lease_->release();
  return refusal;
}

void LockTenure::close() {
  stop_.request_stop();
  all_gone();
  end();
}

}  // namespace latchkey::app
