#pragma once

#include <string>
#include <vector>

#include "latchkey/export.hpp"
#include "latchkey/lock.hpp"
#include "latchkey/node.hpp"
#include "latchkey/path.hpp"
#include "latchkey/session.hpp"

namespace latchkey::inline v0 {

/// Whom a waiter watches. Both grant alike; they differ in what a release costs.
///
///     RwLock table(session, "/locks/table", {.watch = WatchPolicy::kTargeted});
enum class WatchPolicy {
  kTargeted,   ///< The one entry that stands in its way: a release wakes whom it concerns.
  kDirectory,  ///< The directory: every change wakes everyone, each of whom lists again.
};

/// What an RwLock may be told beyond its path.
///
///     RwLock table(session, "/locks/table", {.watch = WatchPolicy::kDirectory});
struct RwLockOptions {
  std::string reason = {};  ///< See MutexOptions.
  std::vector<Acl> acl = open_acl();
  Parent parent = Parent::kContainer;
  WatchPolicy watch = WatchPolicy::kTargeted;
};

/// Shared and exclusive holds on one path, strictly in the order the requests reached the server:
/// a reader holds when no writer is ahead of it, a writer when nobody is. So a waiting writer holds
/// up the readers behind it and cannot starve.
///
///     RwLock table(session, "/locks/table");
///     if (auto reading = table.read().lock(deadline_in(5s))) show(rows);
///     auto writing = table.write().lock(deadline_in(5s));
///     auto reading = table.downgrade(std::move(*writing), deadline_in(5s));
///
/// Entries are named as those of Curator's InterProcessReadWriteLock. Because of downgrade() a
/// writer's place may be taken by a reader with the same number: whoever waits behind a writer here
/// lists again on every wake, also under kTargeted (H44).
///
/// Not re-entrant. Thread safety: any thread.
class LATCHKEY_EXPORT RwLock {
 public:
  RwLock(const Session& session, Path directory, RwLockOptions options = RwLockOptions());

  [[nodiscard]] const Lock& read() const noexcept { return read_; }
  [[nodiscard]] const Lock& write() const noexcept { return write_; }

  /// Turns a hold of write() into one of read() without letting any writer in between, in one
  /// transaction. The token stays: it is one hold that goes on, and writers that wait have larger
  /// ones. After an error neither is held.
  /// Errors: kInvalidOption (not a held write() lease of a lock with this path), kLost, and those
  /// of Lock::lock().
  [[nodiscard]] Result<Lease> downgrade(Lease writing, Deadline deadline) const {
    return downgrade_async(std::move(writing), deadline).wait();
  }
  /// The request owns the writer's lease: if it is dropped or refused, that is released.
  [[nodiscard]] LockRequest downgrade_async(Lease writing, Deadline deadline) const;

  /// Always kWouldDeadlock, at once: two readers that both wanted this would wait for each other
  /// for ever. Release and ask for write(), then look again at what you read.
  [[nodiscard]] Result<Lease> upgrade(const Lease& reading) const;

 private:
  Lock read_;
  Lock write_;
};

}  // namespace latchkey::inline v0
