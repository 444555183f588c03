// Which nodes are ours: what became of a create without an answer, and what to do about twins.
#include <algorithm>
#include <utility>

#include "queue/contender.hpp"
#include "queue/counter.hpp"

namespace latchkey::queue {

/// Our create may have been carried out. A list alone could be served by a server that has not
/// heard of it yet, we would create a second node and wait behind the first for ever (H02). Behind
/// a sync of the re-attached session the list is definitive (P7). Should the connection change
/// between the two answers the list is at least as new: a session never goes back in time (G3).
void Contender::search() {
  phase_ = Phase::kSearching;
  drop_candidates();
  drop_directory_watch();  // Set or not: its answer may be lost as well.
  withdraw(asks_.list);
  withdraw(asks_.sync);
  sync_answer_.reset();
  list_answer_.reset();
  children_.clear();
  asks_.sync = next_ask();
  asks_.list = next_ask();
  out_.push_back(action::Sync{asks_.sync});
  out_.push_back(action::List{asks_.list});
}

void Contender::on(const event::Synced& synced) {
  if (!take(asks_.sync, synced.ask)) return;
  sync_answer_ = synced.answer;
  settle_search();
}

void Contender::settle_search() {
  for (const auto* answer : {&sync_answer_, &list_answer_}) {
    if (*answer && (*answer)->kind == Answer::Kind::kAmbiguous) return search();
  }
  if (!sync_answer_ || !list_answer_) return;

  const bool synced = sync_answer_->kind == Answer::Kind::kOk;
  const bool listed = list_answer_->kind == Answer::Kind::kOk;
  if (synced && (listed || list_answer_->code == Code::kNoNode)) return identify();

  const Answer& refusal = synced ? *list_answer_ : *sync_answer_;
  if (!is_retryable(refusal.code) && !leaving_) {
    fail(refusal.code, (synced ? "list " : "sync ") + options_.directory);
    leave();
  }
  // Perhaps there is a node of ours, and it would stay as long as the session does: ask on.
  pause(AfterPause::kSearch);
}

/// `children_` is good to decide by, if we have a node at all: see decide(), or, after a search,
/// see settle_identity(). First, though, whose is everything that carries our guid?
void Contender::identify() {
  drop_candidates();
  for (const std::string& child : children_) {
    if (is_own(child) || owed_.contains(child) || strangers_.contains(child)) continue;
    if (!child.starts_with(prefix())) continue;
    if (auto place = parse_place(child)) candidates_.push_back({.place = std::move(*place)});
  }
  if (candidates_.empty()) return settle_identity();
  phase_ = Phase::kLooking;
  for (Candidate& candidate : candidates_) look(candidate);
}

void Contender::drop_candidates() {
  for (Candidate& candidate : candidates_) withdraw(candidate.ask);
  candidates_.clear();
}

void Contender::look(Candidate& candidate) {
  candidate.ask = next_ask();
  out_.push_back(action::Look{candidate.ask, candidate.place.name});
}

void Contender::on(const event::Looked& looked) {
  if (take(asks_.look, looked.ask)) return exchanged_looked(looked);
  const auto candidate =
      std::find_if(candidates_.begin(), candidates_.end(),
                   [&](const Candidate& one) { return one.ask != 0 && one.ask == looked.ask; });
  if (candidate == candidates_.end()) return;
  candidate->ask = 0;

  using Is = Candidate::Is;
  if (looked.answer.kind == Answer::Kind::kAmbiguous) return look(*candidate);
  if (looked.answer.kind == Answer::Kind::kOk) {
    // The name alone proves nothing: a node of a session before ours looks the same (H04).
    candidate->is = looked.owned ? Is::kOurs : Is::kForeign;
    candidate->czxid = looked.czxid;
  } else if (looked.answer.code == Code::kNoNode) {
    candidate->is = Is::kGone;
  } else {
    // Ours or not remains to be seen: neither may be assumed.
    return pause(AfterPause::kSearch);
  }
  const bool all = std::all_of(candidates_.begin(), candidates_.end(),
                               [](const Candidate& one) { return one.is != Is::kUnknown; });
  if (all) settle_identity();
}

/// Why a list that was used to search may also decide: it shows our node, so it was taken in a
/// state not before our create, and that is all P1 asks for.
void Contender::settle_identity() {
  using Is = Candidate::Is;
  phase_ = Phase::kListing;  // The search is over: whoever leaves from here on knows what it owns.
  const auto any = [this](Is is) {
    return std::any_of(candidates_.begin(), candidates_.end(),
                       [is](const Candidate& one) { return one.is == is; });
  };
  for (const Candidate& one : candidates_) {
    if (one.is == Is::kForeign) strangers_.insert(one.place.name);
  }
  if (leaving_) {
    for (const Candidate& one : candidates_) {
      if (one.is == Is::kOurs) owe(one.place.name);
    }
    return finish();
  }
  if (own_ || any(Is::kOurs)) {
    keep_lowest();
    return is_spent(own_->number) ? drain() : decide();
  }
  if (any(Is::kGone)) {
    fail(Code::kLost, "our queue entry was deleted by another hand");
    return leave();
  }
  // Not created, and it never will be (P7). The guid stays: should a server break that promise, the
  // late node is recognised as a twin instead of blocking us for ever.
  if (any(Is::kForeign)) guid_ = guids_();
  candidates_.clear();
  enter();
}

/// One attempt keeps one node, the one that came first (H02).
void Contender::keep_lowest() {
  using Is = Candidate::Is;
  std::vector<Candidate> found = std::exchange(candidates_, {});
  const Candidate* best = nullptr;
  for (const Candidate& one : found) {
    if (one.is == Is::kOurs && (!best || one.place.number < best->place.number)) best = &one;
  }
  if (best && (!own_ || best->place.number < own_->number)) {
    // Whom we waited for, and the watch on ourselves, belong to the node that is given up (H72).
    owe_own();
    drop_watch();
    ahead_.clear();
    own_ = best->place;
    czxid_ = best->czxid;
  }
  for (const Candidate& one : found) {
    if (one.is == Is::kOurs && !is_own(one.place.name)) owe(one.place.name);
  }
}

}  // namespace latchkey::queue
