#include "recipes/hold.hpp"

#include <utility>

#include "base/assert.hpp"
#include "base/mutant.hpp"
#include "session/submit.hpp"

namespace latchkey::recipes {
namespace {

bool has_passed(const std::atomic<Instant::rep>& at) {
  return BootClock::now().time_since_epoch().count() >= at.load(std::memory_order_acquire);
}

}  // namespace

Hold::Hold(const std::shared_ptr<session::Host>& host, session::Machine& machine, Sink sink)
    : host_(*host), shared_host_(host), machine_(machine), sink_(std::move(sink)) {}

std::shared_ptr<Hold> Hold::keep_session(std::shared_ptr<session::Host> host,
                                         std::shared_ptr<Hold> hold) {
  struct Both {
    std::shared_ptr<session::Host> host;
    std::shared_ptr<Hold> hold;  // Goes first.
  };
  auto both = std::make_shared<Both>(Both{std::move(host), std::move(hold)});
  return {both, both->hold.get()};
}

std::shared_ptr<Hold> Hold::begin(const Recipe& recipe, session::Machine& machine, queue::Wait wait,
                                  Deadline deadline, Sink sink) {
  auto hold = std::make_shared<Hold>(recipe.host(), machine, std::move(sink));
  const bool waits_on = base::mutated(base::Mutant::kDeadlineIgnored);
  const Instant end = waits_on ? Instant::max() : deadline.at();
  hold->deadline_timer_ = machine.timers().add(end, [weak = std::weak_ptr(hold)] {
    if (const auto self = weak.lock()) self->cancel(Code::kTimedOut);
  });
  hold->claim_ = recipe.start(machine, wait, hold);
  return hold;
}

void Hold::cancel(Code code) {
  const auto claim = claim_.lock();
  if (claim && phase_ == Phase::kWaiting) claim->cancel(code);
}

void Hold::answer(Result<std::shared_ptr<Hold>> result) {
  machine_.timers().cancel(std::exchange(deadline_timer_, 0));
  std::exchange(sink_, {})(std::move(result));
}

void Hold::granted(Granted grant) {
  grant_ = std::move(grant);
  phase_ = Phase::kHeld;
  answer(shared_from_this());
}

void Hold::failed(Error error) {
  phase_ = Phase::kRefused;
  answer(std::move(error));
}

void Hold::lost(Code, std::function<void()> told) {
  Phase held = Phase::kHeld;
  if (!phase_.compare_exchange_strong(held, Phase::kLost)) {
    claim_over_ = true;
    return told();
  }
  auto host = shared_host_.lock();
  if (!host) return told();  // Nobody is left who could hear it.
  host_.post_signal([self = shared_from_this(), host = std::move(host), told = std::move(told)] {
    if (!base::mutated(base::Mutant::kLossUntold)) {
      const session::TellingLoss here(*host);
      self->lost_.request_stop();
    }
    host->enter([&](session::Machine&, Instant) { told(); });
  });
}

void Hold::asked_to_let_go() {
  host_.post_signal([source = asked()] { source.request_stop(); });
}

const std::stop_source& Hold::asked() {
  if (!asked_.stop_possible()) asked_ = std::stop_source();
  return asked_;
}

std::stop_token Hold::release_requested() {
  if (host_.is_forked()) return asked_.get_token();  // Nobody else is there.
  std::stop_token token;
  host_.enter([&](session::Machine&, Instant) {
    token = asked().get_token();
    const auto claim = claim_.lock();
    if (claim && phase_ == Phase::kHeld) claim->listen();
  });
  return token;
}

bool Hold::lease_has_passed() const noexcept { return has_passed(host_.view().lease_deadline); }

LeaseState Hold::state() noexcept {
  const bool forked = host_.is_forked();
  const session::View& view = host_.view();
  if (!forked && phase_.load() == Phase::kHeld && lease_has_passed()) {
    // The session's own timer is late, or we are: whoever notices first ends the hold.
    host_.enter(
        [this](const session::Machine& machine, Instant now) { check_clock(machine, now); });
  }
  switch (phase_.load()) {
    case Phase::kLost: return LeaseState::kLost;
    case Phase::kReleased: return LeaseState::kReleased;
    case Phase::kWaiting:
    case Phase::kRefused:
    case Phase::kHeld: break;
  }
  if (forked) return LeaseState::kLost;
  const bool heard = view.state.load(std::memory_order_acquire) == SessionState::kConnected &&
                     !has_passed(view.suspect_at);
  return heard ? LeaseState::kHeld : LeaseState::kSuspect;
}

void Hold::check_clock(const session::Machine& machine, Instant now) {
  if (phase_ != Phase::kHeld || now < machine.lease().deadline()) return;
  if (const auto claim = claim_.lock()) claim->on_lease_over();
}

std::shared_ptr<Claim> Hold::claim(const session::Machine& machine, Instant now) {
  check_clock(machine, now);
  return phase_ == Phase::kHeld ? claim_.lock() : nullptr;
}

std::shared_ptr<Claim> Hold::end(const session::Machine& machine, Instant now) {
  auto held = claim(machine, now);
  if (held) retire();
  return held;
}

Released Hold::release() noexcept {
  if (phase_ != Phase::kHeld || host_.is_forked()) return Released::kAlreadyOver;
  Released how = Released::kAlreadyOver;
  host_.enter([&](const session::Machine& machine, Instant now) {
    const auto claim = end(machine, now);
    if (!claim) return;
    const bool connected = machine.state() == SessionState::kConnected;
    if (claim->release({}) == LetGo::kStillHeld) {
      how = Released::kStillHeld;
    } else {
      how = connected ? Released::kNow : Released::kDeferred;
    }
  });
  return how;
}

void Hold::let_go() noexcept {
  if (host_.is_forked()) return;
  if (lease_has_passed()) {
    release();  // It is a loss, and somebody may listen for it.
    return;
  }
  Phase held = Phase::kHeld;
  if (!phase_.compare_exchange_strong(held, Phase::kReleased)) return;
  letting_go_ = shared_from_this();
  host_.leave(*this);
}

void Hold::run(session::Machine&, Instant) noexcept {
  const auto self = std::exchange(letting_go_, {});
  const auto claim = claim_.lock();
  if (claim && !claim_over_) claim->release({});
}

Result<void> Hold::release(Deadline deadline) {
  if (auto allowed = session::check_blocking(host_, "release"); !allowed) return allowed;
  // Shared, because the answer may come long after the deadline.
  auto slot = std::make_shared<base::Slot<session::Outcome>>();
  bool ended = false;
  host_.enter([&](const session::Machine& machine, Instant now) {
    const auto claim = end(machine, now);
    if (!claim) return;
    ended = true;
    claim->release([slot](session::Outcome&& outcome) { slot->set(std::move(outcome)); });
  });
  if (!ended && phase_ == Phase::kReleased) return {};
  if (!ended)
    return Error(Code::kLost, "release " + nodes().front().path + ": the lock was lost before");
  if (!session::wait_until(host_, *slot, deadline)) {
    session::Outcome outcome;
    outcome.code = Code::kTimedOut;
    outcome.detail = "it is removed in the background";
    return session::make_error("release", nodes().front().path, outcome);
  }
  const session::Outcome outcome = slot->take();
  if (outcome.ok) return {};
  return session::make_error("release", nodes().front().path, outcome);
}

Result<void> Hold::check(Deadline deadline) {
  const std::string& name = nodes().front().path;
  if (auto allowed = session::check_blocking(host_, "check"); !allowed) return allowed;
  if (state() != LeaseState::kHeld && state() != LeaseState::kSuspect) {
    return Error(Code::kLost, "check " + name + ": the lock was lost or released before");
  }
  // One flush: what is read behind a sync is as new as the leader was when it answered. The answers
  // are gathered under the session's lock, so that this works inside a callback as well.
  struct Answers {
    std::size_t missing;
    std::optional<Error> error;
    base::Slot<Result<void>> slot;

    void add(const Result<void>& one) {
      if (!one && !error) error = one.error();
      if (--missing == 0) slot.set(error ? Result<void>(*error) : Result<void>());
    }
  };
  const auto answers = std::make_shared<Answers>();
  answers->missing = nodes().size() + 1;
  host_.enter([&](session::Machine& machine, Instant now) {
    session::submit<Sync>(host_, machine, Sync{Path(name)}, deadline, now,
                          [answers](const Result<void>& done) { answers->add(done); });
    for (const HeldNode& node : nodes()) {
      session::submit<Exists>(
          host_, machine, Exists{Path(node.path)}, deadline, now,
          [answers, node](const Result<std::optional<Stat>>& stat) {
            if (!stat) return answers->add(stat.error());
            const bool ours = *stat && (*stat)->czxid == node.czxid;
            answers->add(ours ? Result<void>() : Error(Code::kLost, "check " + node.path));
          });
    }
  });
  return session::wait_for(host_, answers->slot, deadline);
}

}  // namespace latchkey::recipes

