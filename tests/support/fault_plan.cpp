#include "support/fault_plan.hpp"

namespace latchkey::test_support {

void FaultPlan::disarm(int id) {
  std::erase_if(armed_, [&](const Armed& armed) { return armed.fault.id == id; });
}

std::optional<Fault> FaultPlan::strike_request(wire::Op op, const std::string& path) {
  return strike(Side::kRequest, op, path);
}

std::optional<Fault> FaultPlan::strike_reply(wire::Op op, const std::string& path) {
  return strike(Side::kReply, op, path);
}

FaultPlan::Side FaultPlan::side_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::kCutBeforeRequest:
    case FaultKind::kCutAfterRequest:
    case FaultKind::kDelayRequest: return Side::kRequest;
    case FaultKind::kCutBeforeReply:
    case FaultKind::kCutAfterReply:
    case FaultKind::kDelayReply: return Side::kReply;
  }
  return Side::kRequest;
}

std::optional<Fault> FaultPlan::strike(Side side, wire::Op op, const std::string& path) {
  std::optional<Fault> due;
  for (Armed& armed : armed_) {
    const Match& match = armed.fault.match;
    if (side_of(armed.fault.kind) != side || (match.op && *match.op != op)) continue;
    if (path.find(match.path_part) == std::string::npos) continue;
    ++armed.seen;
    if (due || armed.seen < match.nth || armed.struck >= match.times) continue;
    ++armed.struck;
    due = armed.fault;
  }
  return due;
}

}  // namespace latchkey::test_support
