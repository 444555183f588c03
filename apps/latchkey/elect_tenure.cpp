#include "elect_tenure.hpp"

#include <algorithm>
#include <utility>

#include "exit_code.hpp"
#include "lock_tenure.hpp"

namespace latchkey::app {
namespace {

using namespace std::chrono_literals;

constexpr Duration kFirstPause = 500ms;
constexpr Duration kLongestPause = 10s;

}  // namespace

ElectTenure::ElectTenure(ServiceOptions service, std::string path, std::string id, Remarks remarks)
    : SessionTenure(std::move(service)),
      path_(std::move(path)),
      id_(std::move(id)),
      remarks_(remarks) {}

ElectTenure::~ElectTenure() {
  close();
  join();
}

void ElectTenure::contend(std::function<void(News)> tell) {
  {
    const std::lock_guard lock(mutex_);
    tell_ = std::move(tell);
    wanted_ = true;
    if (refused_) return answer(*refused_);
    if (std::exchange(opening_, true)) return;
  }
  work([this] { open(); });
}

/// Until closed: makes sure that there is a session and that we run on it.
void ElectTenure::open() {
  Duration pause = kFirstPause;
  std::unique_lock lock(mutex_);
  while (!closed_) {
    if (election_) {
      closing_.wait(lock);  // Or for the end of the session: see hear().
      continue;
    }
    lock.unlock();
    auto session = search(deadline_in(kOpenPatience), tell_);
    lock.lock();
    if (closed_) return;
    if (session) {
      pause = kFirstPause;
      was_open_ = true;
      if (remarks_ == Remarks::kYes) remark_on_timeout(*session, tell_);
      election_.emplace(*session_, path_,
                        ElectionOptions{.id = id_, .on_change = [this](const ElectionNews& news) {
                                          hear(news);
                                        }});
      continue;
    }
    const Refusal refusal = refusal_of(unanswered(session.error()), kNoServer);
    if (!was_open_ || refusal.code != kNoServer) return answer(refusal);
    closing_.wait_for(lock, pause, [this] { return closed_; });
    pause = std::min(2 * pause, kLongestPause);
  }
}

/// On the session's executor.
void ElectTenure::hear(const ElectionNews& news) {
  if (news.state == ElectionState::kLeading) return lead(news);
  if (news.state != ElectionState::kFailed) return;
  const std::lock_guard lock(mutex_);
  if (news.error && !is_session_over(news.error->code())) {
    return answer(refusal_of(*news.error, kBusy));
  }
  if (news.error && *news.error == Code::kAuthFailed) return answer(refusal_of(*news.error, kBusy));
  election_.reset();
  closing_.notify_all();
}

void ElectTenure::lead(const ElectionNews& news) {
  const auto term = std::make_shared<Term>();
  std::unique_lock lock(mutex_);
  if (!election_ || closed_) return;
  // The job is stopped, or what ran in our last term does not end: let others lead.
  if (!wanted_) return election_->resign();
  const Duration timeout = session_->timeout();
  const auto tell = tell_;
  lock.unlock();

  const std::string node = node_of(*news.token, news.over);
  term->on_over.emplace(news.over, [term = term.get(), tell, timeout] {
    std::unique_lock guard(term->mutex);
    if (term->is_over || !std::exchange(term->granted, false)) return;
    tell(Loss{});
    guard.unlock();
    // Nobody else leads before this returns, if the service is there (H95).
    term->departure.wait(timeout);
  });
  lock.lock();
  const std::lock_guard guard(term->mutex);
  if (!wanted_ || news.over.stop_requested()) return;
  term->granted = true;
  term_ = term;
  answer(Grant{path_, node, to_string(*news.token)});
}

/// With the mutex held.
void ElectTenure::answer(News news) {
  // Nothing comes after it: who asks later has to hear of it too.
  if (const auto* refusal = std::get_if<Refusal>(&news)) refused_ = *refusal;
  if (std::exchange(wanted_, false)) tell_(std::move(news));
}

std::string ElectTenure::node_of(const Token& token, const std::stop_token& over) {
  std::optional<Session> session = this->session();
  const Deadline patience = deadline_in(kAnswerPatience);
  // Not all of it at once: the lead may be over meanwhile.
  Duration patch = 1s;
  while (session && !over.stop_requested() && !patience.has_passed(BootClock::now())) {
    const auto now = leader(*session, path_, std::min(patience, deadline_in(patch)));
    if (now && *now && (*now)->token == token) return path_ + "/" + (*now)->node;
    if (!now && !is_retryable(now.error().code()) && now.error() != Code::kTimedOut) break;
    // The server we are at has not heard of it yet.
    static_cast<void>(session->sync(path_, std::min(patience, deadline_in(patch))));
    patch = std::min<Duration>(2 * patch, kAnswerPatience);
  }
  return {};
}

void ElectTenure::withdraw() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  closing_.notify_all();
  if (election_) election_->close();
  answer(Refusal{kBusy});
}

void ElectTenure::all_gone() {
  std::shared_ptr<Term> term;
  {
    const std::lock_guard lock(mutex_);
    term = term_;
  }
  if (term) term->departure.complete();
}

std::optional<Tenure::Refusal> ElectTenure::release(const std::optional<keeping::Ending>&) {
  all_gone();
  std::shared_ptr<Term> term;
  {
    const std::lock_guard lock(mutex_);
    term = std::exchange(term_, nullptr);
  }
  if (term) {
    {
      const std::lock_guard guard(term->mutex);
      term->is_over = true;
    }
    term->on_over.reset();
  }
  const std::lock_guard lock(mutex_);
  if (election_) election_->resign();
  return std::nullopt;
}

void ElectTenure::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    closing_.notify_all();
    if (election_) election_->close();
  }
  all_gone();
  end();
}

}  // namespace latchkey::app
