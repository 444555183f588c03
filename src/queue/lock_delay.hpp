#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "latchkey/deadline.hpp"
#include "latchkey/error.hpp"
#include "queue/contender.hpp"
#include "queue/messages.hpp"

/// What goes into a LockDelay and what comes out of it.
namespace latchkey::queue::lock_delay {

// What it wants done.

/// Cancel the claim to the lock, which has not been answered. Answered by Failed.
struct Withdraw {
  Code code;
};
/// A sync of the directory and behind it, in the same flush, reads of its data and of our queue
/// entry: a server that lags might not have the mark of one who vanished. Answered by Looked.
struct Look {};
/// Answered by Resumed, at this moment.
struct WaitOut {
  Instant until;
};
/// Answered by Resumed, after a back-off that grows with `round`.
struct Pause {
  int round;
};
/// In one transaction check that our queue entry is there and set the directory's data: so that a
/// mark is never written over a later holder's. Answered by Marked. It is how a holder is known,
/// and how a vanished one is.
struct Mark {
  std::string text;
};
/// The same with kNoHolder, and nobody waits for the answer. It has to leave in front of the
/// GiveUp: if the two are torn apart the next one waits in vain, which is the safe side.
struct Wipe {};
/// Let go of our queue entry.
struct GiveUp {};
/// To the caller: held.
struct Grant {};
/// To the caller: over without a hold. `why` is empty or a human sentence.
struct Fail {
  Code code;
  std::string why;
};
/// To the holder: the hold is over, not by its wish. Answered by Told when it knows (H09).
struct Lose {
  Code code;
};
/// Nothing more will be asked for.
struct Done {};

using Action =
    std::variant<Withdraw, Look, WaitOut, Pause, Mark, Wipe, GiveUp, Grant, Fail, Lose, Done>;

// What it is told.

/// The claim was granted: our entry, made by this transaction, is first in line.
struct First {
  std::int64_t czxid;
};
/// The claim has failed.
struct Failed {
  Code code;
};
/// Our entry is gone, or the session: whatever was granted is so no longer.
struct Lost {
  Code code;
};
/// `synced`: the sync in front was answered with success. Times are by the server's clock, in
/// milliseconds; they mean something only in comparison.
struct Looked {
  bool synced = false;
  Answer answer = {};  ///< To the reads: the first that is not a success.
  std::string data = {};
  std::int64_t mzxid = 0;      ///< The transaction that wrote the data,
  std::int64_t marked_at = 0;  ///< and when.
  std::int64_t came_at = 0;    ///< When our queue entry was made.
};
struct Resumed {};
/// The lease is that of this moment.
struct Marked {
  Answer answer;
  Instant lease_until;
};
/// The lease has run out by the local clock.
struct LeaseOver {};
struct Told {};
/// The caller no longer wants to wait. Ignored after an answer (H50).
struct Cancel {
  Code code;
};
struct Release {};

using Event =
    std::variant<First, Failed, Lost, Looked, Resumed, Marked, LeaseOver, Told, Cancel, Release>;

}  // namespace latchkey::queue::lock_delay

namespace latchkey::queue {

/// What a lock with a delay keeps in its directory's data: who holds it. A holder that lets go
/// wipes it out; one that vanishes cannot, and that is how the next one knows (H73). Whoever sees
/// that first writes it down, and the time of that writing is when the delay begins for all.
///
///     held 4294967321
///     gone 4294967321
[[nodiscard]] std::string format_holder(std::int64_t czxid);
[[nodiscard]] std::string format_vanished(std::int64_t czxid);
inline constexpr std::string_view kNoHolder = "";

struct HolderMark {
  enum class Kind { kNobody, kHeld, kGone };

  Kind kind = Kind::kNobody;
  std::int64_t czxid = 0;
};

/// Anything we cannot read was put there by another hand and says nothing.
[[nodiscard]] HolderMark parse_mark(std::string_view data);

/// From being first in line to holding, under a lock delay: looks who held before, waits if that
/// one vanished, leaves its own mark, and only then grants. A machine without I/O.
///
///     in line ──► looking ──► noting ──► waiting out ──► marking ──► holding ──► done
///                    ├───────────────────────┘              │
///                    └──────────────────────────────────────┘
///
/// Until the Grant it believes nothing, like any waiter: a lease that runs out meanwhile, by the
/// local clock, costs it neither its place nor the time it has waited. If the session has survived,
/// nobody else was first; if not, Lost comes, or the mark finds our entry gone. The mark itself is
/// the proof of the lease under which it is granted (P5), and is made again if its answer came too
/// late to prove anything. So the claim it stands on must not end with the lease: Until::kNodeGoes.
///
/// Whoever would not wait, or not for so long, still notes that a holder has vanished; who comes
/// later, by the server's clock, waits only for what is left of the delay from there. So those who
/// only ever try get the lock, too. A clock that was put back, or another server's after a change
/// of leader, starts the delay again; one that was put forward shortens it for all but the one who
/// saw it first.
///
/// Exactly one of Grant and Fail comes out, once; after a Grant at most one Lose; Done comes last.
/// A holder that lost its lease leaves its mark behind, as one that vanished.
///
/// Thread safety: one thread at a time.
class LockDelay {
 public:
  LockDelay(std::chrono::milliseconds delay, Wait wait) : delay_(delay), wait_(wait) {}

  [[nodiscard]] std::vector<lock_delay::Action> step(const lock_delay::Event& event, Instant now);

 private:
  friend struct LockDelayProbe;  ///< Tests look inside to tell states apart.

  enum class Phase {
    kInLine,
    kLooking,
    kNoting,  ///< That one before us has vanished.
    kWaitingOut,
    kMarking,
    kPausingToLook,
    kPausingToMark,
    kHolding,
    kTelling,  ///< The holder is about to learn that the lease is over.
    kDone,
  };

  void on(const lock_delay::First& first);
  void on(const lock_delay::Failed& failed);
  void on(const lock_delay::Lost& lost);
  void on(const lock_delay::Looked& looked);
  void on(const lock_delay::Resumed&);
  void on(const lock_delay::Marked& marked);
  void on(const lock_delay::LeaseOver&);
  void on(const lock_delay::Told&);
  void on(const lock_delay::Cancel& cancel);
  void on(const lock_delay::Release&);

  void look();
  void note(std::int64_t vanished);
  /// The whole delay, or what is left of it.
  void wait_out(std::chrono::milliseconds left);
  void mark();
  void pause(Phase phase);
  void fail(Code code, std::string why);
  void give_up();
  void finish();

  const std::chrono::milliseconds delay_;
  const Wait wait_;
  std::vector<lock_delay::Action> out_;  ///< What the step under way has asked for.
  Instant now_{};
  Phase phase_ = Phase::kInLine;
  std::int64_t own_ = 0;
  int round_ = 0;        ///< Back-offs in a row.
  bool marked_ = false;  ///< Perhaps, from the asking on.
  bool gone_ = false;    ///< There is no entry to give up any more.
};

}  // namespace latchkey::queue
