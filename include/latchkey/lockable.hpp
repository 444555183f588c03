#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "latchkey/lock.hpp"
#include "latchkey/recursive_mutex.hpp"
#include "latchkey/rw_lock.hpp"

namespace latchkey::inline v0 {

namespace detail {

/// Whatever the unit, and however long.
template <class Rep, class Period>
Deadline deadline_after(const std::chrono::duration<Rep, Period>& span) {
  const std::chrono::duration<double> seconds = span;
  const bool fits =
      seconds < std::chrono::duration_cast<std::chrono::duration<double>>(Duration::max() / 2);
  return fits ? deadline_in(std::chrono::duration_cast<Duration>(span)) : Deadline::never();
}

/// What the façades throw: says what the Error said, and not what its code means once more.
class Refusal : public std::system_error {
 public:
  explicit Refusal(const Error& error) : std::system_error(error), message_(error.message()) {}
  [[nodiscard]] const char* what() const noexcept override { return message_.c_str(); }

 private:
  std::string message_;
};

}  // namespace detail

/// A Lock in the dress of a std::mutex, for std::unique_lock, std::scoped_lock and
/// std::condition_variable_any: meets Lockable and TimedLockable.
///
///     Lockable guard(Mutex(session, "/locks/ledger"));
///     const std::scoped_lock lock(guard);
///     store.write(guard.lease().token(), row);
///
/// It holds the one Lease that such an interface has no place for, so it is a lock *for this
/// process*: threads that share it exclude each other by it, and other processes through the
/// service. What cannot be told by a bool is thrown as std::system_error with one of our codes;
/// try_lock() == false means busy and nothing else. A loss does not unlock: ask lease().lost().
///
/// std::lock and std::scoped_lock over several of these back off and try again, which is several
/// writes a round and not fair: MultiLock does it in one.
///
/// Thread safety: any thread; unlock() on the thread that locked, as with std::mutex.
class Lockable {
 public:
  explicit Lockable(Lock lock) : lock_(std::move(lock)) {}

  /// Throws kWouldDeadlock if this thread holds it already.
  void lock() { acquire(Deadline::never()); }

  [[nodiscard]] bool try_lock() {
    refuse_again();
    return enter(Deadline(Instant::min())) && take(lock_.try_lock(), Code::kBusy);
  }

  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_for(const std::chrono::duration<Rep, Period>& span) {
    if (span <= span.zero()) return try_lock();
    return try_lock_by(detail::deadline_after(span));
  }
  template <class Clock, class Span>
  [[nodiscard]] bool try_lock_until(const std::chrono::time_point<Clock, Span>& at) {
    return try_lock_for(at - Clock::now());
  }

  /// Throws std::errc::operation_not_permitted unless this thread holds it. Does not wait for the
  /// service.
  void unlock() {
    refuse_others("unlock ");
    lease_.reset();
    owner_.store(Owner());
    leave();
  }

  /// The hold of this thread. Throws std::errc::operation_not_permitted if it has none.
  [[nodiscard]] Lease& lease() {
    refuse_others("lease of ");
    return *lease_;
  }

 private:
  void refuse_again() const {
    if (owner_.load() != Owner::this_thread()) return;
    throw detail::Refusal(
        Error(Code::kWouldDeadlock, "lock " + lock_.path() + ": this thread holds it already"));
  }

  void refuse_others(const char* verb) const {
    if (owner_.load() == Owner::this_thread()) return;
    throw std::system_error(std::make_error_code(std::errc::operation_not_permitted),
                            verb + lock_.path() + ": held by another thread, or by none");
  }

  void acquire(Deadline deadline) {
    refuse_again();
    static_cast<void>(enter(deadline) && take(lock_.lock(deadline), std::nullopt));
  }

  bool try_lock_by(Deadline deadline) {
    refuse_again();
    return enter(deadline) && take(lock_.lock(deadline), Code::kTimedOut);
  }

  /// Threads of ours wait for each other here and need not ask the service.
  bool enter(Deadline deadline) {
    std::unique_lock guard(mutex_);
    while (entered_) {
      const Instant now = BootClock::now();
      if (deadline.has_passed(now)) return false;
      if (deadline.is_never()) {
        left_.wait(guard);
      } else {
        left_.wait_for(guard, deadline.at() - now);
      }
    }
    entered_ = true;
    return true;
  }

  void leave() {
    const std::lock_guard guard(mutex_);
    entered_ = false;
    left_.notify_one();
  }

  /// `no` is the error that means false.
  bool take(Result<Lease> lease, std::optional<Code> no) {
    if (lease) {
      lease_.emplace(std::move(*lease));
      owner_.store(Owner::this_thread());
      return true;
    }
    leave();
    if (no && lease.error() == *no) return false;
    throw detail::Refusal(lease.error());
  }

