#include "queue/name_contender.hpp"

#include <utility>

#include "queue/traces.hpp"

namespace latchkey::queue {
namespace {

std::string line_of(std::string_view guid) { return "attempt=" + std::string(guid) + "\n"; }

}  // namespace

std::string sign(std::string owner, std::string_view guid) {
  if (!owner.empty() && !owner.ends_with('\n')) owner += '\n';
  return owner + line_of(guid);
}

bool is_signed(std::string_view data, std::string_view guid) {
  const std::string line = line_of(guid);
  return data.starts_with(line) || data.find("\n" + line) != std::string_view::npos;
}

NameContender::NameContender(Options options)
    : options_(std::move(options)), parents_(options_.node.substr(0, options_.node.rfind('/'))) {}

std::vector<NameAction> NameContender::step(const NameEvent& event) {
  if (phase_ == Phase::kDone) return {};
  hand_to([this](const auto& what) { on(what); }, event);
  return std::exchange(out_, {});
}

bool NameContender::is_ours(const event::NodeRead& read) const {
  if (read.answer.kind != Answer::Kind::kOk) return false;
  // What is known by its transaction may have had its data changed by another hand.
  return own_ ? read.czxid == *own_ : read.owned && read.is_signed;
}

// ---- The race -----------------------------------------------------------------------------------

void NameContender::on(const event::Start&) {
  if (phase_ == Phase::kNew) create();
}

void NameContender::create() {
  drop_watch();
  phase_ = Phase::kCreating;
  ask<action::CreateNode>(asks_.create);
}

void NameContender::on(const event::Created& created) {
  if (!take(asks_.create, created.ask)) return;
  switch (created.answer.kind) {
    case Answer::Kind::kOk: own_ = created.czxid; return leaving_ ? remove() : prove();
    case Answer::Kind::kAmbiguous:
      // A lost connection paces itself; a server that answers with a fault of its own does not.
      return created.answer.code == Code::kServerError ? pause(AfterPause::kSearch) : search();
    case Answer::Kind::kNo: break;
  }
  if (leaving_) return finish();
  switch (created.answer.code) {
    case Code::kNoNode: return make(parents_.begin());
    case Code::kNodeExists:
      if (options_.wait == Wait::kNo) return wait_or_give_up();
      return read_and_watch();
    default: fail(created.answer.code, "create " + options_.node); return leave();
  }
}

void NameContender::read_and_watch() {
  phase_ = Phase::kReading;
  drop_watch();
  arm_ = Arm::kAsked;
  ask<action::ReadAndWatchNode>(asks_.read);
}

void NameContender::on(const event::NodeRead& read) {
  if (!take(asks_.read, read.ask)) return;
  if (arm_ == Arm::kAsked) arm_ = read.answer.kind == Answer::Kind::kOk ? Arm::kArmed : Arm::kNo;
  switch (phase_) {
    case Phase::kReading: return node_exists(read);
    case Phase::kSearching: read_ = read; return settle_search();
    case Phase::kProving:
    case Phase::kHolding: return own_read(read);
    default: return;
  }
}

/// Somebody was faster. Usually.
void NameContender::node_exists(const event::NodeRead& read) {
  switch (read.answer.kind) {
    case Answer::Kind::kAmbiguous: return read_and_watch();
    case Answer::Kind::kOk: round_ = 0; return is_ours(read) ? adopt(read) : wait_or_give_up();
    case Answer::Kind::kNo: break;
  }
  if (read.answer.code == Code::kNoNode) return create();
  // It may be unreadable for us, say. Without a watch there is only trying again.
  pause(is_retryable(read.answer.code) ? AfterPause::kRead : AfterPause::kCreate);
}

void NameContender::wait_or_give_up() {
  if (options_.wait == Wait::kNo) {
    fail(Code::kBusy, options_.node + " exists");
    return leave();
  }
  phase_ = Phase::kWaiting;
}

void NameContender::on(const event::NodeGone&) {
  if (arm_ != Arm::kArmed) return;
  arm_ = Arm::kNo;
  if (phase_ == Phase::kWaiting) return create();
  if (phase_ == Phase::kProving || phase_ == Phase::kHolding) own_is_gone();
}

void NameContender::on(const event::NodeTouched&) {
  if (arm_ != Arm::kArmed) return;
  arm_ = Arm::kNo;
  if (phase_ == Phase::kWaiting) return read_and_watch();
  if (phase_ == Phase::kProving || phase_ == Phase::kHolding) on(event::Heartbeat{});
}

// ---- Parents and pauses -------------------------------------------------------------------------

void NameContender::on(const event::Made& made) {
  if (take(asks_.make, made.ask)) make(parents_.made(made.answer));
}

void NameContender::make(ParentMaker::Next next) {
  switch (next) {
    case ParentMaker::Next::kMake: break;
    case ParentMaker::Next::kMakeLater: return pause(AfterPause::kMake);
    case ParentMaker::Next::kAllThere: return create();
    case ParentMaker::Next::kRefused: fail(parents_.refusal()); return leave();
  }
  phase_ = Phase::kMaking;
  ask<action::MakeDirectory>(asks_.make, parents_.path());
}

void NameContender::pause(AfterPause next) {
  phase_ = Phase::kPausing;
  after_pause_ = next;
  ask<action::Pause>(asks_.pause, ++round_);
}

void NameContender::on(const event::Resumed& resumed) {
  if (!take(asks_.pause, resumed.ask)) return;
  switch (after_pause_) {
    case AfterPause::kMake: return make(ParentMaker::Next::kMake);
    case AfterPause::kCreate: return create();
    case AfterPause::kRead: return read_and_watch();
    case AfterPause::kSearch: return search();
    case AfterPause::kRemove: return remove();
  }
}

// ---- Identity -----------------------------------------------------------------------------------

/// Our create, or our delete, may have been carried out. Behind a sync of the re-attached session
/// what is read is definitive: the request was carried out by then, or never will be (P7).
void NameContender::search() {
  phase_ = Phase::kSearching;
  drop_watch();
  withdraw(asks_.read);
  withdraw(asks_.sync);
  sync_answer_.reset();
  read_.reset();
  ask<action::Sync>(asks_.sync);
  if (leaving_) return ask<action::ReadNode>(asks_.read);
  arm_ = Arm::kAsked;
  ask<action::ReadAndWatchNode>(asks_.read);
}

void NameContender::on(const event::Synced& synced) {
  if (!take(asks_.sync, synced.ask)) return;
  sync_answer_ = synced.answer;
  settle_search();
}

void NameContender::settle_search() {
  const auto read_answer = read_ ? std::optional(read_->answer) : std::nullopt;
  switch (after_search(sync_answer_, read_answer)) {
    case AfterSearch::kWait: return;
    case AfterSearch::kSearchAgain: return search();
    case AfterSearch::kKnown: return searched();
    case AfterSearch::kSyncRefused: return search_refused("sync", sync_answer_->code);
    case AfterSearch::kLookRefused: return search_refused("read", read_answer->code);
  }
}

void NameContender::search_refused(const std::string& what, Code code) {
  if (!is_retryable(code) && !leaving_) {
    fail(code, what + " " + options_.node);
    leave();
  }
  // Perhaps there is a node of ours, and it would stay as long as the session does: ask on.
  pause(AfterPause::kSearch);
}

void NameContender::searched() {
  phase_ = Phase::kReading;  // The search is over: whoever leaves from here on knows what it owns.
  if (leaving_) return is_ours(*read_) ? adopt(*read_) : removed({});
  if (read_->answer.kind != Answer::Kind::kOk) return create();
  is_ours(*read_) ? adopt(*read_) : wait_or_give_up();
}

void NameContender::adopt(const event::NodeRead& read) {
  own_ = read.czxid;
  leaving_ ? remove() : prove();
}

// ---- Holding ------------------------------------------------------------------------------------

void NameContender::prove() {
  phase_ = Phase::kProving;
  parents_.end();
  round_ = 0;
  ask<action::Prove>(asks_.prove);
}

void NameContender::on(const event::Proved& proved) {
  if (!take(asks_.prove, proved.ask)) return;
  switch (proved.answer.kind) {
    case Answer::Kind::kOk: break;
    case Answer::Kind::kAmbiguous: return prove();
    case Answer::Kind::kNo: fail(proved.answer.code, "prove the session's lease"); return leave();
  }
  phase_ = Phase::kHolding;
  outcome_ = Outcome::kGranted;
  want(action::Grant{options_.node, *own_, *own_});
}

void NameContender::on(const event::Heartbeat&) {
  if ((phase_ != Phase::kHolding && phase_ != Phase::kProving) || arm_ != Arm::kNo) return;
  arm_ = Arm::kAsked;
  ask<action::ReadAndWatchNode>(asks_.read);
}

void NameContender::own_read(const event::NodeRead& read) {
  switch (read.answer.kind) {
    case Answer::Kind::kAmbiguous: return on(event::Heartbeat{});
    case Answer::Kind::kOk:
      if (!is_ours(read)) own_is_gone();
      return;
    case Answer::Kind::kNo: break;
  }
  if (read.answer.code == Code::kNoNode) return own_is_gone();
  // Refused for the moment: the next heartbeat tries again.
  if (!is_retryable(read.answer.code)) arm_ = Arm::kRefused;
}

void NameContender::on(const event::LeaseOver&) {
  if (phase_ != Phase::kHolding) return;
  lose(Code::kLost);
  withdraw(asks_.read);
  drop_watch();
  phase_ = Phase::kTelling;
}

/// The session may turn out to have survived, and then its node blocks everyone (H09). But much may
/// have happened meanwhile: look first.
void NameContender::on(const event::LossTold&) {
  if (phase_ != Phase::kTelling) return;
  leaving_ = true;
  search();
}

// ---- Ending -------------------------------------------------------------------------------------

void NameContender::on(const event::Cancel& cancel) {
  // The first of grant, cancel and loss wins (H50); the others find the outcome settled.
  if (outcome_ != Outcome::kOpen) return;
  const bool waiting = phase_ == Phase::kWaiting;
  fail(cancel.code, waiting ? "still waiting for " + options_.node + " to go" : std::string());
  leave();
}

void NameContender::on(const event::Release&) {
  if (phase_ != Phase::kHolding) return on(event::Cancel{Code::kCancelled});
  outcome_ = Outcome::kEnded;
  leave();
}

void NameContender::on(const event::SessionOver& over) {
  lose_or_fail(over.code);
  // Everything went with the session: nothing is left to delete or to watch (H22).
  phase_ = Phase::kDone;
  want(action::Done{});
}

/// Gone, or another's by now: in either case nothing of ours is left to delete.
void NameContender::own_is_gone() {
  own_.reset();
  lose_or_fail(Code::kLost, options_.node + " was deleted by another hand");
  leave();
}

/// The caller has its answer. What is known to be ours goes now; what may exist is found out first.
void NameContender::leave() {
  leaving_ = true;
  if (own_) return remove();
  drop_watch();
  if (asks_.create != 0) {
    want(action::Withdraw{asks_.create});
    return;
  }
  const bool searching = phase_ == Phase::kSearching ||
                         (phase_ == Phase::kPausing && after_pause_ == AfterPause::kSearch);
  if (!searching) finish();
}

void NameContender::remove() {
  withdraw(asks_.read);
  withdraw(asks_.prove);
  if (arm_ == Arm::kAsked || arm_ == Arm::kArmed) want(action::ForgetWatch{});
  arm_ = Arm::kNo;
  phase_ = Phase::kRemoving;
  ask<action::RemoveNode>(asks_.remove);
}

void NameContender::on(const event::Removed& removal) {
  if (!take(asks_.remove, removal.ask)) return;
  const Answer& answer = removal.answer;
  if (answer.kind == Answer::Kind::kAmbiguous) {
    return answer.code == Code::kServerError ? pause(AfterPause::kSearch) : search();
  }
  if (answer.kind == Answer::Kind::kOk || answer.code == Code::kNoNode) return removed({});
  // The server has not carried it out, so it may be sent again as it is.
  if (is_retryable(answer.code) || answer.code == Code::kReadOnlyServer) {
    return pause(AfterPause::kRemove);
  }
  removed(answer);
}

void NameContender::removed(Answer answer) {
  want(action::NodeRemoved{answer});
  finish();
}

void NameContender::drop_watch() {
  if (arm_ == Arm::kAsked || arm_ == Arm::kArmed) want(action::UnwatchNode{});
  arm_ = Arm::kNo;
}

void NameContender::finish() {
  drop_watch();
  for (Ask* slot : {&asks_.read, &asks_.sync, &asks_.make, &asks_.prove, &asks_.pause}) {
    withdraw(*slot);
  }
  phase_ = Phase::kDone;
  want(action::Done{});
}

}  // namespace latchkey::queue
