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
/// A sync of the directory and behind it, in the same flush, a read of its data: a server that lags
/// might not have the mark of one who vanished. Answered by Looked.
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
/// mark is never written over a later holder's. Answered by Marked.
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
/// `synced`: the sync in front was answered with success.
struct Looked {
  bool synced;
  Answer answer;
  std::string data;
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
/// wipes it out; one that vanishes cannot, and that is how the next one knows (H73).
///
///     held 4294967321
[[nodiscard]] std::string format_holder(std::int64_t czxid);
inline constexpr std::string_view kNoHolder = "";

/// Has somebody before us, who are `own`, vanished without letting go? Anything we cannot read was
/// put there by another hand and says nothing.
[[nodiscard]] bool has_vanished(std::string_view data, std::int64_t own);

/// From being first in line to holding, under a lock delay: looks who held before, waits if that
/// one vanished, leaves its own mark, and only then grants. A machine without I/O.
///
///     in line ──► looking ──► waiting out ──► marking ──► holding ──► done
///                    └───────────────────────────┘
///
/// Until the Grant it believes nothing, like any waiter: a lease that runs out meanwhile, by the
/// local clock, costs it neither its place nor the time it has waited. If the session has survived,
/// nobody else was first; if not, Lost comes, or the mark finds our entry gone. The mark itself is
/// the proof of the lease under which it is granted (P5), and is made again if its answer came too
/// late to prove anything. So the claim it stands on must not end with the lease: Until::kNodeGoes.
///
/// One who would not wait fails with kBusy instead of waiting out, and leaves the mark as it is:
/// the whole delay is the next one's.
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
  void wait_out();
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
