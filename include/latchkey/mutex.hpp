#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "latchkey/export.hpp"
#include "latchkey/lock.hpp"
#include "latchkey/node.hpp"
#include "latchkey/path.hpp"
#include "latchkey/session.hpp"

namespace latchkey::inline v0 {

/// How a process may pass a lock between its own threads before others get their turn. Whichever
/// limit is reached first counts.
///
///     Mutex mutex(session, "/locks/cache", {.hand_over = {.count = 10, .time = 20ms}});
///
/// Neither may be negative.
struct HandOver {
  int count = 0;  ///< Holds in a row on one queue entry; 0 and 1 mean none is passed on.
  std::chrono::milliseconds time{50};
};

/// What a Mutex may be told beyond its path.
///
///     Mutex mutex(session, "/locks/plotter", {.reason = "the big map", .lock_delay = 5s});
struct MutexOptions {
  /// Shown to whoever looks at the queue, in the node's data beside host, process and time.
  std::string reason = {};
  /// Several locks may live in one directory, told apart by a name.
  std::string name = {};
  /// Of our queue entries, and of the lock's directory if we have to make it. Levels above it are
  /// made open to everyone.
  std::vector<Acl> acl = open_acl();
  Parent parent = Parent::kContainer;
  /// Further texts that stand right before the number in other programs' queue entries. None may be
  /// empty.
  std::vector<std::string> extra_tags = {};
  /// Off by default: strictly first come, first served. With it, those who wait on the same session
  /// for the same lock, with the same options `reason` aside, share one queue entry and pass the
  /// lock on without a server write (H70).
  /// Their tokens differ in Token::hold(), so the resource has to compare whole tokens.
  ///
  /// No order is promised among those who share an entry: a thread that lets go and comes back at
  /// once, or calls try_lock() at that moment, may have the lock again before one that sleeps.
  /// Nobody is passed over for more than a millisecond: then whoever has waited that long has the
  /// lock after the hold under way, in the order in which they came. Not on an io_context of your
  /// own, where they have it in that order always.
  HandOver hand_over = {};
  /// For resources that cannot check tokens: when a holder vanished without letting go, the next
  /// one waits this long before it is granted the lock; try_lock() is kBusy meanwhile. The delay
  /// begins when somebody first looks, and if that one gives up it goes on by the server's clock
  /// for whoever comes later. Every contender has to use the same value,
  /// and all of them Latchkey; it costs one more write for each hold. A directory made for such a
  /// lock is persistent; one that others made as a container may be removed together with the mark
  /// of the vanished one, and the delay with it. The mark replaces whatever else the directory's
  /// data said. Not for named locks.
  std::chrono::milliseconds lock_delay{0};
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
/// A path is for one kind of lock. Where a semaphore is, which has a child `leases`, lock() fails
/// with kKindMismatch, and so do the permits of a Semaphore where a queue is. The service's root
/// and its own /zookeeper are no place for a lock (kInvalidPath).
///
/// Not re-entrant: a second lock() by whoever holds it queues behind its own hold, until its
/// deadline passes, and without one (Deadline::never()) it waits for ever. It cannot be refused: a
/// Lease may be released by another thread. See RecursiveMutex.
/// Thread safety: any thread; one Mutex may be used by many.
class LATCHKEY_EXPORT Mutex : public Lock {
 public:
  /// Nothing is created on the server until the first lock(). The mutex shares the session.
  Mutex(const Session& session, Path directory, MutexOptions options = MutexOptions());
};

}  // namespace latchkey::inline v0
