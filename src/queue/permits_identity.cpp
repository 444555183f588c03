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
  drop_candidates();
  withdraw(asks_.sync);
  phase_ = Phase::kSearching;
  sync_answer_.reset();
  list_answer_.reset();
  size_known_ = false;
  children_.clear();
  asks_.sync = next_ask();
  asks_.list = next_ask();
  out_.push_back(action::Sync{asks_.sync});
  out_.push_back(action::List{asks_.list});
}

void Permits::on(const event::Synced& synced) {
  if (!take(asks_.sync, synced.ask) || phase_ != Phase::kSearching) return;
  sync_answer_ = synced.answer;
  settle_search();
}

void Permits::settle_search() {
  for (const auto* answer : {&sync_answer_, &list_answer_}) {
    if (*answer && (*answer)->kind == Answer::Kind::kAmbiguous) return search();
  }
  if (!sync_answer_ || !list_answer_) return;

  const bool synced = sync_answer_->kind == Answer::Kind::kOk;
  const bool listed = list_answer_->kind == Answer::Kind::kOk;
  if (synced && (listed || list_answer_->code == Code::kNoNode)) return identify();

  const Answer& refusal = synced ? *list_answer_ : *sync_answer_;
  if (!is_retryable(refusal.code) && !leaving_) {
    fail(refusal.code, (synced ? "list " : "sync ") + directory_);
    leave();
  }
  // Perhaps there are nodes of ours, and they would stay as long as the session does: ask on.
  pause(AfterPause::kSearch);
}

/// Whose is everything in the list that carries our guid and that we do not know yet?
void Permits::identify() {
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

void Permits::drop_candidates() {
  for (Candidate& candidate : candidates_) withdraw(candidate.ask);
  candidates_.clear();
}

void Permits::look(Candidate& candidate) {
  candidate.ask = next_ask();
  out_.push_back(action::Look{candidate.ask, candidate.place.name});
}

void Permits::on(const event::Looked& looked) {
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
    retract_view();
    drop_candidates();
    return pause(AfterPause::kSearch);
  }
  const bool all = std::all_of(candidates_.begin(), candidates_.end(),
                               [](const Candidate& one) { return one.is != Is::kUnknown; });
  if (all) settle_identity();
}

void Permits::settle_identity() {
  using Is = Candidate::Is;
  phase_ = Phase::kViewing;  // The search is over: whoever leaves from here on knows what it owns.
  std::vector<Candidate> ours;
  bool gone = false;
  bool foreign = false;
  for (Candidate& one : std::exchange(candidates_, {})) {
    if (one.is == Is::kForeign) strangers_.insert(one.place.name);
    foreign = foreign || one.is == Is::kForeign;
    gone = gone || one.is == Is::kGone;
    if (one.is == Is::kOurs) ours.push_back(std::move(one));
  }
  if (leaving_ || !own_.empty()) {
    // Beside nodes that we know, these are twins: left over from a create that was thought lost.
    for (const Candidate& one : ours) owe(one.place.name);
    if (leaving_) return finish();
    // After a search no size has been asked for.
    return asks_.size != 0 || size_known_ ? decide() : view(vigil_);
  }
  if (!ours.empty()) return adopt_or_lose(ours);
  if (gone) {
    fail(Code::kLost, "our leases were deleted by another hand");
    return leave();
  }
  // Not created, and it never will be (P7).
  if (foreign) guid_ = guids_();
  enter();
}

/// One multi makes all or none: fewer than all of them are what another hand has left.
void Permits::adopt_or_lose(const std::vector<Candidate>& ours) {
  const auto first = std::min_element(
      ours.begin(), ours.end(),
      [](const Candidate& a, const Candidate& b) { return a.place.number < b.place.number; });
  czxid_ = first->czxid;
  for (const Candidate& one : ours) {
    if (one.czxid == czxid_) {
      own_.push_back({.place = one.place});
    } else {
      owe(one.place.name);
    }
  }
  std::sort(own_.begin(), own_.end(),
            [](const Own& a, const Own& b) { return a.place.number < b.place.number; });
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
  own.watch = next_ask();
  out_.push_back(action::Watch{own.watch, own.place.name});
}

void Permits::on(const event::Watched& watched) {
  const auto own = std::find_if(own_.begin(), own_.end(), [&](const Own& one) {
    return one.watch != 0 && one.watch == watched.ask;
  });
  if (own == own_.end()) return;
  own->watch = 0;
  own_watched(*own, watched.answer);
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
