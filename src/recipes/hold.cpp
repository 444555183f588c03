#include "recipes/hold.hpp"

#include "base/assert.hpp"
#include "recipes/attempt.hpp"
#include "session/operations.hpp"

namespace latchkey::recipes {

Hold::Hold(std::shared_ptr<session::Host> host, std::weak_ptr<Attempt> attempt, Token token,
           std::string node)
    : host_(std::move(host)), attempt_(std::move(attempt)), token_(token), node_(std::move(node)) {}

LeaseState Hold::state() noexcept {
  const bool forked = host_->is_forked();
  const session::View& view = host_->view();
  const auto has_passed = [](const std::atomic<Instant::rep>& at) {
    return BootClock::now().time_since_epoch().count() >= at.load(std::memory_order_acquire);
  };
  if (!forked && phase_.load() == Phase::kHeld && has_passed(view.lease_deadline)) {
    // The session's own timer is late, or we are: whoever notices first ends the hold.
    host_->enter(
        [this](const session::Machine& machine, Instant now) { check_clock(machine, now); });
  }
  switch (phase_.load()) {
    case Phase::kLost: return LeaseState::kLost;
    case Phase::kReleased: return LeaseState::kReleased;
    case Phase::kHeld: break;
  }
  if (forked) return LeaseState::kLost;
  const bool heard = view.state.load(std::memory_order_acquire) == SessionState::kConnected &&
                     !has_passed(view.suspect_at);
  return heard ? LeaseState::kHeld : LeaseState::kSuspect;
}

void Hold::check_clock(const session::Machine& machine, Instant now) {
  if (phase_ != Phase::kHeld || now < machine.lease().deadline()) return;
  if (const auto attempt = attempt_.lock()) attempt->on_lease_over();
}

std::shared_ptr<Attempt> Hold::end(const session::Machine& machine, Instant now) {
  check_clock(machine, now);
  if (phase_ != Phase::kHeld) return nullptr;
  phase_ = Phase::kReleased;
  return attempt_.lock();
}

Released Hold::release() noexcept {
  if (phase_ != Phase::kHeld || host_->is_forked()) return Released::kAlreadyOver;
  Released how = Released::kAlreadyOver;
  host_->enter([&](const session::Machine& machine, Instant now) {
    const auto attempt = end(machine, now);
    if (!attempt) return;
    how = machine.state() == SessionState::kConnected ? Released::kNow : Released::kDeferred;
    attempt->release({});
  });
  return how;
}

Result<void> Hold::release(Deadline deadline) {
  if (auto allowed = session::check_blocking(*host_, "release"); !allowed) return allowed;
  // Shared, because the answer may come long after the deadline.
  auto slot = std::make_shared<base::Slot<session::Outcome>>();
  bool ended = false;
  host_->enter([&](const session::Machine& machine, Instant now) {
    const auto attempt = end(machine, now);
    if (!attempt) return;
    ended = true;
    attempt->release([slot](session::Outcome&& outcome) { slot->set(std::move(outcome)); });
  });
  if (!ended && phase_ == Phase::kReleased) return {};
  if (!ended) return Error(Code::kLost, "release " + node_ + ": the lock was lost before");
  if (!slot->wait_until(deadline)) {
    session::Outcome outcome;
    outcome.code = Code::kTimedOut;
    outcome.detail = "it is removed in the background";
    return session::make_error("release", node_, outcome);
  }
  const session::Outcome outcome = slot->take();
  if (outcome.ok) return {};
  return session::make_error("release", node_, outcome);
}

}  // namespace latchkey::recipes

namespace latchkey::inline v0 {

Lease::Lease(std::shared_ptr<recipes::Hold> hold) noexcept : hold_(std::move(hold)) {}
Lease::Lease(Lease&&) noexcept = default;

Lease& Lease::operator=(Lease&& other) noexcept {
  if (this != &other) {
    if (hold_) hold_->release();
    hold_ = std::move(other.hold_);
  }
  return *this;
}

Lease::~Lease() {
  if (hold_) hold_->release();
}

Token Lease::token() const noexcept {
  LATCHKEY_ASSERT(hold_);  // Moved from.
  return hold_->token();
}

const std::string& Lease::node() const noexcept {
  LATCHKEY_ASSERT(hold_);
  return hold_->node();
}

std::stop_token Lease::lost() const noexcept {
  LATCHKEY_ASSERT(hold_);
  return hold_->lost();
}

LeaseState Lease::state() const noexcept { return hold_ ? hold_->state() : LeaseState::kReleased; }
Released Lease::release() noexcept { return hold_ ? hold_->release() : Released::kAlreadyOver; }

Result<void> Lease::release(Deadline deadline) {
  return hold_ ? hold_->release(deadline) : Result<void>{};
}

}  // namespace latchkey::inline v0
