#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

#include "latchkey/deadline.hpp"

namespace latchkey::session {

/// Until when a session is certainly alive, as far as this side can know (P5).
///
/// The proof is a request that passed through the leader and was answered: its *send* time counts,
/// never the time its answer came (H10). A follower passes "this session is alive" on to the leader
/// only every half tick, so the leader's last touch may be older than the proof: by that half tick,
/// by a round trip, and by the pause between two requests of ours that lay there at that time.
/// Servers grant no less than two ticks, so half a tick is at most a quarter of the time-out. The
/// pause is one heartbeat, or more if we were idle or stopped: what was really sent counts, not
/// what was planned (H13). A hundredth more is left for clocks that run at different speeds.
///
/// Thread safety: one thread at a time.
class LeaseClock {
 public:
  /// A server has granted `timeout` in answer to a greeting sent at `asked`; the leader has touched
  /// the session for it. After a move to a server with another limit the smaller of the last two
  /// counts until something was proven under the new one (H15).
  void granted(Duration timeout, Instant asked);

  /// Something was sent on the present connection: whatever it is, it keeps the session alive.
  void sent(Instant now);

  /// A request sent at `sent` through the leader was answered at `answered`.
  void proven(Instant sent, Instant answered);

  /// The session counts as held until here; Instant::min() before the first proof.
  [[nodiscard]] Instant deadline() const { return deadline_; }
  /// From here on the next proof is overdue.
  [[nodiscard]] Instant suspect_at() const { return suspect_at_; }
  /// Send the next proving heartbeat at the latest this long after the last.
  [[nodiscard]] Duration heartbeat() const { return effective() / 6; }

 private:
  struct Pause {
    Instant end;
    Duration length;
  };

  [[nodiscard]] Duration effective() const { return std::min(timeout_, previous_); }
  /// The longest pause that may stand between the leader's last touch and a proof sent then.
  [[nodiscard]] Duration longest_pause(Instant sent, Duration round_trip) const;
  [[nodiscard]] Instant deadline_of(Instant sent, Duration round_trip, Duration pause) const;

  Duration timeout_{};
  Duration previous_ = Duration::max();
  Instant last_sent_ = Instant::min();
  std::vector<Pause> pauses_;  ///< Longer than a heartbeat, of the last time-out or so.

  // The newest proof.
  Instant newest_ = Instant::min();
  Duration round_trip_{};
  Duration pause_{};

  Instant deadline_ = Instant::min();
  Instant suspect_at_ = Instant::min();
};

}  // namespace latchkey::session
