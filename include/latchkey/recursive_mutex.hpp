#pragma once

#include <cstdint>

#include "latchkey/export.hpp"
#include "latchkey/lock.hpp"
#include "latchkey/mutex.hpp"

namespace latchkey::inline v0 {

/// On whose behalf a RecursiveMutex is held: a request, a job, a coroutine. Copies are the same
/// owner; two that were made apart never are.
///
///     const Owner job;         // For as long as the job runs, whichever thread that is on.
///     const Owner same = job;  // The same owner.
///     const Owner other;       // Another.
///
/// Thread safety: immutable.
class LATCHKEY_EXPORT Owner {
 public:
  Owner();
  /// The calling thread, for as long as it lives: no later thread is the same owner.
  [[nodiscard]] static Owner this_thread();

  friend constexpr auto operator<=>(const Owner&, const Owner&) noexcept = default;

 private:
  std::uint64_t id_;
};

/// A Mutex that its owner may lock again while it holds it. Each lock() gives a Lease of its own;
/// the lock passes on when the last of them is gone.
///
///     RecursiveMutex mutex(session, "/locks/ledger");
///     const Owner job;
///     auto outer = mutex.of(job).lock(deadline_in(5s));
///     auto inner = mutex.of(job).lock(deadline_in(5s));  // at once, same token
///
/// The owner is explicit, because a coroutine or a task may move between threads. Only the blocking
/// calls without one go by thread. Leases may be released in any order and on any thread.
///
/// Owners meet in one RecursiveMutex and its copies: two made apart are two locks that contend,
/// also for the same owner. Thread safety: any thread.
class LATCHKEY_EXPORT RecursiveMutex {
 public:
  RecursiveMutex(const Session& session, Path directory, MutexOptions options = MutexOptions());

  /// The lock as this owner sees it. While the owner waits for it a second request of the same
  /// owner fails with kWouldDeadlock.
  [[nodiscard]] Lock of(Owner owner) const;

  /// of(Owner::this_thread()).
  [[nodiscard]] Result<Lease> lock(Deadline deadline, std::stop_token stop = {}) const;
  [[nodiscard]] Result<Lease> try_lock(Deadline deadline = deadline_in(std::chrono::seconds(5)),
                                       std::stop_token stop = {}) const;

 private:
  struct Parts;
  std::shared_ptr<Parts> parts_;
};

}  // namespace latchkey::inline v0
