#include "latchkey/error.hpp"

#include <cstdio>
#include <cstdlib>

#include "base/explain.hpp"
#include "latchkey/result.hpp"

namespace latchkey::inline v0 {

std::string_view name(Code code) noexcept {
  switch (code) {
    case Code::kNoNode: return "NoNode";
    case Code::kNodeExists: return "NodeExists";
    case Code::kNotEmpty: return "NotEmpty";
    case Code::kBadVersion: return "BadVersion";
    case Code::kNotAuthorized: return "NotAuthorized";
    case Code::kInvalidAcl: return "InvalidAcl";
    case Code::kNoChildrenForEphemerals: return "NoChildrenForEphemerals";
    case Code::kNoWatcher: return "NoWatcher";
    case Code::kBadArguments: return "BadArguments";
    case Code::kUnimplemented: return "Unimplemented";
    case Code::kQuotaExceeded: return "QuotaExceeded";
    case Code::kTooManyEphemerals: return "TooManyEphemerals";
    case Code::kReadOnlyServer: return "ReadOnlyServer";
    case Code::kSessionMoved: return "SessionMoved";
    case Code::kRolledBack: return "RolledBack";
    case Code::kServerError: return "ServerError";
    case Code::kInvalidPath: return "InvalidPath";
    case Code::kInvalidConnectString: return "InvalidConnectString";
    case Code::kInvalidOption: return "InvalidOption";
    case Code::kTooLarge: return "TooLarge";
    case Code::kOverloaded: return "Overloaded";
    case Code::kWouldDeadlock: return "WouldDeadlock";
    case Code::kForked: return "Forked";
    case Code::kConnectionLoss: return "ConnectionLoss";
    case Code::kTimedOut: return "TimedOut";
    case Code::kCancelled: return "Cancelled";
    case Code::kUnreachable: return "Unreachable";
    case Code::kTls: return "Tls";
    case Code::kSessionLost: return "SessionLost";
    case Code::kAuthFailed: return "AuthFailed";
    case Code::kClosed: return "Closed";
    case Code::kBusy: return "Busy";
    case Code::kLost: return "Lost";
    case Code::kCounterExhausted: return "CounterExhausted";
    case Code::kSizeMismatch: return "SizeMismatch";
    case Code::kKindMismatch: return "KindMismatch";
    case Code::kInUse: return "InUse";
    case Code::kStorage: return "Storage";
    case Code::kDamaged: return "Damaged";
  }
  return "Unknown";
}

bool is_retryable(Code code) noexcept {
  switch (code) {
    case Code::kConnectionLoss:
    case Code::kOverloaded:
    case Code::kTimedOut:
    case Code::kUnreachable:
    case Code::kSessionMoved:
    case Code::kBusy: return true;
    default: return false;
  }
}

bool is_session_over(Code code) noexcept {
  return code == Code::kSessionLost || code == Code::kAuthFailed || code == Code::kClosed;
}

namespace {

class Category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "latchkey"; }
  std::string message(int value) const override {
    return std::string(base::explain(static_cast<Code>(value)));
  }
};

}  // namespace

const std::error_category& category() noexcept {
  // Never destroyed: callbacks may still run, and errors be compared, while exit() does (H52).
  static const auto* const kCategory = new Category;
  return *kCategory;
}

std::error_code make_error_code(Code code) noexcept { return {static_cast<int>(code), category()}; }

std::ostream& operator<<(std::ostream& out, Code code) { return out << name(code); }

std::ostream& operator<<(std::ostream& out, const Error& error) {
  out << error.code();
  if (!error.message().empty()) out << ": " << error.message();
  if (error.effect() == Effect::kUnknown) out << " (it may have been carried out)";
  return out;
}

void die_of_access(const Error* error) noexcept {
  if (error == nullptr) {
    std::fputs("latchkey: the error of a Result was asked for, but it has none\n", stderr);
  } else {
    std::fprintf(stderr,
                 "latchkey: the value of a failed Result was asked for; it failed with %s: %s\n",
                 std::string(name(error->code())).c_str(), error->message().c_str());
  }
  std::abort();
}

}  // namespace latchkey::inline v0