  const Lock lock_;
  std::mutex mutex_;
  std::condition_variable left_;
  bool entered_ = false;  ///< One of our threads has the Lease or asks for it.
  std::optional<Lease> lease_;
  std::atomic<Owner> owner_{Owner()};  ///< A thread that has ended is nobody's owner any more.
};

/// An RwLock in the dress of a std::shared_timed_mutex: meets Lockable, TimedLockable,
/// SharedLockable and SharedTimedLockable.
///
///     SharedLockable table(RwLock(session, "/locks/table"));
///     const std::shared_lock reading(table);
///
/// Each shared hold has an entry of its own on the server. Locking again on a thread that holds it,
/// in either way, throws kWouldDeadlock: a reader that waited to write would wait for itself.
/// Thread safety: any thread; unlock on the thread that locked.
class SharedLockable {
 public:
  explicit SharedLockable(RwLock lock) : lock_(std::move(lock)) {}

  void lock() { static_cast<void>(take(Side::kWrite, Deadline::never(), Mode::kWait)); }
  void lock_shared() { static_cast<void>(take(Side::kRead, Deadline::never(), Mode::kWait)); }
  [[nodiscard]] bool try_lock() { return take(Side::kWrite, Deadline::never(), Mode::kTry); }
  [[nodiscard]] bool try_lock_shared() { return take(Side::kRead, Deadline::never(), Mode::kTry); }

  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_for(const std::chrono::duration<Rep, Period>& span) {
    return take_within(Side::kWrite, span);
  }
  template <class Clock, class Span>
  [[nodiscard]] bool try_lock_until(const std::chrono::time_point<Clock, Span>& at) {
    return try_lock_for(at - Clock::now());
  }
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_shared_for(const std::chrono::duration<Rep, Period>& span) {
    return take_within(Side::kRead, span);
  }
  template <class Clock, class Span>
  [[nodiscard]] bool try_lock_shared_until(const std::chrono::time_point<Clock, Span>& at) {
    return try_lock_shared_for(at - Clock::now());
  }

  /// Throw std::errc::operation_not_permitted unless this thread holds it in that way.
  void unlock() { give_back(Side::kWrite); }
  void unlock_shared() { give_back(Side::kRead); }

  /// The hold of this thread, in either way. Throws std::errc::operation_not_permitted if it has
  /// none.
  [[nodiscard]] Lease& lease() {
    const std::lock_guard guard(mutex_);
    const auto held = holds_.find(Owner::this_thread());
    if (held == holds_.end()) refuse("lease of ");
    return held->second.lease;
  }

 private:
  enum class Side { kRead, kWrite };
  enum class Mode { kWait, kTry, kTimed };
  struct Held {
    Side side;
    Lease lease;
  };

  template <class Rep, class Period>
  bool take_within(Side side, const std::chrono::duration<Rep, Period>& span) {
    if (span <= span.zero()) return take(side, Deadline::never(), Mode::kTry);
    return take(side, detail::deadline_after(span), Mode::kTimed);
  }

  bool take(Side side, Deadline deadline, Mode mode) {
    const Owner self = Owner::this_thread();
    const Lock& lock = side == Side::kRead ? lock_.read() : lock_.write();
    {
      const std::lock_guard guard(mutex_);
      if (holds_.contains(self)) {
        throw detail::Refusal(
            Error(Code::kWouldDeadlock, "lock " + lock.path() + ": this thread holds it already"));
      }
    }
    auto lease = mode == Mode::kTry ? lock.try_lock() : lock.lock(deadline);
    if (!lease) {
      const bool no = (mode == Mode::kTry && lease.error() == Code::kBusy) ||
                      (mode == Mode::kTimed && lease.error() == Code::kTimedOut);
      if (no) return false;
      throw detail::Refusal(lease.error());
    }
    const std::lock_guard guard(mutex_);
    holds_.emplace(self, Held{side, std::move(*lease)});
    return true;
  }

  void give_back(Side side) {
    std::map<Owner, Held>::node_type held;  // Ends when nothing is locked any more.
    const std::lock_guard guard(mutex_);
    const auto at = holds_.find(Owner::this_thread());
    if (at == holds_.end() || at->second.side != side) {
      refuse(side == Side::kRead ? "unlock_shared " : "unlock ");
    }
    held = holds_.extract(at);
  }

  [[noreturn]] void refuse(const char* verb) const {
    throw std::system_error(std::make_error_code(std::errc::operation_not_permitted),
                            verb + lock_.write().path() + ": not held in that way by this thread");
  }

  const RwLock lock_;
  std::mutex mutex_;
  std::map<Owner, Held> holds_;
};

}  // namespace latchkey::inline v0
