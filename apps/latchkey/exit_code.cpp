#include "exit_code.hpp"

#include <cstdio>

#include "table.hpp"
#include "words.hpp"

namespace latchkey::app {

ExitCode exit_code_of(Code code) {
  switch (code) {
    case Code::kBusy:
    case Code::kTimedOut:
    case Code::kCancelled: return ExitCode::kBusy;
    case Code::kInvalidPath:
    case Code::kTooLarge: return kUsage;
    case Code::kSessionLost:
    case Code::kSessionMoved:
    case Code::kClosed:
    case Code::kLost: return ExitCode::kLost;
    case Code::kNoNode:
    case Code::kNodeExists:
    case Code::kNotEmpty:
    case Code::kBadVersion:
    case Code::kBadArguments:
    case Code::kNoChildrenForEphemerals:
    case Code::kCounterExhausted:
    case Code::kSizeMismatch:
    case Code::kKindMismatch: return kIncompatible;
    case Code::kNotAuthorized:
    case Code::kInvalidAcl:
    case Code::kAuthFailed: return kNoPermission;
    case Code::kInvalidConnectString:
    case Code::kInvalidOption:
    case Code::kTls: return kConfiguration;
    case Code::kWouldDeadlock:
    case Code::kForked: return kOsError;
    case Code::kNoWatcher:
    case Code::kUnimplemented:
    case Code::kQuotaExceeded:
    case Code::kTooManyEphemerals:
    case Code::kReadOnlyServer:
    case Code::kRolledBack:
    case Code::kServerError:
    case Code::kOverloaded:
    case Code::kConnectionLoss:
    case Code::kUnreachable:
    case Code::kInUse:
    case Code::kStorage:
    case Code::kDamaged: return kNoServer;
  }
  return kNoServer;
}

int complain(std::string_view command, const Error& error) {
  say("latchkey {}: {}\n", command,
      printable(error.message().empty() ? name(error.code()) : error.message()));
  return exit_code_of(error.code());
}

}  // namespace latchkey::app
