#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "latchkey/deadline.hpp"
#include "latchkey/election.hpp"
#include "latchkey/error.hpp"

/// What goes into a Candidacy and what comes out of it.
namespace latchkey::queue::candidacy {

// What a candidate wants done.

/// Claim the lock: a new entry at the end of the queue. Answered by Granted or Failed.
struct Stand {};
/// Give up the claim that has not been answered.
struct Withdraw {};
/// Tell whoever leads that the term is over. Answered by Told when it knows, or when it has had
/// time enough.
struct EndTerm {
  std::uint64_t term;
};
/// Let go of the lock.
struct GiveUp {};
/// Ask the health hook. Answered by Health.
struct AskHealth {};
/// Be woken after this time (Woken), and not for any earlier wish.
struct Wake {
  std::uint64_t number;
  Duration after;
};
/// To the user: where we stand now.
struct Tell {
  ElectionState state;
  std::optional<Error> error;
};
/// Nothing more will be asked for.
struct Done {};

using Action = std::variant<Stand, Withdraw, EndTerm, GiveUp, AskHealth, Wake, Tell, Done>;

// What a candidate is told.

struct Start {};
struct Granted {};
struct Failed {
  Error error;
};
/// The lock is lost. The entry is not given up before the GiveUp.
struct Lost {
  Error error;
};
struct Told {
  std::uint64_t term;
};
struct Health {
  bool good;
};
struct Woken {
  std::uint64_t number;
};
struct Resign {};
struct Close {};
struct SessionOver {
  Error error;
};

using Event =
    std::variant<Start, Granted, Failed, Lost, Told, Health, Woken, Resign, Close, SessionOver>;

}  // namespace latchkey::queue::candidacy

namespace latchkey::queue {

/// How a candidate runs for leadership: queues, leads, tells the end of a term before it lets go of
/// the lock, rests after short terms, and queues again (H73-H75). A machine without I/O.
///
///     standing ──► leading ──► ending ──► resting ──► standing
///
/// Everything but the end of its session, a refusal by the service and close() leads back into the
/// queue, and only one of these three, once, out of it. Thread safety: one thread at a time.
class Candidacy {
 public:
  struct Options {
    std::optional<Duration> health_period = {};  ///< Nothing: there is no health hook.
    Duration min_pause{};
    Duration max_pause{};
    Duration short_term{};
  };

  explicit Candidacy(Options options);

  [[nodiscard]] std::vector<candidacy::Action> step(const candidacy::Event& event, Instant now);

  [[nodiscard]] ElectionState state() const { return state_; }

 private:
  enum class Phase {
    kNew,
    kStanding,  ///< The claim is on its way or in the queue.
    kLeading,
    kEnding,  ///< The term is over, and whoever led is being told.
    kResting,
    kDone,
  };

  void on(const candidacy::Start&);
  void on(const candidacy::Granted&);
  void on(const candidacy::Failed& failed);
  void on(const candidacy::Lost& lost);
  void on(const candidacy::Told& told);
  void on(const candidacy::Health& health);
  void on(const candidacy::Woken& woken);
  void on(const candidacy::Resign&);
  void on(const candidacy::Close&);
  void on(const candidacy::SessionOver& over);

  void stand();
  void wake_after(Duration span);
  void health_is_due();
  void end_term(ElectionState state, std::optional<Error> error);
  void rest_or_stand();
  /// For good.
  void leave(ElectionState state, std::optional<Error> error);
  void finish();
  void tell(ElectionState state, std::optional<Error> error);

  const Options options_;
  std::vector<candidacy::Action> out_;  ///< What the step under way has asked for.
  Instant now_{};
  Phase phase_ = Phase::kNew;
  ElectionState state_ = ElectionState::kQueued;
  std::uint64_t term_ = 0;
  Instant led_since_{};
  Duration next_pause_{};  ///< What the next short term costs.
  Duration pause_{};       ///< After the term that is ending.
  std::uint64_t wake_ = 0;
  /// The term in which the health hook was called that has not returned yet; 0: none.
  std::uint64_t asked_in_ = 0;
};

/// May a claim that failed with this code succeed later, on the same session? Otherwise the service
/// refuses us.
[[nodiscard]] bool is_worth_another_try(Code code);

}  // namespace latchkey::queue
