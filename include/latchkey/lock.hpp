#pragma once

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>

#include "latchkey/deadline.hpp"
#include "latchkey/export.hpp"
#include "latchkey/lease.hpp"
#include "latchkey/lock_request.hpp"

namespace latchkey::recipes {
class Recipe;
}

namespace latchkey::inline v0 {

/// What a missing lock directory is created as.
///
///     Mutex mutex(session, "/shared/with/kazoo", {.parent = Parent::kPersistent});
enum class Parent {
  kContainer,   ///< The server removes it some time after the last contender has left.
  kPersistent,  ///< For directories shared with kazoo, which cannot cope with the other kind.
};

/// Anything that can be held. Mutex is one; RwLock::read() and RwLock::write(),
/// Semaphore::permits() and RecursiveMutex::of() give one; MultiLock and NameLock are one. Whatever
/// it is, these are the ways to wait for it, and what comes of them is a Lease:
///
///     Lock lock = semaphore.permits(2);
///     auto lease = lock.lock(deadline_in(5s));
///
/// A value that shares the lock it stands for; cheap to copy. A moved-from Lock may only be
/// assigned to or destroyed. Thread safety: any thread; one Lock may be used by many.
class LATCHKEY_EXPORT Lock {
 public:
  explicit Lock(std::shared_ptr<const recipes::Recipe> recipe) noexcept;
  Lock(const Lock&);
  Lock(Lock&&) noexcept;
  Lock& operator=(const Lock&);
  Lock& operator=(Lock&&) noexcept;
  ~Lock();

  /// Waits until the lock is granted, `deadline` passes or `stop` is requested. After an error our
  /// place in the queue is given up: at once if the server can be reached, otherwise as soon as it
  /// can, at the latest when the session ends.
  /// Errors: kTimedOut, kCancelled, kLost (somebody deleted our queue entry), kSessionLost,
  /// kAuthFailed, kClosed, kCounterExhausted, kKindMismatch (a semaphore where a queue is wanted,
  /// or the other way round), kSizeMismatch and kInvalidOption (a semaphore that has another size,
  /// none, or fewer permits than are wanted), kNoNode (the session's chroot does not exist),
  /// kServerError; what a server refuses an entry or its directory with: kNotAuthorized,
  /// kInvalidAcl, kNoChildrenForEphemerals, kQuotaExceeded, kTooManyEphemerals, kReadOnlyServer,
  /// kUnimplemented, kBadArguments, and kOverloaded (it has too much to do: try again later); and,
  /// with nothing sent, kOverloaded (this session has), kInvalidPath, kInvalidOption, kTooLarge,
  /// kForked, kWouldDeadlock.
  [[nodiscard]] Result<Lease> lock(Deadline deadline, std::stop_token stop = {}) const {
    return lock_async(deadline, std::move(stop)).wait();
  }

  /// Takes the lock if it can be had now, without waiting for anybody; otherwise kBusy, and nothing
  /// else means busy. `deadline` bounds the round trips to the server.
  /// Errors: kBusy, and those of lock().
  [[nodiscard]] Result<Lease> try_lock(Deadline deadline = deadline_in(std::chrono::seconds(5)),
                                       std::stop_token stop = {}) const {
    return try_lock_async(deadline, std::move(stop)).wait();
  }

  /// lock() and try_lock() for those who do not block: see LockRequest.
  [[nodiscard]] LockRequest lock_async(Deadline deadline, std::stop_token stop = {}) const;
  [[nodiscard]] LockRequest try_lock_async(Deadline deadline, std::stop_token stop = {}) const;

  /// Where it is on the server.
  [[nodiscard]] const std::string& path() const noexcept;

  /// For the recipes of this library.
  [[nodiscard]] const recipes::Recipe& recipe() const noexcept { return *recipe_; }

 private:
  std::shared_ptr<const recipes::Recipe> recipe_;
};

}  // namespace latchkey::inline v0
