#include "session/lease_clock.hpp"

#include <algorithm>

#include "base/mutant.hpp"

namespace latchkey::session {

namespace {

/// What a time-out that a server counted from `since` is worth to a client with another clock.
Instant end_of(Duration timeout, Instant since) { return since + timeout - timeout / 100; }

}  // namespace

void LeaseClock::asked(Instant now) { in_doubt_since_ = std::min(in_doubt_since_, now); }

void LeaseClock::granted(Duration timeout, Instant asked) {
  // An earlier handshake may have been carried out as well.
  if (in_doubt_since_ < asked && !base::mutated(base::Mutant::kNoHandshakeDoubt)) {
    count_with(least_, in_doubt_since_);
  }
  in_doubt_since_ = Instant::max();
  count_with(timeout, asked);
  last_sent_ = asked;
  pauses_.clear();
  trips_.clear();
}

void LeaseClock::count_with(Duration timeout, Instant since) {
  if (timeout >= timeout_ && !base::mutated(base::Mutant::kLongerGrant)) return;
  timeout_ = timeout;
  deadline_ = std::min(deadline_, end_of(timeout, since));
}

Instant LeaseClock::deadline() const {
  const bool trusts = base::mutated(base::Mutant::kNoHandshakeDoubt);
  if (in_doubt_since_ == Instant::max() || trusts) return deadline_;
  return std::min(deadline_, end_of(std::min(timeout_, least_), in_doubt_since_));
}

void LeaseClock::sent(Instant now) {
  std::erase_if(pauses_, [&](const Pause& pause) { return now - pause.end > timeout_; });
  const Duration pause = now - last_sent_;
  if (pause > heartbeat()) pauses_.push_back({now, pause});
  last_sent_ = now;
}

Instant LeaseClock::next_heartbeat(Instant last) const {
  if (deadline_ <= last || deadline_ >= last + 2 * heartbeat()) return last + heartbeat();
  return last + std::max((deadline_ - last) / 2, heartbeat() / 4);
}

bool LeaseClock::lasts(Instant now) const {
  const Duration least = base::mutated(base::Mutant::kLastsTooStrict) ? timeout_ : heartbeat() / 2;
  return now + least < deadline();
}

Duration LeaseClock::longest_pause(Instant sent, Duration round_trip) const {
  const Instant from = sent - timeout_ / 4 - round_trip;
  Duration longest{};
  for (const Pause& pause : pauses_) {
    if (pause.end >= from && pause.end <= sent) longest = std::max(longest, pause.length);
  }
  return longest;
}

Instant LeaseClock::deadline_of(Instant sent, Duration round_trip, Duration pause) const {
  const auto unless = [](base::Mutant mutant, Duration doubt) {
    return base::mutated(mutant) ? Duration{} : doubt;
  };
  return sent + timeout_ - unless(base::Mutant::kNoTickDoubt, timeout_ / 4) -
         unless(base::Mutant::kNoBeatDoubt, std::max(heartbeat(), pause)) - round_trip -
         unless(base::Mutant::kNoDrift, timeout_ / 100);
}

void LeaseClock::answered(Instant sent, Instant answered) {
  if (base::mutated(base::Mutant::kReceiveTime)) sent = answered;
  const Duration length = answered - sent;
  while (!trips_.empty() && trips_.back().length <= length) trips_.pop_back();
  while (!trips_.empty() && answered - trips_.front().end > timeout_) trips_.pop_front();
  trips_.push_back({answered, length});
}

Duration LeaseClock::longest_trip(Instant sent) const {
  if (base::mutated(base::Mutant::kOwnTrip))
    return trips_.empty() ? Duration{} : trips_.back().length;
  // What was answered earlier had come before the touch.
  const Instant from = sent - timeout_ / 4;
  for (const Trip& trip : trips_) {
    if (trip.end >= from) return trip.length;
  }
  return {};
}

void LeaseClock::proven(Instant sent) {
  if (sent <= newest_) return;
  newest_ = sent;
  round_trip_ = longest_trip(sent);
  pause_ = longest_pause(sent, round_trip_);
  deadline_ = std::max(deadline_, deadline_of(newest_, round_trip_, pause_));
  suspect_at_ = sent + 2 * heartbeat() + heartbeat() / 2;
}

}  // namespace latchkey::session
