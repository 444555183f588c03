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
  if (join.wait == Wait::kNo && phase_ != Phase::kIdle) {
    out_.emplace_back(Fail{join.turn, Code::kBusy});
    return;
  }
  waiting_.push_back(join);
  if (phase_ == Phase::kIdle) claim_if_wanted();
}

void LocalLine::on(const Cancel& cancel) {
  const auto is_it = [&](const Join& one) { return one.turn == cancel.turn; };
  if (std::erase_if(waiting_, is_it) == 0) return;
  out_.emplace_back(Fail{cancel.turn, cancel.code});
  if (!waiting_.empty() || phase_ != Phase::kAsking) return;
  phase_ = Phase::kWithdrawing;
  out_.emplace_back(Withdraw{cancel.code});
}

void LocalLine::on(const Release& release) {
  LATCHKEY_ASSERT(phase_ == Phase::kHeld);
  LATCHKEY_ASSERT(holder_ == release.turn);
  if (may_pass_on(release.lease_until)) {
    if (!base::mutated(base::Mutant::kSameToken)) ++hold_;
    grant_next();
    out_.emplace_back(PassedOn{release.turn});
    return;
  }
  out_.emplace_back(GiveUp{release.turn});
  claim_if_wanted();
}

void LocalLine::on(const Granted&) {
  if (waiting_.empty()) {
    out_.emplace_back(GiveUp{});
    return claim_if_wanted();
  }
  phase_ = Phase::kHeld;
  since_ = now_;
  hold_ = 0;
  asked_to_let_go_ = false;
  grant_next();
}

void LocalLine::on(const Failed& failed) {
  // The answer to a Withdraw says nothing to those who came after it; nor does the refusal of one
  // who would not wait to those who would.
  if (phase_ != Phase::kWithdrawing) {
    const bool busy = failed.code == Code::kBusy;
    std::erase_if(waiting_, [&](const Join& one) {
      if (busy && one.wait == Wait::kYes) return false;
      out_.emplace_back(Fail{one.turn, failed.code});
      return true;
    });
  }
  claim_if_wanted();
}

void LocalLine::on(const Lost& lost) {
  if (phase_ != Phase::kHeld) return;
  out_.emplace_back(Lose{holder_, lost.code});
  claim_if_wanted();
}

void LocalLine::on(const AskedToLetGo&) {
  if (phase_ != Phase::kHeld) return;
  asked_to_let_go_ = true;
  out_.emplace_back(AskToLetGo{holder_});
}

bool LocalLine::may_pass_on(Instant lease_until) const {
  // In whole milliseconds: the longest time a user can write does not fit into a Duration.
  const auto held = std::chrono::floor<std::chrono::milliseconds>(now_ - since_);
  return !waiting_.empty() && !asked_to_let_go_ &&
         hold_ + 1 < static_cast<std::uint32_t>(std::max(limits_.count, 1)) &&
         held < limits_.time && now_ < lease_until;
}

void LocalLine::grant_next() {
  holder_ = waiting_.front().turn;
  waiting_.pop_front();
  out_.emplace_back(Grant{holder_, hold_});
}

/// There is no claim now. One who would not wait is content with what the others ask for.
void LocalLine::claim_if_wanted() {
  phase_ = waiting_.empty() ? Phase::kIdle : Phase::kAsking;
  if (waiting_.empty()) return;
  const bool patient = std::any_of(waiting_.begin(), waiting_.end(),
                                   [](const Join& one) { return one.wait == Wait::kYes; });
  out_.emplace_back(Claim{patient ? Wait::kYes : Wait::kNo});
}

}  // namespace latchkey::queue
