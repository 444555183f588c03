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

std::string_view explain(Code code) noexcept {
  switch (code) {
    case Code::kNoNode: return "no such node";
    case Code::kNodeExists: return "the node exists already";
    case Code::kNotEmpty: return "the node has children";
    case Code::kBadVersion: return "the node has another version by now";
    case Code::kNotAuthorized: return "the node's ACL does not allow it to this session";
    case Code::kInvalidAcl: return "the ACL is empty, unknown to the server or names no one";
    case Code::kNoChildrenForEphemerals: return "an ephemeral node cannot have children";
    case Code::kNoWatcher: return "there is no such watch";
    case Code::kBadArguments: return "the server refused the arguments";
    case Code::kUnimplemented: return "the server does not offer this operation";
    case Code::kQuotaExceeded: return "the quota is used up";
    case Code::kReadOnlyServer: return "the server is read-only: it has lost its majority";
    case Code::kSessionMoved: return "the session has moved to another server";
    case Code::kRolledBack: return "undone, because another part of the multi failed";
    case Code::kServerError: return "the server reported a fault of its own";
    case Code::kTooManyEphemerals: return "the session has too many ephemeral nodes";
    case Code::kInvalidPath: return "the path is not valid";
    case Code::kInvalidConnectString: return "the connect string is not valid";
    case Code::kInvalidOption: return "an option is not valid";
    case Code::kTooLarge:
      return "larger than SessionOptions::max_request_bytes; send less, or raise it together with "
             "jute.maxbuffer on the servers";
    case Code::kOverloaded: return "too many requests are waiting; slow down and try again";
    case Code::kWouldDeadlock: return "a blocking call from the thread that would complete it";
    case Code::kForked: return "the session belongs to the parent process; open one of your own";
    case Code::kConnectionLoss: return "the connection broke before the answer came";
    case Code::kTimedOut: return "no answer by the deadline";
    case Code::kCancelled: return "cancelled";
    case Code::kUnreachable: return "no server answered";
    case Code::kTls: return "no secure connection to the server";
    case Code::kSessionLost: return "the session has expired; open a new one";
    case Code::kAuthFailed: return "the server refused the session's credentials";
    case Code::kClosed: return "the session is closed";
    case Code::kBusy: return "somebody else is ahead";
    case Code::kLost: return "our queue entry was deleted by another hand";
    case Code::kCounterExhausted: return "the directory's sequence counter is at its end";
    case Code::kSizeMismatch: return "the semaphore has another size";
    case Code::kInUse: return "another process has it";
    case Code::kStorage: return "the disk refused";
    case Code::kDamaged: return "what is stored is damaged";
  }
  return name(code);
}

}  // namespace latchkey::session
