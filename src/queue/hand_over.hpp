#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <variant>
#include <vector>

#include "latchkey/deadline.hpp"
#include "latchkey/error.hpp"
#include "latchkey/mutex.hpp"
#include "queue/contender.hpp"

/// What goes into a LocalLine and what comes out of it.
namespace latchkey::queue::hand_over {

/// Numbers those who stand in one line; none comes twice.
using Turn = std::uint64_t;

// What a line wants done.

/// Ask for the lock, on behalf of all. Answered by Granted or Failed, once. The claim before it is
/// over by then: failed, lost or given up.
struct Claim {
  Wait wait;
};
/// Nobody wants it any more: cancel the claim. Its answer comes all the same.
struct Withdraw {
  Code code;
};
/// Let go of the lock. By the release of `turn`; by nobody's, if the grant found nobody waiting.
struct GiveUp {
  std::optional<Turn> turn;
};
/// To this turn: held. `hold` numbers the holds on one claim, and is part of the token.
struct Grant {
  Turn turn;
  std::uint32_t hold;
};
/// To this turn: it is over without a hold.
struct Fail {
  Turn turn;
  Code code;
};
/// To the holder: the hold is over, not by its wish.
struct Lose {
  Turn turn;
  Code code;
};
/// To the holder: somebody asks it to let go.
struct AskToLetGo {
  Turn turn;
};
/// To the one who released: the lock was passed on, so there is nothing to wait for.
struct PassedOn {
  Turn turn;
};

using Action = std::variant<Claim, Withdraw, GiveUp, Grant, Fail, Lose, AskToLetGo, PassedOn>;

// What a line is told.

struct Join {
  Turn turn;
  Wait wait;
};
/// This turn no longer wants to wait. Ignored if it has had its answer (H50).
struct Cancel {
  Turn turn;
  Code code;
};
/// The holder lets go. The lease is that of this moment, not of when the lock was won.
struct Release {
  Turn turn;
  Instant lease_until;
};
struct Granted {};
struct Failed {
  Code code;
};
/// The lock that was granted is lost, and nothing more is heard of that claim.
struct Lost {
  Code code;
};
struct AskedToLetGo {};

using Event = std::variant<Join, Cancel, Release, Granted, Failed, Lost, AskedToLetGo>;

}  // namespace latchkey::queue::hand_over

namespace latchkey::queue {

/// Those of one session who want the same lock, in the order they came. One claim is made for all
/// of them; whoever lets go passes the lock on to the next, a bounded number of times and for a
/// bounded time, before the claim is given up and strangers get their turn (H70). A machine without
/// I/O.
///
///     idle ──► asking ──► held ──► idle, or asking again for those who wait
///                └──► withdrawing ──► idle, or asking for those who came meanwhile
///
/// Each turn hears exactly one of Grant and Fail, and after a Grant at most one Lose. While
/// somebody waits there is a claim, and while the claim is held there is a holder: so nobody sleeps
/// while the lock is free, and no lock is kept for nobody. One who would not wait joins only an
/// idle line, and is otherwise refused with kBusy.
///
/// When the claim is lost only the holder is told: the others have never held, and a new claim is
/// made for them, on a session that may be over; then it fails, and all of them with it. A claim
/// that failed fails everybody who waits, kBusy aside: that is the answer of those who would not
/// wait, and the others ask again.
///
/// Thread safety: one thread at a time.
class LocalLine {
 public:
  explicit LocalLine(HandOver limits) : limits_(limits) {}

  [[nodiscard]] std::vector<hand_over::Action> step(const hand_over::Event& event, Instant now);

 private:
  friend struct LocalLineProbe;  ///< Tests look inside to tell states apart.

  enum class Phase {
    kIdle,
    kAsking,       ///< The claim has not been answered.
    kWithdrawing,  ///< Nor this one, but those who wanted it are gone.
    kHeld,         ///< By `holder_`.
  };

  void on(const hand_over::Join& join);
  void on(const hand_over::Cancel& cancel);
  void on(const hand_over::Release& release);
  void on(const hand_over::Granted&);
  void on(const hand_over::Failed& failed);
  void on(const hand_over::Lost& lost);
  void on(const hand_over::AskedToLetGo&);

  [[nodiscard]] bool may_pass_on(Instant lease_until) const;
  void grant_next();
  void claim_if_wanted();

  const HandOver limits_;
  std::vector<hand_over::Action> out_;  ///< What the step under way has asked for.
  Instant now_{};
  Phase phase_ = Phase::kIdle;
  std::deque<hand_over::Join> waiting_;

  // While held.
  hand_over::Turn holder_ = 0;
  std::uint32_t hold_ = 0;
  Instant since_{};
  bool asked_to_let_go_ = false;
};

}  // namespace latchkey::queue
