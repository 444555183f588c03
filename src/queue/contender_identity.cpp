// Which nodes are ours: what became of a create without an answer, and what to do about twins.
#include "base/mutant.hpp"
#include "queue/contender.hpp"
#include "queue/counter.hpp"

namespace latchkey::queue {

/// Our create may have been carried out. A list alone could be served by a server that has not
/// heard of it yet, we would create a second node and wait behind the first for ever (H02). Behind
/// a sync of the re-attached session the list is definitive (P7). Should the connection change
/// between the two answers the list is at least as new: a session never goes back in time (G3).
void Contender::search() {
  phase_ = Phase::kSearching;
  drop_traces();
  drop_directory_watch();  // Set or not: its answer may be lost as well.
  withdraw(asks_.list);
  withdraw(asks_.sync);
  sync_answer_.reset();
  list_answer_.reset();
  children_.clear();
  if (base::mutated(base::Mutant::kSearchWithoutSync)) {
    sync_answer_ = Answer{};
  } else {
    ask<action::Sync>(asks_.sync);
  }
  ask<action::List>(asks_.list);
}

void Contender::on(const event::Synced& synced) {
  if (!take(asks_.sync, synced.ask)) return;
  sync_answer_ = synced.answer;
  settle_search();
}

void Contender::settle_search() {
  switch (after_search(sync_answer_, list_answer_)) {
    case AfterSearch::kWait: return;
    case AfterSearch::kSearchAgain: return search();
    case AfterSearch::kKnown: return identify();
    case AfterSearch::kSyncRefused: return search_refused("sync", sync_answer_->code);
    case AfterSearch::kLookRefused: return search_refused("list", list_answer_->code);
  }
}

void Contender::search_refused(const std::string& what, Code code) {
  if (!is_retryable(code) && !leaving_) {
    fail(code, what + " " + options_->directory);
    leave();
  }
  // Perhaps there is a node of ours, and it would stay as long as the session does: ask on.
  pause(AfterPause::kSearch);
}

/// `children_` is good to decide by, if we have a node at all: see decide(), or, after a search,
/// see settle_identity(). First, though, whose is everything that carries our guid?
void Contender::identify() {
  drop_traces();
  traces_.collect(children_, [this](const std::string& child) {
    return has_prefix(child) && !is_own(child) && !is_disowned(child);
  });
  if (traces_.empty()) return settle_identity();
  phase_ = Phase::kLooking;
  look_at_traces();
}

void Contender::on(const event::Looked& looked) {
  if (take(asks_.look, looked.ask)) return exchanged_looked(looked);
  switch (traces_.looked(looked)) {
    case Traces::Next::kWait: return;
    case Traces::Next::kLookAgain: return look_at_traces();
    case Traces::Next::kSettle: return settle_identity();
    case Traces::Next::kUnclear: drop_traces(); return pause(AfterPause::kSearch);
  }
}

/// Why a list that was used to search may also decide: it shows our node, so it was taken in a
/// state not before our create, and that is all P1 asks for.
void Contender::settle_identity() {
  phase_ = Phase::kListing;  // The search is over: whoever leaves from here on knows what it owns.
  const Traces::Found found = traces_.settle();
  if (leaving_) {
    for (const Traces::Trace& one : found.ours) owe(one.place.name);
    return finish();
  }
  if (own_ || !found.ours.empty()) {
    keep_lowest(found.ours);
    return is_spent(own_->number) ? drain() : decide();
  }
  if (found.gone) {
    fail(Code::kLost, "our queue entry was deleted by another hand");
    return leave();
  }
  // Not created, and it never will be (P7). The guid stays: should a server break that promise, the
  // late node is recognised as a twin instead of blocking us for ever.
  if (found.foreign) renew_guid();
  enter();
}

/// One attempt keeps one node, the one that came first (H02).
void Contender::keep_lowest(const std::vector<Traces::Trace>& ours) {
  if (!ours.empty() && (!own_ || ours.front().place.number < own_->number)) {
    // Whom we waited for, and the watch on ourselves, belong to the node that is given up (H72).
    owe_own();
    drop_watch();
    ahead_.clear();
    own_ = ours.front().place;
    czxid_ = ours.front().czxid;
  }
  for (const Traces::Trace& one : ours) {
    if (!is_own(one.place.name)) owe(one.place.name);
  }
}

}  // namespace latchkey::queue
