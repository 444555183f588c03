#pragma once

#include <algorithm>
#include <chrono>
#include <deque>
#include <vector>

#include "latchkey/deadline.hpp"

namespace latchkey::session {

/// Until when a session is certainly alive, as far as this side can know (P5).
///
/// The proof is a request that passed through the leader and was answered: its *send* time counts,
/// never the time its answer came (H10). A follower passes "this session is alive" on to the leader
/// only every half tick, so the leader's last touch may be older than the proof: by that half tick,
/// by the way of the request that came there after it, and by the pause before that request.
/// Servers grant no less than two ticks, so half a tick is at most a quarter of the time-out. The
/// way is at most the longest round trip of late, not the proof's own: a quick proof right behind a
/// request that was held up says nothing about the gap before it. The pause is one heartbeat, or
/// more if we were idle or stopped: what was really sent counts, not what was planned (H13). A
/// hundredth more is left for clocks that run at different speeds. models/lease.pml has the proof.
///
/// A handshake gives the session the time-out that its server grants, before the answer leaves. The
/// answer may be lost, the server's touch may reach the leader long after the client has moved on,
/// and a new leader gives the time-out that is on record. So the smallest one that any server may
/// have granted counts for the rest of the session (H15).
///
/// Thread safety: one thread at a time.
class LeaseClock {
 public:
  /// No server grants less than `least`, or less than it has granted before.
  explicit LeaseClock(Duration least = Duration::max()) : least_(least) {}

  /// A handshake for the session was sent. It is in doubt until granted().
  void asked(Instant now);
  /// A server has granted `timeout` in answer to the handshake sent at `asked`.
  void granted(Duration timeout, Instant asked);

  /// Something was sent on the present connection: whatever it is, it keeps the session alive.
  void sent(Instant now);

  /// A request or a ping sent at `sent` was answered at `answered`. Comes before proven() for the
  /// same one.
  void answered(Instant sent, Instant answered);
  /// And it passed through the leader.
  void proven(Instant sent);

  /// The session counts as held until here; Instant::min() before the first proof.
  [[nodiscard]] Instant deadline() const;
  /// From here on the next proof is overdue.
  [[nodiscard]] Instant suspect_at() const { return suspect_at_; }
  /// The pause between two proving heartbeats of a session that is well.
  [[nodiscard]] Duration heartbeat() const { return timeout_ / 6; }
  /// When the next one is due if the last was sent then. A lease that would end before two
  /// heartbeats, as after a silence, is proven halfway; one that is over is in no hurry.
  [[nodiscard]] Instant next_heartbeat(Instant last) const;
  /// Is there time enough left to prove it again? What ends sooner is not worth beginning.
  [[nodiscard]] bool lasts(Instant now) const;

 private:
  struct Pause {
    Instant end;
    Duration length;
  };

  struct Trip {
    Instant end;
    Duration length;
  };

  /// From `since` on the session may be worth no more than `timeout`.
  void count_with(Duration timeout, Instant since);
  /// The longest round trip of a request that may have come after the leader's last touch, for a
  /// proof sent then.
  [[nodiscard]] Duration longest_trip(Instant sent) const;
  /// The longest pause that may stand between the leader's last touch and a proof sent then.
  [[nodiscard]] Duration longest_pause(Instant sent, Duration round_trip) const;
  [[nodiscard]] Instant deadline_of(Instant sent, Duration round_trip, Duration pause) const;

  const Duration least_;
  Duration timeout_ = Duration::max();  ///< The smallest that may have been granted so far.
  Instant in_doubt_since_ = Instant::max();
  Instant last_sent_ = Instant::min();
  std::vector<Pause> pauses_;  ///< Longer than a heartbeat, of the last time-out or so.

  /// Of the last time-out or so; none is followed by a longer one.
  std::deque<Trip> trips_;

  // The newest proof.
  Instant newest_ = Instant::min();
  Duration round_trip_{};  ///< The longest one before it.
  Duration pause_{};

  Instant deadline_ = Instant::min();
  Instant suspect_at_ = Instant::min();
};

}  // namespace latchkey::session
