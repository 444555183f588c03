#include "queue/reentrance.hpp"

#include <utility>

#include "base/assert.hpp"

namespace latchkey::queue {

using namespace reentrance;

std::vector<reentrance::Action> Reentrance::step(const reentrance::Event& event, Instant now) {
  now_ = now;
  std::visit([this](const auto& what) { on(what); }, event);
  return std::exchange(out_, {});
}

void Reentrance::on(const Enter& enter) {
  switch (phase_) {
    case Phase::kOut: return claim(enter);
    case Phase::kWaiting:
    case Phase::kEnding: out_.emplace_back(Fail{enter.level, Code::kWouldDeadlock}); return;
    case Phase::kIn: break;
  }
  if (now_ < enter.lease_until) return let_in(enter.level);
  phase_ = Phase::kEnding;
  asking_ = enter;
  out_.emplace_back(EndLease{});
}

void Reentrance::on(const Cancel& cancel) {
  if (!asking_ || asking_->level != cancel.level) return;
  if (phase_ == Phase::kWaiting) {
    out_.emplace_back(Withdraw{cancel.code});
    return;
  }
  asking_.reset();
  phase_ = Phase::kIn;
  out_.emplace_back(Fail{cancel.level, cancel.code});
}

void Reentrance::on(const Release& release) {
  const auto left = std::erase(levels_, release.level);
  LATCHKEY_ASSERT(left == 1);
  if (!levels_.empty()) {
    out_.emplace_back(StillHeld{release.level});
    return;
  }
  out_.emplace_back(GiveUp{release.level});
  phase_ = Phase::kOut;
  if (const auto next = std::exchange(asking_, {})) claim(*next);
}

void Reentrance::on(const Granted&) {
  LATCHKEY_ASSERT(phase_ == Phase::kWaiting);
  phase_ = Phase::kIn;
  asked_to_let_go_ = false;
  let_in(std::exchange(asking_, {})->level);
}

void Reentrance::on(const Failed& failed) {
  LATCHKEY_ASSERT(phase_ == Phase::kWaiting);
  phase_ = Phase::kOut;
  out_.emplace_back(Fail{std::exchange(asking_, {})->level, failed.code});
}

void Reentrance::on(const Lost& lost) {
  for (const Level level : std::exchange(levels_, {})) out_.emplace_back(Lose{level, lost.code});
  phase_ = Phase::kOut;
  if (const auto next = std::exchange(asking_, {})) claim(*next);
}

void Reentrance::on(const AskedToLetGo&) {
  asked_to_let_go_ = true;
  for (const Level level : levels_) out_.emplace_back(AskToLetGo{level});
}

void Reentrance::claim(const Enter& enter) {
  phase_ = Phase::kWaiting;
  asking_ = enter;
  out_.emplace_back(Claim{enter.level, enter.wait});
}

void Reentrance::let_in(Level level) {
  levels_.push_back(level);
  out_.emplace_back(Grant{level});
  if (asked_to_let_go_) out_.emplace_back(AskToLetGo{level});
}

}  // namespace latchkey::queue
