// Which lease nodes are ours: what became of a multi without an answer, and what carries our guid
// besides. Contender has the same questions about one node.
#include <algorithm>

#include "queue/counter.hpp"
#include "queue/permits.hpp"

namespace latchkey::queue {

/// Our creates may have been carried out: only behind a sync of the re-attached session is a list
/// definitive (P7, H02).
void Permits::search() {
  retract_view();
  drop_traces();
  withdraw(asks_.sync);
  phase_ = Phase::kSearching;
  sync_answer_.reset();
  list_answer_.reset();
  size_known_ = false;
  children_.clear();
  ask<action::Sync>(asks_.sync);
  ask<action::List>(asks_.list);
}

void Permits::on(const event::Synced& synced) {
  if (take(asks_.survey_sync, synced.ask)) survey_synced_ = synced.answer;
  if (!take(asks_.sync, synced.ask)) return;
  sync_answer_ = synced.answer;
  if (phase_ == Phase::kSearching) settle_search();
}

void Permits::settle_search() {
  switch (after_search(sync_answer_, list_answer_)) {
    case AfterSearch::kWait: return;
    case AfterSearch::kSearchAgain: return search();
    case AfterSearch::kKnown: return identify();
    case AfterSearch::kSyncRefused: return search_refused("sync", sync_answer_->code);
    case AfterSearch::kLookRefused: return search_refused("list", list_answer_->code);
  }
}

void Permits::search_refused(const std::string& what, Code code) {
  if (!is_retryable(code) && !leaving_) {
    fail(code, what + " " + directory_);
    leave();
  }
  // Perhaps there are nodes of ours, and they would stay as long as the session does: ask on.
  pause(AfterPause::kSearch);
}

/// Whose is everything in the list that carries our guid and that we do not know yet?
void Permits::identify() {
  drop_traces();
  traces_.collect(children_, [this](const std::string& child) {
    return has_prefix(child) && !is_own(child) && !is_disowned(child);
  });
  if (traces_.empty()) return settle_identity();
  phase_ = Phase::kLooking;
  look_at_traces();
}

void Permits::on(const event::Looked& looked) {
  switch (traces_.looked(looked)) {
    case Traces::Next::kWait: return;
    case Traces::Next::kLookAgain: return look_at_traces();
    case Traces::Next::kSettle: return settle_identity();
    case Traces::Next::kUnclear: break;
  }
  retract_view();
  drop_traces();
  pause(AfterPause::kSearch);
}

void Permits::settle_identity() {
  phase_ = Phase::kViewing;  // The search is over: whoever leaves from here on knows what it owns.
  const Traces::Found found = traces_.settle();
  if (leaving_ || !own_.empty()) {
    // Beside nodes that we know, these are twins: left over from a create that was thought lost.
    for (const Traces::Trace& one : found.ours) owe(one.place.name);
    if (leaving_) return finish();
    // After a search no size has been asked for.
    return asks_.size != 0 || size_known_ ? decide() : view(vigil_);
  }
  if (!found.ours.empty()) return adopt_or_lose(found.ours);
  if (found.gone) {
    fail(Code::kLost, "our leases were deleted by another hand");
    return leave();
  }
  // Not created, and it never will be (P7).
  if (found.foreign) renew_guid();
  enter();
}

/// One multi makes all or none: fewer than all of them are what another hand has left.
void Permits::adopt_or_lose(const std::vector<Traces::Trace>& ours) {
  czxid_ = ours.front().czxid;
  for (const Traces::Trace& one : ours) {
    if (one.czxid == czxid_) {
      own_.push_back({.place = one.place});
    } else {
      owe(one.place.name);
    }
  }
  if (own_.size() != count()) {
    fail(Code::kLost, "some of our leases were deleted by another hand");
    return leave();
  }
  if (is_spent(own_.back().place.number) || is_spent(own_.front().place.number)) return drain();
  view(Vigil::kNo);
}

// ---- Our own nodes while we hold ----------------------------------------------------------------

void Permits::on(const event::Heartbeat&) {
  if (phase_ != Phase::kHolding) return;
  for (Own& own : own_) {
    if (own.arm == Arm::kNo) watch_own(own);
  }
}

void Permits::watch_own(Own& own) {
  own.arm = Arm::kAsked;
  ask<action::Watch>(own.watch, own.place.name);
}

void Permits::on(const event::Watched& watched) {
  const auto own = std::find_if(own_.begin(), own_.end(),
                                [&](Own& one) { return take(one.watch, watched.ask); });
  if (own != own_.end()) own_watched(*own, watched.answer);
}

void Permits::own_watched(Own& own, const Answer& answer) {
  switch (answer.kind) {
    case Answer::Kind::kOk: own.arm = Arm::kArmed; return;
    case Answer::Kind::kAmbiguous: return watch_own(own);
    case Answer::Kind::kNo: break;
  }
  if (answer.code == Code::kNoNode) return own_is_gone(std::string(own.place.name));
  // Refused for the moment: the next heartbeat tries again.
  own.arm = is_retryable(answer.code) ? Arm::kNo : Arm::kRefused;
}

void Permits::on(const event::Gone& gone) {
  if (is_own(gone.name)) own_is_gone(gone.name);
}

void Permits::on(const event::Touched& touched) {
  for (Own& own : own_) {
    const bool watched = own.arm == Arm::kAsked || own.arm == Arm::kArmed;
    if (own.place.name == touched.name && watched) watch_own(own);
  }
}

}  // namespace latchkey::queue
