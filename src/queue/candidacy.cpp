#include "queue/candidacy.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace latchkey::queue {

using namespace candidacy;

namespace {

/// Times are users' options: none is so short that it makes a busy loop, none so long that adding
/// it to a moment overflows.
Duration bounded(Duration span) {
  constexpr Duration kShortest = std::chrono::milliseconds(1);
  constexpr Duration kLongest = std::chrono::hours(24 * 365);
  return std::clamp(span, kShortest, kLongest);
}

Candidacy::Options bounded(Candidacy::Options options) {
  if (options.health_period) options.health_period = bounded(*options.health_period);
  options.min_pause = bounded(options.min_pause);
  options.max_pause = std::max(bounded(options.max_pause), options.min_pause);
  return options;
}

Error unhealthy() {
  return Error(Code::kCancelled, "lead: the health check failed or did not return in time");
}

}  // namespace

bool is_worth_another_try(Code code) {
  switch (code) {
    case Code::kLost:  // Somebody deleted our entry.
    case Code::kQuotaExceeded:
    case Code::kTooManyEphemerals:
    case Code::kReadOnlyServer:
    case Code::kServerError:
    case Code::kCounterExhausted: return true;
    default: return is_retryable(code);
  }
}

Candidacy::Candidacy(Options options)
    : options_(bounded(std::move(options))), next_pause_(options_.min_pause) {}

std::vector<Action> Candidacy::step(const Event& event, Instant now) {
  now_ = now;
  std::visit([this](const auto& what) { on(what); }, event);
  return std::exchange(out_, {});
}

void Candidacy::on(const Start&) {
  if (phase_ == Phase::kNew) stand();
}

void Candidacy::on(const Granted&) {
  // A grant that crosses our leaving belongs to nobody.
  if (phase_ != Phase::kStanding) {
    out_.emplace_back(GiveUp{});
    return;
  }
  phase_ = Phase::kLeading;
  ++term_;
  led_since_ = now_;
  tell(ElectionState::kLeading, {});
  if (options_.health_period) wake_after(*options_.health_period);
}

void Candidacy::on(const Failed& failed) {
  if (phase_ != Phase::kStanding) return;
  if (!is_worth_another_try(failed.error.code())) {
    return leave(ElectionState::kFailed, failed.error);
  }
  // A try that comes to nothing is a term of no length.
  pause_ = std::exchange(next_pause_, std::min(2 * next_pause_, options_.max_pause));
  tell(ElectionState::kQueued, failed.error);
  rest_or_stand();
}

void Candidacy::on(const Lost& lost) {
  if (phase_ == Phase::kLeading) return end_term(ElectionState::kQueued, lost.error);
  // While ending it is what we are about to give up anyway. Afterwards nobody is left to be told.
  if (phase_ != Phase::kEnding) out_.emplace_back(GiveUp{});
}

void Candidacy::on(const Told& told) {
  if (phase_ != Phase::kEnding || told.term != term_) return;
  out_.emplace_back(GiveUp{});
  if (state_ != ElectionState::kQueued) return finish();
  rest_or_stand();
}

void Candidacy::on(const Health& health) {
  const bool now_leading = phase_ == Phase::kLeading && asked_in_ == term_;
  asked_in_ = 0;
  if (now_leading && !health.good) end_term(ElectionState::kQueued, unhealthy());
}

void Candidacy::on(const Woken& woken) {
  if (woken.number != wake_) return;
  if (phase_ == Phase::kResting) return stand();
  if (phase_ == Phase::kLeading) health_is_due();
}

void Candidacy::on(const Resign&) {
  if (phase_ == Phase::kLeading) end_term(ElectionState::kQueued, {});
}

void Candidacy::on(const Close&) {
  if (state_ == ElectionState::kFailed || state_ == ElectionState::kClosed) return;
  leave(ElectionState::kClosed, {});
}

void Candidacy::on(const SessionOver& over) {
  if (phase_ == Phase::kDone) return;
  if (phase_ != Phase::kEnding) return leave(ElectionState::kFailed, over.error);
  // Told comes, then we are done. A session that is being closed still has its entry until then.
  if (state_ == ElectionState::kQueued) tell(ElectionState::kFailed, over.error);
}

void Candidacy::stand() {
  phase_ = Phase::kStanding;
  out_.emplace_back(Stand{});
}

void Candidacy::wake_after(Duration span) { out_.emplace_back(Wake{++wake_, span}); }

/// The hook is called once in a period and has that long to return. One that hangs is not called
/// again before it has returned, and counts as a bad answer until then (H74).
void Candidacy::health_is_due() {
  if (asked_in_ != 0) return end_term(ElectionState::kQueued, unhealthy());
  asked_in_ = term_;
  out_.emplace_back(AskHealth{});
  wake_after(*options_.health_period);
}

void Candidacy::end_term(ElectionState state, std::optional<Error> error) {
  phase_ = Phase::kEnding;
  pause_ = Duration::zero();
  if (now_ - led_since_ < options_.short_term) {
    pause_ = std::exchange(next_pause_, std::min(2 * next_pause_, options_.max_pause));
  } else {
    next_pause_ = options_.min_pause;
  }
  out_.emplace_back(EndTerm{term_});
  tell(state, std::move(error));
}

void Candidacy::rest_or_stand() {
  if (pause_ == Duration::zero()) return stand();
  phase_ = Phase::kResting;
  wake_after(pause_);
}

void Candidacy::leave(ElectionState state, std::optional<Error> error) {
  if (phase_ == Phase::kLeading) return end_term(state, std::move(error));
  tell(state, std::move(error));
  if (phase_ == Phase::kEnding) return;  // Told comes, then we are done.
  // A claim that has failed does not mind being withdrawn.
  if (phase_ == Phase::kStanding) out_.emplace_back(Withdraw{});
  finish();
}

void Candidacy::finish() {
  phase_ = Phase::kDone;
  ++wake_;
  out_.emplace_back(Done{});
}

void Candidacy::tell(ElectionState state, std::optional<Error> error) {
  state_ = state;
  out_.emplace_back(Tell{state, std::move(error)});
}

}  // namespace latchkey::queue