namespace latchkey::inline v0 {

Lease::Lease(std::shared_ptr<recipes::Hold> hold) noexcept : hold_(std::move(hold)) {}
Lease::Lease(Lease&&) noexcept = default;

Lease& Lease::operator=(Lease&& other) noexcept {
  if (this != &other) {
    if (hold_) hold_->let_go();
    hold_ = std::move(other.hold_);
  }
  return *this;
}

Lease::~Lease() {
  if (hold_) hold_->let_go();
}

Token Lease::token() const noexcept {
  LATCHKEY_DEMAND(hold_, "Lease::token(): the lease was moved away");
  return hold_->token();
}

const std::string& Lease::node() const noexcept {
  LATCHKEY_DEMAND(hold_, "Lease::node(): the lease was moved away");
  return hold_->nodes().front().path;
}

std::stop_token Lease::lost() const noexcept {
  LATCHKEY_DEMAND(hold_, "Lease::lost(): the lease was moved away");
  return hold_->lost();
}

std::vector<std::string> Lease::nodes() const {
  LATCHKEY_DEMAND(hold_, "Lease::nodes(): the lease was moved away");
  std::vector<std::string> paths;
  for (const recipes::HeldNode& node : hold_->nodes()) paths.push_back(node.path);
  return paths;
}

std::stop_token Lease::release_requested() const {
  LATCHKEY_DEMAND(hold_, "Lease::release_requested(): the lease was moved away");
  return hold_->release_requested();
}

Result<void> Lease::check(Deadline deadline) const {
  if (!hold_) return Error(Code::kLost, "check: the lease was moved away");
  return hold_->check(deadline);
}

Result<void> Lease::guard(Multi& multi) const {
  if (!hold_) return Error(Code::kLost, "guard: the lease was moved away");
  const LeaseState now = state();
  if (now == LeaseState::kLost || now == LeaseState::kReleased) {
    return Error(Code::kLost, "guard " + node() + ": the lock was " +
                                  (now == LeaseState::kLost ? "lost" : "released") + " before");
  }
  if (!hold_->is_provable()) {
    return Error(Code::kInvalidOption,
                 "guard " + node() +
                     ": the node may come to stand for another hold, so a check of it proves "
                     "nothing; let the resource compare tokens");
  }
  if (base::mutated(base::Mutant::kGuardWithoutCheck)) return {};
  std::vector<Multi::Part> parts;
  for (const recipes::HeldNode& node : hold_->nodes()) parts.emplace_back(Check{Path(node.path)});
  parts.insert(parts.end(), multi.parts.begin(), multi.parts.end());
  multi.parts = std::move(parts);
  return {};
}

LeaseState Lease::state() const noexcept { return hold_ ? hold_->state() : LeaseState::kReleased; }
Released Lease::release() noexcept { return hold_ ? hold_->release() : Released::kAlreadyOver; }

Result<void> Lease::release(Deadline deadline) {
  return hold_ ? hold_->release(deadline) : Result<void>{};
}

}  // namespace latchkey::inline v0
