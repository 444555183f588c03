#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "base/function_ref.hpp"
#include "queue/contender.hpp"
#include "queue/messages.hpp"

namespace latchkey::queue {

/// Several contenders as one, each in a directory of its own and all on one session (H49). Stands
/// between them and whoever carries out what they ask for, and sees to three things:
///
/// - They enter together. A Create, and the List behind it, is kept back until every member has
///   asked for one; then all Creates come out in a row, to be sent as one transaction, and the
///   Lists behind them. So of any two bundles one came first everywhere, every wait goes from a
///   later transaction to an earlier one, and no circle can close.
/// - They hold together. A member that is first in line keeps still, watching its own node, until
///   all are; then the lease is proven once, for all, and the Grants come out in one step.
/// - They end together: one that fails cancels the others.
///
/// How a transaction that failed is told to the members: to the one whose part it was by its code,
/// to the others with kRolledBack. They ask to enter again. One whose fate is unknown is kAmbiguous
/// for all, and each searches for itself: all find their nodes, or none does. Should some find
/// theirs and others not, another hand was at work; then everything is given up.
///
/// Fail comes out for each member that had no other answer; the first is the one that counts.
/// After a Lose it is up to the caller to release the others, once the holder has been told (H09).
///
/// Thread safety: one thread at a time.
class Bundle {
 public:
  /// What member number `member` asks for.
  struct Wish {
    std::size_t member;
    Action action;
  };
  /// The members live with the caller.
  using Members = base::FunctionRef<Contender&(std::size_t)>;

  explicit Bundle(std::size_t size) : seats_(size) {}

  [[nodiscard]] std::vector<Wish> step(Members members, std::size_t member, const Event& event);

  /// Does it keep still because others are not first in line yet?
  [[nodiscard]] bool is_ready(std::size_t member) const { return seats_[member].prove != 0; }

 private:
  friend struct BundleProbe;  ///< Tests look inside to tell states apart.

  /// What a member has asked for and has to wait for.
  struct Seat {
    std::optional<action::Create> create;
    std::optional<action::List> list;
    Ask prove = 0;
    bool watches = false;  ///< It watches its node while it keeps still, or will be told to.
    // As counted in asking_, inside_ and ready_.
    bool asks = false;
    bool inside = false;
    bool ready = false;
  };

  void sort(std::size_t member, Action action);
  void note(std::size_t member, bool inside);
  void settle();
  void enter_all();
  void give_up();
  void watch_those_ready();
  void withdraw(std::size_t member, const action::Withdraw& withdrawn);
  void end(std::size_t member, Code code);
  void proved(const Answer& answer);

  std::vector<Seat> seats_;
  std::size_t asking_ = 0;  ///< How many want to enter,
  std::size_t inside_ = 0;  ///< have a place,
  std::size_t ready_ = 0;   ///< are first in line.
  std::vector<std::size_t> unwatched_;
  std::optional<std::size_t> prover_;  ///< Whose Prove is out, on behalf of all.
  bool contended_ = false;             ///< Some member had to wait.
  bool ended_ = false;                 ///< One has failed: nobody enters or holds any more.
  std::deque<std::pair<std::size_t, Event>> events_;
  std::vector<Wish> out_;
};

}  // namespace latchkey::queue
