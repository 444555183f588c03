#include "queue/hand_over.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/assert.hpp"
#include "base/mutant.hpp"

namespace latchkey::queue {

using namespace hand_over;

std::vector<hand_over::Action> LocalLine::step(const hand_over::Event& event, Instant now) {
  now_ = now;
  std::visit([this](const auto& what) { on(what); }, event);
  return std::exchange(out_, {});
}

void LocalLine::on(const Join& join) {
  keep_no_longer_than_allowed();
  if (now_ < released_at_ + kBreath / 2) comes_again_ = true;
  if (phase_ == Phase::kKept) return grant(join.turn);
  if (join.wait == Wait::kNo && phase_ != Phase::kIdle) {
    out_.emplace_back(Fail{join.turn, Code::kBusy});
    return;
  }
  waiting_.push_back({join.turn, join.wait});
  if (phase_ == Phase::kIdle) claim_if_wanted();
}

void LocalLine::on(const Cancel& cancel) {
  const auto is_it = [&](const Waiter& one) { return one.turn == cancel.turn; };
  if (std::erase_if(waiting_, is_it) == 0) return;
  out_.emplace_back(Fail{cancel.turn, cancel.code});
  if (!waiting_.empty()) return;
  if (phase_ == Phase::kKept) return give_up({});
  if (phase_ != Phase::kAsking) return;
  phase_ = Phase::kWithdrawing;
  out_.emplace_back(Withdraw{cancel.code});
}

void LocalLine::on(const Release& release) {
  LATCHKEY_ASSERT(phase_ == Phase::kHeld);
  LATCHKEY_ASSERT(holder_ == release.turn);
  lease_until_ = release.lease_until;
  released_at_ = now_;
  const bool somebody_comes = std::exchange(comes_again_, false) && keeps_ == Keeps::kYes;
  if (!may_pass_on()) return give_up(release.turn);
  if (somebody_comes && may_pass_over()) {
    keep();
  } else {
    grant_next();
  }
  out_.emplace_back(PassedOn{release.turn});
}

void LocalLine::on(const Granted&) {
  if (waiting_.empty()) return give_up({});
  since_ = now_;
  holds_ = 0;
  asked_to_let_go_ = false;
  grant_next();
}

void LocalLine::on(const Failed& failed) {
  // The answer to a Withdraw says nothing to those who came after it; nor does the refusal of one
  // who would not wait to those who would.
  if (phase_ != Phase::kWithdrawing) {
    const bool busy = failed.code == Code::kBusy;
    std::erase_if(waiting_, [&](const Waiter& one) {
      if (busy && one.wait == Wait::kYes) return false;
      out_.emplace_back(Fail{one.turn, failed.code});
      return true;
    });
  }
  claim_if_wanted();
}

void LocalLine::on(const Lost& lost) {
  if (phase_ != Phase::kHeld && phase_ != Phase::kKept) return;
  const bool held = phase_ == Phase::kHeld;
  out_.emplace_back(Lose{held ? std::optional(holder_) : std::nullopt, lost.code});
  claim_if_wanted();
}

void LocalLine::on(const AskedToLetGo&) {
  if (phase_ == Phase::kKept) return give_up({});
  if (phase_ != Phase::kHeld) return;
  asked_to_let_go_ = true;
  out_.emplace_back(AskToLetGo{holder_});
}

void LocalLine::on(const Rang&) {
  rings_ = false;
  keep_no_longer_than_allowed();
  if (phase_ != Phase::kKept) return;
  rings_ = true;  // It was meant for an earlier breath.
  out_.emplace_back(RingAt{kept_until_});
}

bool LocalLine::may_pass_on() const {
  // In whole milliseconds: the longest time a user can write does not fit into a Duration.
  const auto held = std::chrono::floor<std::chrono::milliseconds>(now_ - since_);
  return !waiting_.empty() && !asked_to_let_go_ &&
         holds_ < static_cast<std::uint32_t>(std::max(limits_.count, 1)) && held < limits_.time &&
         now_ < lease_until_;
}

bool LocalLine::may_pass_over() const {
  const Instant since = waiting_.front().passed_over_since;
  return since == Instant::max() || now_ < since + kPatience;
}

void LocalLine::keep() {
  phase_ = Phase::kKept;
  kept_until_ = now_ + kBreath;
  for (auto one = waiting_.rbegin(); one != waiting_.rend(); ++one) {
    if (one->passed_over_since != Instant::max()) break;
    one->passed_over_since = now_;
  }
  // One that is on its way comes no later than this one would.
  if (std::exchange(rings_, true)) return;
  out_.emplace_back(RingAt{kept_until_});
}

/// To be asked before a kept lock is used, and not when something else ends the keeping anyway: a
/// claim that is lost cannot be given up, and one who cancels at this moment wants no grant.
void LocalLine::keep_no_longer_than_allowed() {
  if (phase_ != Phase::kKept) return;
  if (!may_pass_on()) return give_up({});
  if (now_ >= kept_until_ || !may_pass_over()) grant_next();
}

void LocalLine::grant(Turn turn) {
  phase_ = Phase::kHeld;
  holder_ = turn;
  const bool same = base::mutated(base::Mutant::kSameToken);
  out_.emplace_back(Grant{turn, same ? 0 : holds_});
  ++holds_;
}

void LocalLine::grant_next() {
  const Turn turn = waiting_.front().turn;
  waiting_.pop_front();
  grant(turn);
}

void LocalLine::give_up(std::optional<Turn> turn) {
  out_.emplace_back(GiveUp{turn});
  claim_if_wanted();
}

/// There is no claim now. One who would not wait is content with what the others ask for.
void LocalLine::claim_if_wanted() {
  phase_ = waiting_.empty() ? Phase::kIdle : Phase::kAsking;
  if (waiting_.empty()) return;
  const bool patient = std::any_of(waiting_.begin(), waiting_.end(),
                                   [](const Waiter& one) { return one.wait == Wait::kYes; });
  out_.emplace_back(Claim{patient ? Wait::kYes : Wait::kNo});
}

}  // namespace latchkey::queue
