#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "latchkey/deadline.hpp"
#include "latchkey/error.hpp"
#include "queue/contender.hpp"

/// What goes into a Reentrance and what comes out of it.
namespace latchkey::queue::reentrance {

/// Numbers the lock() calls of one owner; none comes twice.
using Level = std::uint64_t;

// What an owner wants done.

/// Ask for the lock, for this level. Answered by Granted or Failed, once.
struct Claim {
  Level level;
  Wait wait;
};
/// Cancel the claim that has not been answered. Answered by Failed.
struct Withdraw {
  Code code;
};
/// Tell the claim that its lease has run out by the local clock. Answered by Lost.
struct EndLease {};
/// Let go of the lock, by the release of this level, the last one.
struct GiveUp {
  Level level;
};
/// To this level: held.
struct Grant {
  Level level;
};
/// To this level: it is over without a hold. kWouldDeadlock: its owner waits already. Otherwise the
/// claim has failed, and that says why.
struct Fail {
  Level level;
  Code code;
};
/// To this level: the hold is over, not by its wish.
struct Lose {
  Level level;
  Code code;
};
/// To this level: somebody asks the holder to let go.
struct AskToLetGo {
  Level level;
};
/// To the one who released: the owner still holds, so there is nothing to wait for.
struct StillHeld {
  Level level;
};

using Action =
    std::variant<Claim, Withdraw, EndLease, GiveUp, Grant, Fail, Lose, AskToLetGo, StillHeld>;

// What an owner is told.

/// The lease is that of this moment.
struct Enter {
  Level level;
  Wait wait;
  Instant lease_until;
};
/// This level no longer wants to wait. Ignored if it has had its answer (H50).
struct Cancel {
  Level level;
  Code code;
};
struct Release {
  Level level;
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

using Event = std::variant<Enter, Cancel, Release, Granted, Failed, Lost, AskedToLetGo>;

}  // namespace latchkey::queue::reentrance

namespace latchkey::queue {

/// One owner's standing at a lock it may enter again while it has it (H55). The first lock() makes
/// a claim; later ones are granted at once on top of it, in whatever order they are released; with
/// the last the claim is given up. A machine without I/O.
///
///     out ──► waiting ──► in ──► out
///
/// Each level hears exactly one of Grant and Fail, and after a Grant at most one Lose. While the
/// owner waits a second level fails with kWouldDeadlock: it would wait for the first. Nobody is let
/// into what may be lost already: where the lease has run out the old levels are told so first, and
/// the new one makes a claim of its own.
///
/// Owners do not know of each other: their claims meet in the queue. Thread safety: one thread at a
/// time.
class Reentrance {
 public:
  [[nodiscard]] std::vector<reentrance::Action> step(const reentrance::Event& event, Instant now);

  /// Nobody waits and nobody is in: nothing would be forgotten with it.
  [[nodiscard]] bool is_out() const { return phase_ == Phase::kOut; }

 private:
  friend struct ReentranceProbe;  ///< Tests look inside to tell states apart.

  enum class Phase {
    kOut,
    kWaiting,  ///< `asking_` for an answer to its claim.
    kIn,       ///< With `levels_`.
    kEnding,   ///< Those are about to hear of a loss, before `asking_` makes a claim.
  };

  void on(const reentrance::Enter& enter);
  void on(const reentrance::Cancel& cancel);
  void on(const reentrance::Release& release);
  void on(const reentrance::Granted&);
  void on(const reentrance::Failed& failed);
  void on(const reentrance::Lost& lost);
  void on(const reentrance::AskedToLetGo&);

  void claim(const reentrance::Enter& enter);
  void let_in(reentrance::Level level);

  std::vector<reentrance::Action> out_;  ///< What the step under way has asked for.
  Instant now_{};
  Phase phase_ = Phase::kOut;
  std::optional<reentrance::Enter> asking_;
  std::vector<reentrance::Level> levels_;
  bool asked_to_let_go_ = false;
};

}  // namespace latchkey::queue
