#include "queue/lock_delay.hpp"

#include <charconv>
#include <system_error>
#include <utility>

#include "base/mutant.hpp"

namespace latchkey::queue {

using namespace lock_delay;

namespace {

constexpr std::string_view kHeld = "held ";
constexpr std::string_view kGone = "gone ";

/// Each leader of an ensemble has one, and a clock of its own.
std::int64_t epoch(std::int64_t zxid) { return zxid >> 32; }

bool may_be_repeated(const Answer& answer) {
  return answer.kind == Answer::Kind::kAmbiguous || is_retryable(answer.code) ||
         answer.code == Code::kServerError || answer.code == Code::kRolledBack;
}

}  // namespace

std::string format_holder(std::int64_t czxid) { return std::string(kHeld) + std::to_string(czxid); }

std::string format_vanished(std::int64_t czxid) {
  return std::string(kGone) + std::to_string(czxid);
}

HolderMark parse_mark(std::string_view data) {
  const bool held = data.starts_with(kHeld);
  if (!held && !data.starts_with(kGone)) return {};
  data.remove_prefix(kHeld.size());
  HolderMark mark{held ? HolderMark::Kind::kHeld : HolderMark::Kind::kGone};
  const char* const end = data.data() + data.size();
  const auto [stop, error] = std::from_chars(data.data(), end, mark.czxid);
  return error == std::errc() && stop == end ? mark : HolderMark{};
}

std::vector<lock_delay::Action> LockDelay::step(const lock_delay::Event& event, Instant now) {
  if (phase_ == Phase::kDone) return {};
  now_ = now;
  std::visit([this](const auto& what) { on(what); }, event);
  return std::exchange(out_, {});
}

// The way to the hold.

void LockDelay::on(const First& first) {
  if (phase_ != Phase::kInLine) return;
  own_ = first.czxid;
  look();
}

void LockDelay::look() {
  phase_ = Phase::kLooking;
  out_.emplace_back(Look{});
}

void LockDelay::on(const Looked& looked) {
  if (phase_ != Phase::kLooking) return;
  const bool ok = looked.answer.kind == Answer::Kind::kOk;
  if (looked.answer.code == Code::kNoNode && !ok) {
    return fail(Code::kLost, "our queue entry is gone");
  }
  if (!ok && !may_be_repeated(looked.answer)) {
    return fail(looked.answer.code, "reading who held before");
  }
  if (!ok || !looked.synced) return pause(Phase::kPausingToLook);
  round_ = 0;
  if (base::mutated(base::Mutant::kNoDelay)) return mark();
  const HolderMark before = parse_mark(looked.data);
  if (before.kind == HolderMark::Kind::kNobody || before.czxid == own_) return mark();
  if (before.kind == HolderMark::Kind::kHeld) return note(before.czxid);
  // An entry older than the note says nothing about how old the note is.
  if (own_ < looked.mzxid) return wait_out(delay_);
  const std::chrono::milliseconds age{looked.came_at - looked.marked_at};
  const bool same_clock = epoch(own_) == epoch(looked.mzxid);
  if (!same_clock || age.count() < 0) return note(before.czxid);
  if (age >= delay_) return mark();
  wait_out(delay_ - age);
}

void LockDelay::note(std::int64_t vanished) {
  phase_ = Phase::kNoting;
  out_.emplace_back(Mark{format_vanished(vanished)});
}

void LockDelay::wait_out(std::chrono::milliseconds left_to_wait) {
  if (wait_ == Wait::kNo) return fail(Code::kBusy, "a lock delay has to be waited out");
  phase_ = Phase::kWaitingOut;
  // In whole milliseconds: the longest delay a user can write does not fit into a Duration.
  const auto left = std::chrono::floor<std::chrono::milliseconds>(Instant::max() - now_);
  out_.emplace_back(WaitOut{left_to_wait < left ? now_ + left_to_wait : Instant::max()});
}

void LockDelay::mark() {
  phase_ = Phase::kMarking;
  marked_ = true;
  out_.emplace_back(Mark{format_holder(own_)});
}

void LockDelay::on(const Marked& marked) {
  const bool noting = phase_ == Phase::kNoting;
  if (!noting && phase_ != Phase::kMarking) return;
  if (marked.answer.kind != Answer::Kind::kOk) {
    if (may_be_repeated(marked.answer)) {
      return pause(noting ? Phase::kPausingToLook : Phase::kPausingToMark);
    }
    if (marked.answer.code == Code::kNoNode) return fail(Code::kLost, "our queue entry is gone");
    return fail(marked.answer.code, "leaving our mark");
  }
  if (noting) return wait_out(delay_);
  if (now_ >= marked.lease_until) return pause(Phase::kPausingToMark);
  phase_ = Phase::kHolding;
  out_.emplace_back(Grant{});
}

void LockDelay::pause(Phase phase) {
  phase_ = phase;
  out_.emplace_back(Pause{++round_});
}

void LockDelay::on(const Resumed&) {
  if (phase_ == Phase::kPausingToLook) return look();
  if (phase_ == Phase::kPausingToMark || phase_ == Phase::kWaitingOut) return mark();
}

// The ways out.

void LockDelay::on(const Cancel& cancel) {
  switch (phase_) {
    case Phase::kInLine: out_.emplace_back(Withdraw{cancel.code}); return;
    case Phase::kHolding:
    case Phase::kTelling: return;
    case Phase::kWaitingOut: return fail(cancel.code, "waiting out the lock delay");
    default: return fail(cancel.code, {});
  }
}

void LockDelay::on(const Failed& failed) {
  if (phase_ != Phase::kInLine) return;
  out_.emplace_back(Fail{failed.code, {}});
  finish();
}

void LockDelay::on(const Lost& lost) {
  gone_ = true;
  if (phase_ == Phase::kTelling) return;
  if (phase_ != Phase::kHolding) return fail(lost.code, "lost during the lock delay");
  phase_ = Phase::kTelling;
  out_.emplace_back(Lose{lost.code});
}

void LockDelay::on(const LeaseOver&) {
  if (phase_ != Phase::kHolding) return;
  phase_ = Phase::kTelling;
  out_.emplace_back(Lose{Code::kLost});
}

void LockDelay::on(const Told&) {
  if (phase_ != Phase::kTelling) return;
  // The mark stays: nobody has seen this holder let go.
  if (!gone_) out_.emplace_back(GiveUp{});
  finish();
}

void LockDelay::on(const Release&) {
  if (phase_ != Phase::kHolding) return;
  give_up();
  finish();
}

void LockDelay::fail(Code code, std::string why) {
  give_up();
  out_.emplace_back(Fail{code, std::move(why)});
  finish();
}

/// What was waited out need not be waited out again: whoever may have left a mark wipes it out.
void LockDelay::give_up() {
  if (gone_) return;
  if (marked_) out_.emplace_back(Wipe{});
  out_.emplace_back(GiveUp{});
}

void LockDelay::finish() {
  phase_ = Phase::kDone;
  out_.emplace_back(Done{});
}

}  // namespace latchkey::queue
