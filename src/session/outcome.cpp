#include "session/outcome.hpp"

#include "base/mutant.hpp"

namespace latchkey::session {

using wire::Err;
using wire::Op;

bool is_write(Op op) noexcept {
  switch (op) {
    case Op::kCreate:
    case Op::kCreate2:
    case Op::kCreateContainer:
    case Op::kCreateTtl:
    case Op::kDelete:
    case Op::kSetData:
    case Op::kSetAcl:
    case Op::kMulti:
    case Op::kReconfig:
    case Op::kDeleteContainer:
    case Op::kCreateSession:
    case Op::kCloseSession: return true;
    default: return false;
  }
}

Code code_of(Err err) noexcept {
  switch (err) {
    case Err::kNoNode: return Code::kNoNode;
    case Err::kNodeExists: return Code::kNodeExists;
    case Err::kNotEmpty: return Code::kNotEmpty;
    case Err::kBadVersion: return Code::kBadVersion;
    case Err::kNoAuth: return Code::kNotAuthorized;
    case Err::kInvalidAcl: return Code::kInvalidAcl;
    case Err::kNoChildrenForEphemerals: return Code::kNoChildrenForEphemerals;
    case Err::kNoWatcher: return Code::kNoWatcher;
    case Err::kBadArguments: return Code::kBadArguments;
    case Err::kUnimplemented:
    case Err::kReconfigDisabled: return Code::kUnimplemented;
    case Err::kQuotaExceeded: return Code::kQuotaExceeded;
    case Err::kNotReadOnly: return Code::kReadOnlyServer;
    case Err::kSessionMoved: return Code::kSessionMoved;
    case Err::kSessionExpired: return Code::kSessionLost;
    case Err::kAuthFailed:
    case Err::kSessionClosedRequireSasl: return Code::kAuthFailed;
    case Err::kThrottled: return Code::kOverloaded;
    default: return Code::kServerError;
  }
}

namespace {

/// The server's definite refusals: it looked at the request and did not carry it out. A number that
/// is not in this list, known or unknown, proves nothing.
bool is_refusal(Err err) noexcept {
  switch (err) {
    case Err::kNoNode:
    case Err::kNodeExists:
    case Err::kNotEmpty:
    case Err::kBadVersion:
    case Err::kNoAuth:
    case Err::kInvalidAcl:
    case Err::kNoChildrenForEphemerals:
    case Err::kEphemeralOnLocalSession:
    case Err::kNoWatcher:
    case Err::kBadArguments:
    case Err::kMarshallingError:
    case Err::kUnimplemented:
    case Err::kReconfigDisabled:
    case Err::kQuotaExceeded:
    case Err::kNotReadOnly:
    case Err::kSessionMoved:
    case Err::kSessionExpired:
    case Err::kAuthFailed:
    case Err::kSessionClosedRequireSasl:
    case Err::kThrottled: return true;
    default: return false;
  }
}

}  // namespace

Effect effect_of(Op op, Progress progress, Err err) noexcept {
  if (!is_write(op) || progress == Progress::kUnsent) return Effect::kNone;
  if (progress == Progress::kAnswered && is_refusal(err)) return Effect::kNone;
  return Effect::kUnknown;
}

bool is_final(Err err) noexcept {
  return err == Err::kOk || (is_refusal(err) && err != Err::kThrottled && err != Err::kNotReadOnly);
}

bool is_proof(Op op, Err err) noexcept {
  if (op == Op::kSync) return err == Err::kOk;
  if (op == Op::kExists && base::mutated(base::Mutant::kReadHeartbeat)) return err == Err::kOk;
  if (!is_write(op)) return false;
  switch (err) {
    case Err::kOk:
    case Err::kNoNode:
    case Err::kNodeExists:
    case Err::kNotEmpty:
    case Err::kBadVersion:
    case Err::kInvalidAcl:
    case Err::kNoChildrenForEphemerals: return true;
    default: return false;
  }
}

}  // namespace latchkey::session
