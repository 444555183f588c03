#include "base/explain.hpp"

namespace latchkey::base {

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
    case Code::kWouldDeadlock: return "it would wait for itself";
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
    case Code::kLost: return "what was held or waited with is gone";
    case Code::kCounterExhausted: return "the directory's sequence counter is at its end";
    case Code::kSizeMismatch: return "the semaphore has another size";
    case Code::kKindMismatch: return "another kind of lock is at this path";
    case Code::kInUse: return "another process has it";
    case Code::kStorage: return "the disk refused";
    case Code::kDamaged: return "what is stored is damaged";
  }
  return "an unknown code";
}

}  // namespace latchkey::base
