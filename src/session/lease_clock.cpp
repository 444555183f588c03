#include "session/lease_clock.hpp"

#include <algorithm>

#include "base/mutant.hpp"

namespace latchkey::session {

void LeaseClock::granted(Duration timeout, Instant asked) {
  const bool is_shorter = timeout < timeout_;
  previous_ = timeout_ == Duration{} ? timeout : std::min(timeout_, previous_);
  timeout_ = timeout;
  last_sent_ = asked;
  pauses_.clear();
  trips_.clear();
  // A shorter time-out ends the present lease sooner. A longer one does not extend it: nothing has
  // been proven under it yet.
  if (newest_ != Instant::min() && is_shorter) {
    deadline_ = std::min(deadline_, deadline_of(newest_, round_trip_, pause_));
  }
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
  const Duration least =
      base::mutated(base::Mutant::kLastsTooStrict) ? effective() : heartbeat() / 2;
  return now + least < deadline_;
}

Duration LeaseClock::longest_pause(Instant sent, Duration round_trip) const {
  const Instant from = sent - effective() / 4 - round_trip;
  Duration longest{};
  for (const Pause& pause : pauses_) {
    if (pause.end >= from && pause.end <= sent) longest = std::max(longest, pause.length);
  }
  return longest;
}

Instant LeaseClock::deadline_of(Instant sent, Duration round_trip, Duration pause) const {
  const Duration timeout = effective();
  const auto unless = [](base::Mutant mutant, Duration doubt) {
    return base::mutated(mutant) ? Duration{} : doubt;
  };
  return sent + timeout - unless(base::Mutant::kNoTickDoubt, timeout / 4) -
         unless(base::Mutant::kNoBeatDoubt, std::max(heartbeat(), pause)) - round_trip -
         unless(base::Mutant::kNoDrift, timeout / 100);
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
  const Instant from = sent - effective() / 4;
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
  previous_ = Duration::max();
}

}  // namespace latchkey::session
