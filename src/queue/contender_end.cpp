// How an attempt or a hold ends. Every way out passes here, so that no way out forgets a node
// (H06).
#include <utility>

#include "base/mutant.hpp"
#include "queue/contender.hpp"

namespace latchkey::queue {

void Contender::on(const event::Cancel& cancel) {
  // The first of grant, cancel and loss wins (H50); the others find the outcome settled.
  if (outcome_ != Outcome::kOpen) return;
  const std::string why = why_it_waits();
  if (is_downgrading()) want(action::Lose{Code::kLost});
  fail(cancel.code, why.empty() ? why_not_drained() : why);
  if (base::mutated(base::Mutant::kCancelForgets)) return finish();
  leave();
}

void Contender::on(const event::Release&) {
  if (phase_ != Phase::kHolding) return on(event::Cancel{Code::kCancelled});
  outcome_ = Outcome::kEnded;
  bequeath();
  // Nothing is listed any more, so nobody has to know it for ours given up.
  want(action::Owe{own_->name, farewell()});
  drop_own_watch();
  own_.reset();
  finish();
}

/// Whoever was ahead of us has come back by now, perhaps. One who knows of nobody would have to
/// list all the same, and later than now.
void Contender::bequeath() {
  if (options_->relist != Relist::kWhenNeeded || too_many_behind_) return;
  if (after_.empty() && !was_first_) return;
  want(action::Bequeath{{own_->name, last_, std::move(after_)}});
}

void Contender::on(const event::LeaseOver&) {
  if (is_downgrading()) return exchange_lost(Code::kLost, {});
  // A waiter believes nothing yet; it proves its lease before it is granted anything.
  if (phase_ != Phase::kHolding || options_->until == Until::kNodeGoes) return;
  lose(Code::kLost);
  // The session may turn out to have survived, and then its node blocks everyone (H09).
  owe_own();
  finish();
}

void Contender::on(const event::SessionOver& over) {
  if (is_downgrading()) want(action::Lose{over.code});
  lose_or_fail(over.code);
  // Everything went with the session: nothing is owed, no watch is left (H22).
  phase_ = Phase::kDone;
  want(action::Done{});
}

void Contender::own_is_gone() {
  // The exchange itself deletes it; if it was another hand, the exchange will tell.
  if (is_exchanging()) return;
  const std::string name = own_->name;
  own_.reset();
  own_arm_ = Arm::kNo;
  withdraw(asks_.own_watch);
  if (is_downgrading()) want(action::Lose{Code::kLost});
  lose_or_fail(Code::kLost, "our queue entry " + name + " was deleted by another hand");
  leave();
}

std::string Contender::why_it_waits() const {
  if (phase_ == Phase::kEntering && behind_) return "still behind " + *behind_;
  if (phase_ == Phase::kProving) {
    return "first in line, but the session's lease is not proven: are its round trips too slow for "
           "its time-out?";
  }
  if (phase_ != Phase::kWaiting || ahead_.empty()) return {};
  const std::string others =
      ahead_.size() > 1 ? " and " + std::to_string(ahead_.size() - 1) + " more" : std::string();
  return "still behind " + ahead_.back() + others;
}

/// The caller has its answer. What is known goes now; what may exist is found out first.
void Contender::leave() {
  leaving_ = true;
  if (is_exchanging()) {
    // A node has the reader's name; whose it is the answer will say: see exchanged_looked().
    if (asks_.look != 0) return;
    // Perhaps it is there. The deletes run behind the exchange, or behind a new connection, where
    // the exchange can no longer happen (P7): so whatever of the two there is goes.
    withdraw(asks_.exchange);
    owe(reader_name());
  }
  owe_own();
  drop_watch();
  drop_directory_watch();
  if (asks_.create != 0) {
    want(action::Withdraw{asks_.create});
    withdraw(asks_.list);
    return;
  }
  const bool searching = phase_ == Phase::kSearching || phase_ == Phase::kLooking ||
                         (phase_ == Phase::kPausing && after_pause_ == AfterPause::kSearch);
  if (!searching) finish();
}

void Contender::owe_own() {
  if (!own_) return;
  owe(own_->name);
  drop_own_watch();
  own_.reset();
}

void Contender::drop_own_watch() {
  withdraw(asks_.own_watch);
  if (own_arm_ == Arm::kAsked || own_arm_ == Arm::kArmed) {
    want(action::Unwatch{own_->name});
  }
  own_arm_ = Arm::kNo;
}

void Contender::drop_watch() {
  withdraw(asks_.watch);
  if (watched_arm_ != Arm::kNo) want(action::Unwatch{watched_});
  watched_arm_ = Arm::kNo;
  watched_.clear();
}

void Contender::drop_directory_watch() {
  if (std::exchange(directory_watched_, false)) want(action::UnwatchDirectory{});
}

void Contender::finish() {
  drop_watch();
  drop_directory_watch();
  for (Ask* slot : {&asks_.list, &asks_.sync, &asks_.make, &asks_.remove, &asks_.own_watch,
                    &asks_.prove, &asks_.pause, &asks_.look, &asks_.farewell}) {
    withdraw(*slot);
  }
  drop_traces();
  phase_ = Phase::kDone;
  want(action::Done{});
}

}  // namespace latchkey::queue
