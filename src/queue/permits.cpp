#include "queue/permits.hpp"

#include <algorithm>
#include <charconv>

#include "base/mutant.hpp"
#include "queue/counter.hpp"
#include "queue/farewell.hpp"
#include "queue/lock_delay.hpp"

namespace latchkey::queue {
namespace {

/// `locks` and `leases`: both are there while we queue and have leases.
constexpr int kChildrenOfASemaphore = 2;

}  // namespace

std::optional<int> parse_size(std::string_view data) {
  while (!data.empty() && (data.back() == '\n' || data.back() == ' ')) data.remove_suffix(1);
  int size = 0;
  const auto [end, error] = std::from_chars(data.data(), data.data() + data.size(), size);
  if (error != std::errc{} || end != data.data() + data.size()) return std::nullopt;
  return size;
}

std::size_t taken_up_to(std::span<const std::string> leases, std::span<const Place> own) {
  const std::int32_t last = own.back().number;
  return static_cast<std::size_t>(
      std::count_if(leases.begin(), leases.end(), [&](const std::string& lease) {
        const auto place = parse_place(lease);
        return !place || place->number <= last;
      }));
}

Permits::Permits(Options options, GuidSource guids)
    : EntryMachine(std::move(guids)),
      options_(std::move(options)),
      directory_(leases_of(options_.path)) {}

std::string Permits::leases_of(const std::string& path) {
  return (path == "/" ? path : path + "/") + std::string(kLeases);
}

std::string Permits::locks_of(const std::string& path) {
  return (path == "/" ? path : path + "/") + std::string(kLocks);
}

std::vector<PermitAction> Permits::step(const PermitEvent& event) {
  if (phase_ == Phase::kDone) return {};
  hand_to([this](const auto& what) { on(what); }, event);
  return std::exchange(out_, {});
}

bool Permits::is_own(std::string_view name) const {
  return std::any_of(own_.begin(), own_.end(),
                     [&](const Own& own) { return own.place.name == name; });
}

// ---- Before it is our turn ----------------------------------------------------------------------

/// With a size in hand we queue up at once and look meanwhile, so that a wrong size is refused
/// now and not at the end of the line. Without one there has to be a semaphore: to queue up would
/// make one of no size.
void Permits::on(const event::Start&) {
  if (phase_ != Phase::kNew) return;
  phase_ = Phase::kQueueing;
  renew_guid();
  survey();
  if (options_.size) queue();
}

void Permits::queue() {
  phase_ = Phase::kQueueing;
  queued_ = true;
  want(action::Queue{missing_});
}

void Permits::survey() {
  if (suspicious_) {
    survey_synced_.reset();
    withdraw(asks_.survey_sync);
    ask<action::Sync>(asks_.survey_sync);
  }
  ask<action::ReadSize>(asks_.survey, false);
}

namespace {

/// Nothing, or what a queue has left at its path: a farewell, or the mark of a lock delay.
bool says_no_size(std::string_view data) {
  return makes_room(data) || parse_mark(data).kind != HolderMark::Kind::kNobody;
}

}  // namespace

void Permits::surveyed(const event::SizeRead& read) {
  const bool ok = read.answer.kind == Answer::Kind::kOk;
  if (read.answer.kind == Answer::Kind::kAmbiguous) return survey();
  if (!ok && read.answer.code != Code::kNoNode) {
    return survey_refused(read.answer.code, "read the size of ");
  }

  const std::optional<int> stored = ok ? parse_size(read.data) : std::nullopt;
  if (auto refusal = judge(stored)) {
    // Our server may be behind the others: nobody is refused for what was true yesterday. After a
    // cut it may be another server, so each further look has a sync of its own.
    if (!std::exchange(suspicious_, true)) return survey();
    if (!survey_synced_ || survey_synced_->kind == Answer::Kind::kAmbiguous) return survey();
    if (survey_synced_->kind == Answer::Kind::kNo) {
      return survey_refused(survey_synced_->code, "sync ");
    }
    fail(std::move(*refusal));
    return leave();
  }
  if (stored) agreed_ = true;
  unseen_ = !ok;
  blank_ = ok && says_no_size(read.data) ? std::optional(read.version) : std::nullopt;
  if (out_of_line_) return on(event::OutOfLine{*out_of_line_});
  if (!queued_ && phase_ == Phase::kQueueing) queue();
}

void Permits::survey_refused(Code code, const std::string& what) {
  if (is_retryable(code)) {
    if (queued_ || phase_ != Phase::kQueueing) return;  // The head looks anyway.
    return pause(AfterPause::kSurvey);
  }
  fail(code, what + options_.path);
  leave();
}

/// Why these permits will not be had, if so.
std::optional<Refusal> Permits::judge(std::optional<int> stored) const {
  if (!stored && !options_.size) {
    return Refusal{Code::kInvalidOption, "no size is stored at " + options_.path +
                                             ": give one in SemaphoreOptions::size"};
  }
  // Whoever agreed with what was stored when it came goes along with a later resize().
  if (stored && options_.size && !agreed_ && *stored != *options_.size) {
    return Refusal{Code::kSizeMismatch, options_.path + " has " + std::to_string(*stored) +
                                            " permits, the caller says " +
                                            std::to_string(*options_.size)};
  }
  const int size = stored ? *stored : *options_.size;
  if (options_.count > size) {
    return Refusal{Code::kInvalidOption, std::to_string(options_.count) +
                                             " permits are asked for, " + options_.path + " has " +
                                             std::to_string(size)};
  }
  return std::nullopt;
}

void Permits::on(const event::First&) {
  if (phase_ != Phase::kQueueing || leaving_) return;
  withdraw(asks_.survey);
  withdraw(asks_.survey_sync);
  enter();
}

void Permits::on(const event::OutOfLine& out) {
  queued_ = false;
  if (outcome_ != Outcome::kOpen) return;
  // Somebody is ahead of a caller that will not be let in anyhow: it should hear the better reason.
  const bool looks_again = suspicious_ && asks_.survey != 0;
  if (looks_again && out.code == Code::kBusy) {
    out_of_line_ = out.code;
    return;
  }
  if (out.code == Code::kNoNode && std::exchange(missing_, Missing::kMake) == Missing::kFail) {
    return check_path();
  }
  fail(out.code);
  leave();
}

// ---- Our turn -----------------------------------------------------------------------------------

/// Create first, decide by the order afterwards: counting first and creating then would let two
/// take the last permit (H46). The first view sets no watches: mostly there are permits enough.
void Permits::enter() {
  ask<action::CreateAll>(asks_.create, prefix(), options_.count);
  view(Vigil::kNo);
  phase_ = Phase::kEntering;
}

void Permits::on(const event::AllCreated& created) {
  if (!take(asks_.create, created.ask)) return;
  const bool ok = created.answer.kind == Answer::Kind::kOk;
  if (leaving_) {
    if (ok) {
      for (const std::string& name : created.names) owe(name);
    }
    if (created.answer.kind == Answer::Kind::kAmbiguous) return search();
    return finish();
  }
  if (!ok) return not_created(created.answer);

  bool spent = false;
  for (const std::string& name : created.names) {
    auto place = has_prefix(name) ? parse_place(name) : std::nullopt;
    if (!place) break;
    spent = spent || is_spent(place->number);
    own_.push_back({.place = std::move(*place)});
  }
  if (created.names.size() != count() || own_.size() != count()) {
    own_.clear();
    for (const std::string& name : created.names) owe(name);
    fail(Code::kServerError, "the server did not name our leases as asked");
    return leave();
  }
  made_once_ = false;
  czxid_ = created.czxid;
  if (spent) return drain();
  phase_ = Phase::kViewing;
  // What came before this answer is not known to be a view of it.
  if (asks_.list == 0 || asks_.size == 0) view(Vigil::kNo);
}

void Permits::not_created(const Answer& answer) {
  retract_view();
  if (answer.kind == Answer::Kind::kAmbiguous) {
    // A lost connection paces itself; a server that answers with a fault of its own does not.
    return answer.code == Code::kServerError ? pause(AfterPause::kSearch) : search();
  }
  if (answer.code == Code::kNoNode) {
    // A second time means that somebody takes the directory away as fast as we make it (H39).
    return std::exchange(made_once_, true) ? pause(AfterPause::kCheck) : check_path();
  }
  if (answer.code == Code::kNodeExists) {
    fail(Code::kCounterExhausted, "the sequence counter of " + directory_ +
                                      " has ended: remove the directory when nobody holds");
  } else {
    fail(answer.code, "create " + directory_ + "/" + prefix());
  }
  leave();
}

/// Only the last level can be missing: our place in the queue keeps the others.
void Permits::make_directory() {
  phase_ = Phase::kMaking;
  ask<action::MakeDirectory>(asks_.make, directory_);
}

void Permits::on(const event::Made& made) {
  if (!take(asks_.make, made.ask)) return;
  if (made.answer.kind == Answer::Kind::kAmbiguous) {
    return made.answer.code == Code::kServerError ? pause(AfterPause::kMake) : make_directory();
  }
  const bool ok = made.answer.kind == Answer::Kind::kOk;
  if (ok || made.answer.code == Code::kNodeExists) return enter();
  if (made.answer.code == Code::kNoNode) {
    fail(Code::kLost, options_.path + " is gone, and our place in its queue with it");
  } else {
    fail(made.answer.code, "create " + directory_);
  }
  leave();
}

void Permits::pause(AfterPause next) {
  phase_ = Phase::kPausing;
  after_pause_ = next;
  ask<action::Pause>(asks_.pause, ++round_);
}

void Permits::on(const event::Resumed& resumed) {
  if (!take(asks_.pause, resumed.ask)) return;
  switch (after_pause_) {
    case AfterPause::kSurvey: phase_ = Phase::kQueueing; return survey();
    case AfterPause::kCheck: return check_path();
    case AfterPause::kMake: return make_directory();
    case AfterPause::kSearch: return search();
    case AfterPause::kView: return view(vigil_);
    case AfterPause::kDrain: return list_to_drain();
  }
}

/// Asks for the leases and then for the size, in this order: see the class comment. A watch that is
/// in place already is not asked for again.
void Permits::view(Vigil vigil) {
  retract_view();
  drop_traces();
  phase_ = Phase::kViewing;
  vigil_ = vigil;
  list_answer_.reset();
  children_.clear();
  list(vigil_);
  read_size();
}

void Permits::list(Vigil vigil) {
  if (vigil == Vigil::kNo || list_arm_ != Arm::kNo) return ask<action::List>(asks_.list);
  list_arm_ = Arm::kAsked;
  ask<action::ListAndWatch>(asks_.list);
}

void Permits::read_size() {
  size_known_ = false;
  const bool watch = vigil_ == Vigil::kYes && size_arm_ == Arm::kNo;
  if (watch) size_arm_ = Arm::kAsked;
  ask<action::ReadSize>(asks_.size, watch);
}

void Permits::retract_view() {
  if (asks_.list != 0 && list_arm_ == Arm::kAsked) drop_list_watch();
  if (asks_.size != 0 && size_arm_ == Arm::kAsked) drop_size_watch();
  withdraw(asks_.list);
  withdraw(asks_.size);
}

void Permits::on(const event::Listed& listed) {
  if (!take(asks_.list, listed.ask)) return;
  const bool ok = listed.answer.kind == Answer::Kind::kOk;
  if (list_arm_ == Arm::kAsked) list_arm_ = ok ? Arm::kArmed : Arm::kNo;
  list_answer_ = listed.answer;
  children_ = listed.children;
  switch (phase_) {
    case Phase::kSearching: return settle_search();
    case Phase::kDraining: return drain_listed(listed.answer);
    case Phase::kViewing: break;
    default: return;
  }
  if (ok) return identify();
  list_answer_.reset();
  if (listed.answer.kind == Answer::Kind::kAmbiguous) return view(vigil_);
  view_refused(listed.answer, "list " + directory_);
}

void Permits::on(const event::SizeRead& read) {
  if (take(asks_.survey, read.ask)) return surveyed(read);
  if (!take(asks_.size, read.ask)) return;
  const bool ok = read.answer.kind == Answer::Kind::kOk;
  if (size_arm_ == Arm::kAsked) size_arm_ = ok ? Arm::kArmed : Arm::kNo;
  if (phase_ != Phase::kViewing && phase_ != Phase::kLooking) return;
  if (read.answer.kind == Answer::Kind::kAmbiguous) return read_size();
  if (!ok) return view_refused(read.answer, "read the size of " + options_.path);
  size_known_ = true;
  stored_ = parse_size(read.data);
  children_of_path_ = read.children;
  decide();
}

/// What we have to see to decide was refused for good, or cannot be had at the moment.
void Permits::view_refused(const Answer& answer, const std::string& what) {
  if (is_retryable(answer.code)) {
    retract_view();
    drop_traces();
    return pause(AfterPause::kView);
  }
  if (answer.code == Code::kNoNode) {
    fail(Code::kLost, what + ": it is gone, and our leases with it");
  } else {
    fail(answer.code, what);
  }
  leave();
}

/// Once both answers of a view are there, and everything in it that carries our guid is known.
void Permits::decide() {
  if (phase_ != Phase::kViewing || !list_answer_ || !size_known_) return;
  std::erase_if(children_, [this](const std::string& child) { return is_disowned(child); });
  std::vector<Place> mine;
  for (const Own& own : own_) {
    mine.push_back(own.place);
    if (std::find(children_.begin(), children_.end(), own.place.name) != children_.end()) continue;
    // Permits enough in a list without us prove nothing (H05).
    fail(Code::kLost, "our lease " + own.place.name + " was deleted by another hand");
    return leave();
  }
  round_ = 0;
  if (auto refusal = judge(stored_)) {
    fail(std::move(*refusal));
    return leave();
  }
  if (stored_) agreed_ = true;
  if (!path_is_clear_ && children_of_path_ > kChildrenOfASemaphore) return check_path();
  if (!stored_ && !std::exchange(warned_, true)) {
    want(action::Warn{"no size is stored at " + options_.path + ": taken for " +
                      std::to_string(*options_.size) +
                      ", and nobody is refused for another; Semaphore::resize() stores "
                      "one"});
  }
  const int size = stored_ ? *stored_ : *options_.size;
  const std::size_t taken = taken_up_to(children_, mine);
  const std::size_t spare = base::mutated(base::Mutant::kOneTooMany) ? 1 : 0;
  if (taken <= static_cast<std::size_t>(size) + spare) return prove();
  shortage_ = std::to_string(taken - count()) + " of " + std::to_string(size) +
              " permits are taken, " + std::to_string(options_.count) + " are asked for";
  if (options_.wait == Wait::kNo) {
    fail(Code::kBusy, shortage_);
    return leave();
  }
  wait_on();
}

/// A view with both watches in place, and neither has fired since: whatever changes, we hear of it.
void Permits::wait_on() {
  if (list_arm_ != Arm::kArmed || size_arm_ != Arm::kArmed) return view(Vigil::kYes);
  phase_ = Phase::kWaiting;
  list_answer_.reset();
  children_.clear();
}

void Permits::on(const event::DirectoryChanged&) {
  list_arm_ = Arm::kNo;
  if (phase_ == Phase::kDraining && asks_.list == 0 && asks_.remove == 0) return list_to_drain();
  woken();
}

void Permits::on(const event::SizeChanged&) {
  size_arm_ = Arm::kNo;
  woken();
}

void Permits::woken() {
  if (phase_ == Phase::kWaiting) view(Vigil::kYes);
}

void Permits::prove() {
  drop_watches();
  phase_ = Phase::kProving;
  ask<action::Prove>(asks_.prove);
}

void Permits::on(const event::Proved& proved) {
  if (!take(asks_.prove, proved.ask)) return;
  switch (proved.answer.kind) {
    case Answer::Kind::kOk: break;
    case Answer::Kind::kAmbiguous: return prove();
    case Answer::Kind::kNo: fail(proved.answer.code, "prove the session's lease"); return leave();
  }
  phase_ = Phase::kHolding;
  outcome_ = Outcome::kGranted;
  unqueue();
  action::GrantAll grant{.names = {}, .czxid = czxid_};
  for (const Own& own : own_) grant.names.push_back(own.place.name);
  want(std::move(grant));
}

std::string_view Permits::describe() const {
  if (leaving_ && phase_ != Phase::kDone) return "leaving";
  switch (phase_) {
    case Phase::kNew: return "new";
    case Phase::kQueueing: return "queueing";
    case Phase::kEntering: return "entering";
    case Phase::kChecking: return "checking the path";
    case Phase::kStoring: return "storing the size";
    case Phase::kMaking: return "making the directory";
    case Phase::kPausing: return "pausing";
    case Phase::kSearching: return "searching";
    case Phase::kLooking: return "looking";
    case Phase::kViewing: return "viewing";
    case Phase::kWaiting: return "waiting";
    case Phase::kProving: return "proving the lease";
    case Phase::kHolding: return "holding";
    case Phase::kDraining: return "draining";
    case Phase::kDone: return "done";
  }
  return {};
}

}  // namespace latchkey::queue
