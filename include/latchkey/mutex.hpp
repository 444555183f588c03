#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "latchkey/deadline.hpp"
#include "latchkey/export.hpp"
#include "latchkey/lease.hpp"
#include "latchkey/node.hpp"
#include "latchkey/path.hpp"
#include "latchkey/session.hpp"

namespace latchkey::inline v0 {

/// What a missing lock directory is created as.
enum class Parent {
  kContainer,   ///< The server removes it some time after the last contender has left.
  kPersistent,  ///< For directories shared with kazoo, which cannot cope with the other kind.
};

struct MutexOptions {
  /// Shown to whoever looks at the queue, in the node's data beside host, process and time.
  std::string reason;
  /// Several locks may live in one directory, told apart by a name.
  std::string name;
  /// Of our queue entries, and of the lock's directory if we have to make it. Levels above it are
  /// made open to everyone.
  std::vector<Acl> acl = open_acl();
  Parent parent = Parent::kContainer;
  /// Further texts that stand right before the number in other programs' queue entries.
  std::vector<std::string> extra_tags = {};
};

/// Exclusive lock on a path, granted in the order the requests reached the server.
///
///     Mutex mutex(session, "/locks/invoices");
///     auto lease = mutex.lock(deadline_in(5s));
///     if (!lease) return lease.error();
///     write_row(lease->token(), row);  // the store refuses older tokens
///
/// Uncontended, lock() costs the caller one write on the server and unlocking nothing. The queue's
/// entries are named as Apache Curator's, so Java services can queue for the same lock; see
/// docs/interop.md.
///
/// Not re-entrant: a second lock() by the same caller queues behind the first. Thread safety: any
/// thread; one Mutex may be used by many.
class LATCHKEY_EXPORT Mutex {
 public:
  /// Nothing is created on the server until the first lock(). The mutex shares the session.
  Mutex(const Session& session, Path directory, MutexOptions options = {});
  Mutex(const Mutex&);
  Mutex(Mutex&&) noexcept;
  Mutex& operator=(const Mutex&);
  Mutex& operator=(Mutex&&) noexcept;
  ~Mutex();

  /// Waits until the lock is granted, `deadline` passes or `stop` is requested. After an error our
  /// place in the queue is given up: at once if the server can be reached, otherwise as soon as it
  /// can, at the latest when the session ends.
  /// Errors: kTimedOut, kCancelled, kLost (somebody deleted our queue entry), kSessionLost,
  /// kAuthFailed, kClosed, kNotAuthorized, kCounterExhausted, kNoNode (the session's chroot does
  /// not exist), kServerError; and, with nothing sent, kInvalidPath, kInvalidOption, kTooLarge,
  /// kForked, kWouldDeadlock.
  [[nodiscard]] Result<Lease> lock(Deadline deadline, std::stop_token stop = {});

  /// Takes the lock if nobody holds it or waits for it; otherwise kBusy, and nothing else means
  /// busy. `deadline` bounds the round trip to the server.
  /// Errors: kBusy, and those of lock().
  [[nodiscard]] Result<Lease> try_lock(Deadline deadline = deadline_in(std::chrono::seconds(5)),
                                       std::stop_token stop = {});

  [[nodiscard]] const Path& directory() const noexcept;

 private:
  struct Parts;
  std::shared_ptr<const Parts> parts_;
};

}  // namespace latchkey::inline v0
