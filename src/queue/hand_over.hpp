#pragma once

#include <chrono>
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
/// Let go of the lock. By the release of `turn`; by nobody's, if it is nobody's at the moment.
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
/// The claim is over, not by our wish. To the holder, if there is one: so is the hold.
struct Lose {
  std::optional<Turn> turn;
  Code code;
};
/// To the holder: somebody asks it to let go.
struct AskToLetGo {
  Turn turn;
};
/// To the one who released: the lock is the next one's or kept for it, so there is nothing to wait
/// for.
struct PassedOn {
  Turn turn;
};
/// Say Rang at this moment, or a little later. There is never more than one under way.
struct RingAt {
  Instant at;
};

using Action =
    std::variant<Claim, Withdraw, GiveUp, Grant, Fail, Lose, AskToLetGo, PassedOn, RingAt>;

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
/// The answer to RingAt. Whatever has happened since, it comes.
struct Rang {};

using Event = std::variant<Join, Cancel, Release, Granted, Failed, Lost, AskedToLetGo, Rang>;

}  // namespace latchkey::queue::hand_over

namespace latchkey::queue {

/// Those of one session who want the same lock, in the order they came. One claim is made for all
/// of them; whoever lets go passes the lock on to the next, a bounded number of times and for a
/// bounded time, before the claim is given up and strangers get their turn (H70). A machine without
/// I/O.
///
///     idle ──► asking ──► held ◄──► kept
///                │          └───────┴──► idle, or asking again for those who wait
///                └──► withdrawing ──► idle, or asking for those who came meanwhile
///
/// Each turn hears exactly one of Grant and Fail, and after a Grant at most one Lose. While
/// somebody waits there is a claim, and while the claim is held there is a holder, or somebody
/// waits and a Rang is on its way: so nobody sleeps for long while the lock is free, and no lock is
/// kept for nobody. One who would not wait joins only a line that is idle or keeps the lock, and is
/// otherwise refused with kBusy.
///
/// To wake a thread takes longer than most holds. So where those who let go come back at once, a
/// release does not wake the first in line: the lock is kept for a breath, and whoever comes in
/// that time has it. One who has been passed over for kPatience is not passed over any more. All
/// who wait ahead of it have been passed over for as long, so it waits for their holds and the one
/// under way, and nothing else. A kept lock counts as held: all the limits go on.
///
/// When the claim is lost only the holder is told: the others have never held, and a new claim is
/// made for them, on a session that may be over; then it fails, and all of them with it. A claim
/// that failed fails everybody who waits, kBusy aside: that is the answer of those who would not
/// wait, and the others ask again.
///
/// Thread safety: one thread at a time.
class LocalLine {
 public:
  /// How long a lock is kept, if somebody had come within half of that the time before. As long as
  /// it takes to wake a thread, about: so to keep it for nobody costs no more than was to be saved.
  static constexpr Duration kBreath = std::chrono::microseconds(20);
  /// For how long one who waits may be passed over, from the first time on.
  static constexpr Duration kPatience = std::chrono::milliseconds(1);

  /// May it keep the lock? Only where Rang comes by itself, whatever the callers do.
  enum class Keeps { kNo, kYes };

  LocalLine(HandOver limits, Keeps keeps) : limits_(limits), keeps_(keeps) {}

  [[nodiscard]] std::vector<hand_over::Action> step(const hand_over::Event& event, Instant now);

 private:
  friend struct LocalLineProbe;  ///< Tests look inside to tell states apart.

  enum class Phase {
    kIdle,
    kAsking,       ///< The claim has not been answered.
    kWithdrawing,  ///< Nor this one, but those who wanted it are gone.
    kHeld,         ///< By `holder_`.
    kKept,         ///< By nobody, until `kept_until_`; somebody waits.
  };

  struct Waiter {
    hand_over::Turn turn;
    Wait wait;
    Instant passed_over_since = Instant::max();
  };

  void on(const hand_over::Join& join);
  void on(const hand_over::Cancel& cancel);
  void on(const hand_over::Release& release);
  void on(const hand_over::Granted&);
  void on(const hand_over::Failed& failed);
  void on(const hand_over::Lost& lost);
  void on(const hand_over::AskedToLetGo&);
  void on(const hand_over::Rang&);

  [[nodiscard]] bool may_pass_on() const;
  [[nodiscard]] bool may_pass_over() const;
  void keep();
  void keep_no_longer_than_allowed();
  void grant(hand_over::Turn turn);
  void grant_next();
  void give_up(std::optional<hand_over::Turn> turn);
  void claim_if_wanted();

  const HandOver limits_;
  const Keeps keeps_;
  std::vector<hand_over::Action> out_;  ///< What the step under way has asked for.
  Instant now_{};
  Phase phase_ = Phase::kIdle;
  std::deque<Waiter> waiting_;  ///< Who has been passed over stands before who has not.
  Instant released_at_ = Instant::min();
  bool comes_again_ = false;  ///< Somebody came within half a breath of that.
  bool rings_ = false;        ///< Rang is on its way.

  // While held or kept.
  hand_over::Turn holder_ = 0;
  std::uint32_t holds_ = 0;  ///< On this claim so far.
  Instant since_{};
  bool asked_to_let_go_ = false;
  Instant lease_until_{};  ///< As of the last release.
  Instant kept_until_{};
};

}  // namespace latchkey::queue
