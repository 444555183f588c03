// How a claim to permits ends, so that no way out forgets a node (H06), and what to do in a
// directory of leases whose sequence counter nears its end (H35).
#include <algorithm>
#include <utility>

#include "queue/counter.hpp"
#include "queue/permits.hpp"

namespace latchkey::queue {

void Permits::on(const event::Cancel& cancel) {
  // The first of grant, cancel and loss wins (H50); the others find the outcome settled.
  if (outcome_ != Outcome::kOpen) return;
  fail(cancel.code, phase_ == Phase::kWaiting ? "still waiting: " + shortage_ : std::string());
  leave();
}

void Permits::on(const event::Release&) {
  if (phase_ != Phase::kHolding) return on(event::Cancel{Code::kCancelled});
  outcome_ = Outcome::kEnded;
  owe_own();
  finish();
}

void Permits::on(const event::LeaseOver&) {
  // A waiter believes nothing yet; it proves its lease before it is granted anything.
  if (phase_ != Phase::kHolding) return;
  lose(Code::kLost);
  // The session may turn out to have survived, and then its nodes take up permits (H09).
  owe_own();
  finish();
}

void Permits::on(const event::SessionOver& over) {
  lose_or_fail(over.code);
  // Everything went with the session: nothing is owed, no watch is left (H22).
  phase_ = Phase::kDone;
  want(action::Done{});
}

/// One of them is not a hold of the others: what was asked for was all of them.
void Permits::own_is_gone(const std::string& name) {
  std::erase_if(own_, [&](const Own& own) { return own.place.name == name; });
  lose_or_fail(Code::kLost, "our lease " + name + " was deleted by another hand");
  leave();
}

/// The caller has its answer. What is known goes now, the leases before our place in the queue, so
/// that the next one does not find them; what may exist is found out first.
void Permits::leave() {
  leaving_ = true;
  owe_own();
  if (phase_ != Phase::kSearching) retract_view();
  drop_watches();
  if (asks_.create != 0) {
    want(action::Withdraw{asks_.create});
    return unqueue();
  }
  const bool searching = phase_ == Phase::kSearching || phase_ == Phase::kLooking ||
                         (phase_ == Phase::kPausing && after_pause_ == AfterPause::kSearch);
  searching ? unqueue() : finish();
}

void Permits::unqueue() {
  if (std::exchange(queued_, false)) want(action::Unqueue{});
}

void Permits::owe_own() {
  for (Own& own : std::exchange(own_, {})) {
    owe(own.place.name);
    withdraw(own.watch);
    if (own.arm == Arm::kAsked || own.arm == Arm::kArmed) {
      want(action::Unwatch{own.place.name});
    }
  }
}

void Permits::drop_watches() {
  drop_list_watch();
  drop_size_watch();
}

void Permits::drop_list_watch() {
  if (std::exchange(list_arm_, Arm::kNo) != Arm::kNo) want(action::UnwatchDirectory{});
}

void Permits::drop_size_watch() {
  if (std::exchange(size_arm_, Arm::kNo) != Arm::kNo) want(action::UnwatchSize{});
}

void Permits::finish() {
  retract_view();
  drop_watches();
  drop_traces();
  for (Ask* slot : {&asks_.survey, &asks_.survey_sync, &asks_.store, &asks_.path, &asks_.sync,
                    &asks_.make, &asks_.remove, &asks_.prove, &asks_.pause}) {
    withdraw(*slot);
  }
  unqueue();
  phase_ = Phase::kDone;
  want(action::Done{});
}

// ---- Draining -----------------------------------------------------------------------------------

/// We are the head of the queue, so nobody else takes permits meanwhile: once all are back the
/// directory can be made anew, with a counter that starts from 0.
void Permits::drain() {
  retract_view();
  given_up_ = own_.back().place.number;
  owe_own();
  list_to_drain();
}

void Permits::list_to_drain() {
  phase_ = Phase::kDraining;
  list(Vigil::kYes);
}

void Permits::drain_listed(const Answer& answer) {
  if (answer.kind == Answer::Kind::kAmbiguous) return list_to_drain();
  if (answer.kind == Answer::Kind::kNo) {
    if (answer.code == Code::kNoNode) return start_over();
    if (is_retryable(answer.code)) return pause(AfterPause::kDrain);
    fail(answer.code, "list " + directory_);
    return leave();
  }
  const bool empty = std::all_of(children_.begin(), children_.end(),
                                 [this](const auto& child) { return is_disowned(child); });
  if (empty) return ask<action::RemoveDirectory>(asks_.remove);
  if (options_.wait == Wait::kNo) {
    fail(Code::kBusy, "the sequence counter of " + directory_ +
                          " nears its end, and all permits have to come back first");
    return leave();
  }
  std::optional<std::int32_t> first;
  for (const std::string& child : children_) {
    const auto place = is_disowned(child) ? std::nullopt : parse_place(child);
    if (place && (!first || is_later(*first, place->number))) first = place->number;
  }
  if (first && is_later(*first, later_one_.value_or(given_up_))) {
    later_one_ = first;
    if (++later_ones_seen_ < kMostLooksAtLaterOnes) return pause(AfterPause::kDrain);
    fail(Code::kCounterExhausted, "the sequence counter of " + directory_ +
                                      " nears its end, and another client goes on using it");
    return leave();
  }
  if (list_arm_ != Arm::kArmed) list_to_drain();
}

void Permits::on(const event::Removed& removed) {
  if (!take(asks_.remove, removed.ask)) return;
  if (removed.answer.kind == Answer::Kind::kAmbiguous) return list_to_drain();
  const Code code = removed.answer.code;
  if (removed.answer.kind == Answer::Kind::kOk || code == Code::kNoNode) return start_over();
  // A delete that is still on its way, or somebody who does not queue.
  if (code == Code::kNotEmpty || is_retryable(code)) return pause(AfterPause::kDrain);
  fail(Code::kCounterExhausted, "the sequence counter of " + directory_ +
                                    " nears its end; removing it: " + std::string(name(code)));
  leave();
}

/// With a fresh guid: the nodes that were given up must not be taken for traces of the next ones.
void Permits::start_over() {
  drop_list_watch();
  made_once_ = false;
  path_is_clear_ = false;
  looks_ = 0;
  renew_guid();
  enter();
}

}  // namespace latchkey::queue
