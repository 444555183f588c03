#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "latchkey/export.hpp"

namespace latchkey::inline v0 {

/// Every way a Latchkey operation can fail. A closed set: what a server or a system call said is
/// translated into one of these before it reaches you, with the details in Error::message().
///
/// Group them by what you do next: `is_session_over(code)` means open a new session, a
/// `kConnectionLoss` or `kTimedOut` with Effect::kUnknown means look before you repeat a write.
///
///     auto stat = session.set("/config", "v2", deadline_in(2s));
///     if (stat) return;
///     if (is_session_over(stat.error().code())) return open_again();
///     if (stat.error().effect() == Effect::kUnknown) return look_first();
///     if (is_retryable(stat.error().code())) return try_again();
enum class Code {
  // The server's definite answers: the request was understood and not carried out.
  kNoNode = 1,
  kNodeExists,
  kNotEmpty,
  kBadVersion,
  kNotAuthorized,
  kInvalidAcl,
  kNoChildrenForEphemerals,
  kNoWatcher,
  kBadArguments,
  kUnimplemented,
  kQuotaExceeded,
  kTooManyEphemerals,
  kReadOnlyServer,
  kSessionMoved,
  kRolledBack,   ///< This part of a multi was fine; another part failed and undid it.
  kServerError,  ///< The server reported a fault of its own or a code we do not know.

  // Refused on this side: nothing was sent.
  kInvalidPath = 101,
  kInvalidConnectString,
  kInvalidOption,
  kTooLarge,       ///< The request does not fit into one frame.
  kOverloaded,     ///< Too many requests are waiting already.
  kWouldDeadlock,  ///< It would wait for itself: a blocking call from the thread that would have
                   ///< to complete it, an upgrade, a lock asked for twice by one owner.
  kForked,         ///< The session belongs to the parent process.

  // The connection.
  kConnectionLoss = 201,
  kTimedOut,
  kCancelled,
  kUnreachable,  ///< No server of the connect string answered in time.
  kTls,          ///< Certificate, key or handshake trouble.

  // The session is over; nothing will be sent on it again.
  kSessionLost = 301,
  kAuthFailed,
  kClosed,

  // Locks.
  kBusy = 401,        ///< try_lock(): somebody else is ahead.
  kLost,              ///< What we held or waited with is gone: deleted by another hand, or run out.
  kCounterExhausted,  ///< The directory's sequence counter is at its end.
  kSizeMismatch,      ///< The semaphore has another size than the caller thinks.
  kKindMismatch,      ///< Another kind of lock is at this path.

  // A server of our own.
  kInUse = 501,  ///< Another process has the address or the data folder.
  kStorage,      ///< The disk refused: full, or a read, write or sync failed.
  kDamaged,      ///< What is stored does not match its checksums.
};

/// Whether the server may have carried out the request although it failed for us.
///
///     if (!result && result.error().effect() == Effect::kUnknown) look_first();
enum class Effect {
  kNone,     ///< Certainly not carried out.
  kUnknown,  ///< Carried out or not: read before you repeat it.
};

/// The enumerator without its `k`, for logs.
///
///     std::clog << name(Code::kNoNode) << '\n';  // NoNode
[[nodiscard]] LATCHKEY_EXPORT std::string_view name(Code code) noexcept;

/// The operation may succeed if it is simply tried again, on the same session.
[[nodiscard]] LATCHKEY_EXPORT bool is_retryable(Code code) noexcept;

/// The session has ended and every ephemeral node and lock of it with it, now or within its
/// time-out. Open a new one.
[[nodiscard]] LATCHKEY_EXPORT bool is_session_over(Code code) noexcept;

/// Category "latchkey", so that an Error can travel as a std::error_code. The path and the details,
/// which only the Error knows, stay behind; message() says what the code means: "no such node".
///
///     const std::error_code code = result.error();
///     if (code == make_error_code(Code::kBusy)) return;
///     if (code.category() == category()) std::cerr << code.message() << '\n';
[[nodiscard]] LATCHKEY_EXPORT const std::error_category& category() noexcept;
[[nodiscard]] LATCHKEY_EXPORT std::error_code make_error_code(Code code) noexcept;

/// What failed, on what, and whether it may have happened all the same.
///
///     if (!result) std::cerr << result.error() << '\n';  // NoNode: set /config: no such node
///
/// Thread safety: a value, immutable once made.
class Error {
 public:
  explicit Error(Code code, std::string message = {}, Effect effect = Effect::kNone)
      : message_(std::move(message)), code_(code), effect_(effect) {}

  [[nodiscard]] Code code() const noexcept { return code_; }
  /// Names the operation and the path or address, and what to try where that is known.
  [[nodiscard]] const std::string& message() const noexcept { return message_; }
  [[nodiscard]] Effect effect() const noexcept { return effect_; }
  operator std::error_code() const noexcept { return make_error_code(code_); }

  friend bool operator==(const Error& error, Code code) noexcept { return error.code_ == code; }

 private:
  std::string message_;
  Code code_;
  Effect effect_;
};

LATCHKEY_EXPORT std::ostream& operator<<(std::ostream& out, const Error& error);
LATCHKEY_EXPORT std::ostream& operator<<(std::ostream& out, Code code);

}  // namespace latchkey::inline v0

template <>
struct std::is_error_code_enum<latchkey::Code> : std::true_type {};
