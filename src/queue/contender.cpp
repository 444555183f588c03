#include "queue/contender.hpp"

#include <algorithm>
#include <utility>

#include "base/mutant.hpp"
#include "queue/counter.hpp"
#include "queue/entry.hpp"

namespace latchkey::queue {
namespace {

/// With this many left ahead, reading them one by one is cheaper than a list (P4, cost note).
constexpr std::size_t kFew = 3;

CreateOutcome outcome_of_create(const std::optional<Answer>& answer) {
  if (!answer) return CreateOutcome::kUnanswered;
  if (answer->kind == Answer::Kind::kOk) return CreateOutcome::kOk;
  if (answer->kind == Answer::Kind::kAmbiguous) return CreateOutcome::kAmbiguous;
  if (answer->code == Code::kNoNode) return CreateOutcome::kNoNode;
  if (answer->code == Code::kNodeExists) return CreateOutcome::kNodeExists;
  if (answer->code == Code::kRolledBack) return CreateOutcome::kRolledBack;
  return CreateOutcome::kRefused;
}

ListOutcome outcome_of_list(const std::optional<Answer>& answer, bool shows_own) {
  if (!answer) return ListOutcome::kUnanswered;
  if (answer->kind == Answer::Kind::kOk) {
    return shows_own ? ListOutcome::kShowsOwn : ListOutcome::kLacksOwn;
  }
  if (answer->kind == Answer::Kind::kAmbiguous) return ListOutcome::kAmbiguous;
  return answer->code == Code::kNoNode ? ListOutcome::kNoNode : ListOutcome::kRefused;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

Contender::Contender(std::shared_ptr<const Options> options, GuidSource guids)
    : EntryMachine(std::move(guids)), options_(std::move(options)), tag_(options_->tag) {}

std::vector<Action> Contender::step(Event event) {
  if (phase_ == Phase::kDone) return {};
  hand_to([this](auto&& what) { on(what); }, event);
  return std::exchange(out_, {});
}

std::string Contender::prefix() const { return node_prefix(guid_, tag_, options_->lock_name); }

bool Contender::has_prefix(std::string_view child) const {
  return has_node_prefix(child, guid_, tag_, options_->lock_name);
}

// ---- Entering -----------------------------------------------------------------------------------

void Contender::on(const event::Start&) {
  if (phase_ != Phase::kNew) return;
  renew_guid();
  enter();
}

void Contender::enter() {
  phase_ = Phase::kEntering;
  create_answer_.reset();
  list_answer_.reset();
  children_.clear();
  behind_.reset();
  version_.reset();  // It may be another directory by now.
  ask<action::Create>(asks_.create, prefix());
  ask_list(options_->wait == Wait::kYes && options_->relist == Relist::kWhenNeeded);
}

void Contender::ask_list(bool may_wait) {
  if (options_->watching == Watching::kNearest) return ask<action::List>(asks_.list, may_wait);
  drop_directory_watch();
  directory_watched_ = true;  // From the asking on: it may be in place before we hear of it.
  ask<action::ListAndWatch>(asks_.list);
}

void Contender::on(const event::Created& created) {
  if (!take(asks_.create, created.ask)) return;
  const bool ok = created.answer.kind == Answer::Kind::kOk;
  if (leaving_) {
    if (ok) owe(created.name);
    if (created.answer.kind == Answer::Kind::kAmbiguous) return search();
    return finish();
  }

  create_answer_ = created.answer;
  if (!ok) return settle_pair();
  parents_.reset();
  own_ = parse_place(created.name);
  czxid_ = created.czxid;
  if (!own_ || !has_prefix(created.name)) {
    own_.reset();
    owe(created.name);
    fail(Code::kServerError, "the server named our queue entry " + created.name);
    return leave();
  }
  if (is_spent(own_->number)) return drain();
  settle_pair();
}

void Contender::on(event::Listed& listed) {
  if (!take(asks_.list, listed.ask)) return;
  list_answer_ = listed.answer;
  children_ = std::move(listed.children);
  fresh_ = listed.fresh;
  whole_ = listed.whole;
  switch (phase_) {
    case Phase::kEntering: return settle_pair();
    case Phase::kSearching: return settle_search();
    case Phase::kDraining: return drain_listed(listed.answer);
    case Phase::kListing: break;
    default: return;
  }
  if (listed.answer.kind == Answer::Kind::kAmbiguous) return relist();
  if (listed.answer.kind == Answer::Kind::kOk) return identify();
  list_refused(listed.answer);
}

void Contender::settle_pair() {
  const bool shows_own = own_ && contains(children_, own_->name);
  switch (after_pair(outcome_of_create(create_answer_), outcome_of_list(list_answer_, shows_own))) {
    case AfterPair::kWait: return;
    case AfterPair::kDecide:
    case AfterPair::kLost:
      if (list_answer_->kind == Answer::Kind::kOk) return identify();
      return list_refused(*list_answer_);
    case AfterPair::kListAgain: return relist();
    case AfterPair::kReportList: return list_refused(*list_answer_);
    case AfterPair::kMakeParents: return make_parents();
    case AfterPair::kEnterAgain: withdraw(asks_.list); return enter();
    case AfterPair::kSearch:
      if (base::mutated(base::Mutant::kCreateAgain)) {
        withdraw(asks_.list);
        return enter();
      }
      // A lost connection paces itself; a server that answers with a fault of its own does not.
      if (create_answer_->code == Code::kServerError) return pause(AfterPause::kSearch);
      return search();
    case AfterPair::kCounterEnded:
      fail(Code::kCounterExhausted,
           "the sequence counter of " + options_->directory + " has ended: remove the directory");
      return leave();
    case AfterPair::kReportCreate:
      fail(create_answer_->code, "create " + options_->directory + "/" + prefix());
      return leave();
  }
}

/// A list behind a node of ours was refused for good, or cannot be had at the moment.
void Contender::list_refused(const Answer& answer) {
  if (is_retryable(answer.code)) return pause(AfterPause::kList);
  if (answer.code == Code::kNoNode) {
    fail(Code::kLost, options_->directory + " is gone, and our queue entry with it");
  } else {
    fail(answer.code, "list " + options_->directory);
  }
  leave();
}

void Contender::relist() {
  phase_ = Phase::kListing;
  ask_list();
}

/// The create was refused for want of the directory, so nothing was made and the guid stays unused:
/// the next create may carry it again. The list that went with it says nothing about ours (H71).
void Contender::make_parents() {
  withdraw(asks_.list);
  if (options_->missing == Missing::kFail) {
    fail(Code::kNoNode, options_->directory);
    return leave();
  }
  if (!parents_) parents_.emplace(options_->directory);
  make(parents_->begin());
}

void Contender::on(const event::Made& made) {
  if (take(asks_.make, made.ask)) make(parents_->made(made.answer));
}

void Contender::make(ParentMaker::Next next) {
  switch (next) {
    case ParentMaker::Next::kMake: break;
    case ParentMaker::Next::kMakeLater: return pause(AfterPause::kMake);
    case ParentMaker::Next::kAllThere: return enter();
    case ParentMaker::Next::kRefused: fail(parents_->refusal()); return leave();
  }
  phase_ = Phase::kMaking;
  ask<action::MakeDirectory>(asks_.make, parents_->path());
}

void Contender::pause(AfterPause next) {
  phase_ = Phase::kPausing;
  after_pause_ = next;
  ask<action::Pause>(asks_.pause, ++round_);
}

void Contender::on(const event::Resumed& resumed) {
  if (!take(asks_.pause, resumed.ask)) return;
  switch (after_pause_) {
    case AfterPause::kMake: return make(ParentMaker::Next::kMake);
    case AfterPause::kEnter: return enter();
    case AfterPause::kSearch: return search();
    case AfterPause::kList: return relist();
    case AfterPause::kDrain: return list_to_drain();
    case AfterPause::kExchange: return exchange();
  }
}

// ---- Deciding and waiting -----------------------------------------------------------------------

/// `children_` was listed after our node was created: the node is in it or was created before it.
void Contender::decide() {
  if (!contains(children_, own_->name)) {
    // Nobody ahead in a list without us proves nothing (H05). It is owed all the same, in case the
    // server that answered was wrong.
    fail(Code::kLost, "our queue entry " + own_->name + " was deleted by another hand");
    return leave();
  }
  if (contains(children_, std::string(kLeases))) {
    fail(Code::kKindMismatch, options_->directory +
                                  " is a semaphore, its permits are in the child leases: take "
                                  "permits of it, or choose another path");
    return leave();
  }
  std::vector<Place> places;
  places.reserve(children_.size() - 1);
  for (const std::string& child : children_) {
    if (child == own_->name || is_disowned(child)) continue;
    if (auto place = parse_place(child, options_->extra_tags)) places.push_back(std::move(*place));
  }
  Admission admission = admit(places, *own_);
  note_who_came_later(places);
  children_ = std::vector<std::string>();  // With its memory: there are many of us.
  round_ = 0;

  if (admission.broken) {
    fail(Code::kCounterExhausted, "two entries of " + options_->directory +
                                      " carry the number of " + own_->name +
                                      ": its sequence counter has ended");
    return leave();
  }
  ahead_ = std::move(admission.ahead);
  may_downgrade_ = admission.may_downgrade;
  was_first_ = ahead_.empty();
  if (ahead_.empty()) return whole_ ? be_first() : relist();
  if (options_->wait == Wait::kNo) {
    fail(Code::kBusy, ahead_.back());
    return leave();
  }
  wait_behind();
}

void Contender::note_who_came_later(std::vector<Place>& places) {
  last_ = own_->number;
  after_ = std::vector<std::string>();
  too_many_behind_ = false;
  std::int32_t latest = own_->number;
  for (Place& place : places) {
    last_ = std::max(last_, place.number);
    const bool is_later = place.number > own_->number && place.lock_name == own_->lock_name;
    if (!is_later || too_many_behind_) continue;
    if (after_.size() == kMostBehind) {
      too_many_behind_ = true;
      after_ = std::vector<std::string>();
      continue;
    }
    after_.push_back(std::move(place.name));
    if (place.number < latest) std::swap(after_.back(), *std::prev(after_.end(), 2));
    latest = std::max(latest, place.number);
  }
}

/// Nobody is ahead; but are we still there (H05)? A list of our own says so, or a watch.
void Contender::be_first() {
  if (fresh_ || own_arm_ == Arm::kArmed) return prove();
  phase_ = Phase::kWaiting;
  if (own_arm_ == Arm::kRefused) return relist();
  if (own_arm_ == Arm::kNo) watch_own();
}

void Contender::wait_behind() {
  phase_ = Phase::kWaiting;
  if (options_->watching == Watching::kDirectory) {
    if (!directory_watched_) relist();  // It has changed since.
    return;
  }
  // Ours first: if the nearest turns out to be gone we know by then that we are still there. Where
  // a list comes after the wake, that tells us; until then the heartbeat's watch does.
  if (own_arm_ == Arm::kNo && ahead_.size() <= kFew && counts_the_gone()) watch_own();
  if (watched_ == ahead_.back() && watched_arm_ != Arm::kNo) return;
  drop_watch();
  watched_ = ahead_.back();
  watched_czxid_ = 0;
  watch_nearest();
}

/// It may turn out to be another one, and then that one is watched instead.
void Contender::on(const event::Foreseen& foreseen) {
  if (phase_ != Phase::kEntering || !watched_.empty()) return;
  watched_ = foreseen.name;
  watched_czxid_ = 0;
  watch_nearest();
}

void Contender::watch_nearest() {
  watched_arm_ = Arm::kAsked;
  ask<action::Watch>(asks_.watch, watched_);
}

void Contender::watch_own() {
  own_arm_ = Arm::kAsked;
  ask<action::Watch>(asks_.own_watch, own_->name);
}

void Contender::on(const event::Watched& watched) {
  if (take(asks_.own_watch, watched.ask)) return own_watched(watched.answer);
  if (!take(asks_.watch, watched.ask)) return;
  switch (watched.answer.kind) {
    case Answer::Kind::kOk:
      watched_arm_ = Arm::kArmed;
      watched_czxid_ = watched.czxid;
      return;
    case Answer::Kind::kAmbiguous: return watch_nearest();
    case Answer::Kind::kNo: break;
  }
  if (watched.answer.code == Code::kNoNode) {
    // Sent after the list that showed it, so it has left: a wake, not an error (H26).
    watched_arm_ = Arm::kNo;
    return on(event::Gone{std::string(watched_)});
  }
  // Somebody else's node that we may not read, say. Without a watch there is only asking again.
  watched_arm_ = Arm::kNo;
  watched_.clear();
  if (phase_ == Phase::kWaiting) pause(AfterPause::kList);
}

void Contender::own_watched(const Answer& answer) {
  switch (answer.kind) {
    case Answer::Kind::kOk:
      own_arm_ = Arm::kArmed;
      if (phase_ == Phase::kWaiting && ahead_.empty()) advance();
      return;
    case Answer::Kind::kAmbiguous: return watch_own();
    case Answer::Kind::kNo: break;
  }
  if (answer.code == Code::kNoNode) return own_is_gone();
  // Refused for the moment: the next wait or heartbeat tries again.
  own_arm_ = is_retryable(answer.code) ? Arm::kNo : Arm::kRefused;
  if (phase_ == Phase::kWaiting && ahead_.empty()) pause(AfterPause::kList);
}

void Contender::on(const event::Gone& gone) {
  if (is_own(gone.name)) return own_is_gone();
  std::erase(children_, gone.name);  // A list that waits to be used is out of date by that much.
  const bool was_watched = gone.name == watched_;
  if (was_watched) {
    watched_.clear();
    watched_arm_ = Arm::kNo;
    withdraw(asks_.watch);
  }
  const auto at = std::find(ahead_.begin(), ahead_.end(), gone.name);
  if (at == ahead_.end()) return;
  ahead_.erase(at);
  advance(was_watched ? watched_czxid_ : 0);
}

/// Somebody ahead has left. Never "my neighbour left, so it is my turn": others may be ahead (H27).
void Contender::advance(std::int64_t left) {
  if (base::mutated(base::Mutant::kNeighbourLeft)) ahead_.clear();
  if (ahead_.empty()) {
    if (phase_ != Phase::kWaiting && phase_ != Phase::kListing) return;
    // Its answer is on the way, and says what a list would.
    if (phase_ == Phase::kWaiting && own_arm_ == Arm::kAsked && counts_the_gone()) return;
    if (!shortcut_is_sound()) return phase_ == Phase::kListing ? void() : relist();
    withdraw(asks_.list);
    return prove();
  }
  if (phase_ != Phase::kWaiting || !watched_.empty()) return;
  if (may_have_said_farewell(left)) return read_farewell(left);
  const bool step_by_step =
      options_->relist == Relist::kWhenNeeded && whole_ && ahead_.size() <= kFew;
  step_by_step ? wait_behind() : relist();
}

/// Do we go by who has left, or does only a list tell?
bool Contender::counts_the_gone() const {
  return options_->relist == Relist::kWhenNeeded && whole_ && !may_downgrade_;
}

/// May "everyone in `ahead_` is gone" stand for "nobody is ahead" (P4)? `ahead_` comes from a list
/// taken after our create and in this session, and is dropped when we adopt another node (H72).
/// What a list would show besides is our own node: an armed watch on it shows as much.
bool Contender::shortcut_is_sound() const { return own_arm_ == Arm::kArmed && counts_the_gone(); }

void Contender::on(const event::Touched& touched) {
  if (is_own(touched.name)) {
    if (own_arm_ == Arm::kAsked || own_arm_ == Arm::kArmed) watch_own();
    return;
  }
  if (!watched_.empty() && touched.name == watched_) watch_nearest();
}

void Contender::prove() {
  drop_watch();
  drop_directory_watch();
  phase_ = Phase::kProving;
  if (base::mutated(base::Mutant::kStaleGrant)) return grant();
  ask<action::Prove>(asks_.prove);
}

void Contender::on(const event::Proved& proved) {
  if (!take(asks_.prove, proved.ask)) return;
  switch (proved.answer.kind) {
    case Answer::Kind::kOk: break;
    case Answer::Kind::kAmbiguous: return prove();
    case Answer::Kind::kNo:
      if (is_downgrading()) want(action::Lose{proved.answer.code});
      fail(proved.answer.code, "prove the session's lease");
      return leave();
  }
  grant();
}

void Contender::grant() {
  phase_ = Phase::kHolding;
  outcome_ = Outcome::kGranted;
  downgrading_ = false;
  token_ = token_.value_or(czxid_);
  // Only a writer comes to name another node. There are many holders, and they stay for long.
  if (tag_ != Tag::kWrite) std::string().swap(guid_);
  want(action::Grant{own_->name, czxid_, *token_});
}

void Contender::on(const event::Heartbeat&) {
  const bool first = phase_ == Phase::kHolding || phase_ == Phase::kProving;
  const bool behind_companions = phase_ == Phase::kEntering && own_ && asks_.list != 0;
  const bool waits = phase_ == Phase::kWaiting && options_->watching == Watching::kNearest;
  if ((first || behind_companions || waits) && own_arm_ == Arm::kNo) watch_own();
}

std::string Contender::describe() const {
  if (leaving_ && phase_ != Phase::kDone) return "leaving";
  switch (phase_) {
    case Phase::kNew: return "new";
    case Phase::kEntering: return "entering";
    case Phase::kMaking: return "making " + parents_->path();
    case Phase::kPausing: return "pausing";
    case Phase::kSearching: return "searching for " + prefix();
    case Phase::kLooking: return "looking at what carries " + guid_;
    case Phase::kListing: return "listing";
    case Phase::kWaiting: return "waiting for " + watched_;
    case Phase::kReading: return "looking for a farewell";
    case Phase::kProving: return "proving the lease";
    case Phase::kHolding: return "holding " + own_->name;
    case Phase::kExchanging: return "exchanging " + own_->name + " for " + reader_name();
    case Phase::kDraining: return "draining " + options_->directory;
    case Phase::kDone: return "done";
  }
  return {};
}

}  // namespace latchkey::queue
