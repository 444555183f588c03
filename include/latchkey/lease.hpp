#pragma once

#include <memory>
#include <ostream>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "latchkey/deadline.hpp"
#include "latchkey/export.hpp"
#include "latchkey/operations.hpp"
#include "latchkey/result.hpp"
#include "latchkey/token.hpp"

namespace latchkey::recipes {
class Hold;
}

namespace latchkey::inline v0 {

/// What the local clock says about a hold.
///
///     if (lease->state() != LeaseState::kHeld) std::clog << name(lease->state()) << '\n';
enum class LeaseState {
  kHeld,
  kSuspect,  ///< Still ours, but the server has not been heard from for a while.
  kLost,     ///< Final. Somebody else may hold the lock.
  kReleased,
};

[[nodiscard]] LATCHKEY_EXPORT std::string_view name(LeaseState state) noexcept;
LATCHKEY_EXPORT std::ostream& operator<<(std::ostream& out, LeaseState state);

/// What release() could do at once.
///
///     if (lease->release() == Released::kAlreadyOver) look_for_damage();
enum class Released {
  /// The server has been sent the release; or will be in a millisecond, if this session has
  /// been coming back for the next lock at once (docs/decisions/0011).
  kNow,
  kDeferred,  ///< No connection: the release goes out with the next one, or with the session's end.
  /// This hold has ended and the lock stays: the owner of a RecursiveMutex has it by another Lease,
  /// or a local hand-over has passed it on or is about to. Nothing was sent.
  kStillHeld,
  kAlreadyOver,  ///< There was nothing to release: lost before, or released before.
};

/// A lock that is held. Let go by release() or by destruction.
///
///     auto lease = mutex.lock(deadline_in(5s));
///     if (!lease) return lease.error();
///     std::stop_callback on_loss(lease->lost(), [&] { work.abort(); });
///     store.write(lease->token(), row);  // the store refuses older tokens
///
/// Holding a Lease is not proof that no one else holds the lock: a process can be paused and
/// outlive its session without noticing. Work that must never run twice has to check the token
/// where the effect happens. See docs/guarantees.md.
///
/// Move-only; the one value is the hold, whatever thread it is on. Destroying it never waits and
/// never throws. One that was moved from is as one that was released, without token, node and loss
/// signal: to ask for those ends the process with a message. Thread safety: any thread for the
/// const members; one thread at a time for the rest.
class LATCHKEY_EXPORT Lease {
 public:
  explicit Lease(std::shared_ptr<recipes::Hold> hold) noexcept;
  Lease(Lease&&) noexcept;
  Lease& operator=(Lease&&) noexcept;
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  ~Lease();

  [[nodiscard]] Token token() const noexcept;
  /// Path of our node in the lock's directory; of the first, if the hold has several.
  [[nodiscard]] const std::string& node() const noexcept;
  /// All of them: a MultiLock has one in each directory, a Semaphore one for each permit.
  [[nodiscard]] std::vector<std::string> nodes() const;

  /// Reads the clock at every call and remembers nothing (H13).
  [[nodiscard]] LeaseState state() const noexcept;

  /// Stop is requested when the lock is lost: at the latest when the lease runs out by the local
  /// clock, before the server can give the lock to anybody else. Not requested by release().
  /// Callbacks run on a thread of the library, never on SessionOptions::executor, and wait for no
  /// other user code. After a loss by the clock the lock passes on when the callbacks have
  /// returned, or after a session time-out.
  [[nodiscard]] std::stop_token lost() const noexcept;

  /// Asks the service whether the lock is still ours: a round trip through its leader, so the
  /// answer was true at some moment between call and return.
  /// Errors: kLost, kTimedOut, what ended the session, kForked, kWouldDeadlock.
  [[nodiscard]] Result<void> check(Deadline deadline) const;

  /// Puts a check of our nodes before everything else in `multi`: if the lock has gone by the time
  /// the service gets to it, nothing of it is carried out. Errors: kLost, if it has gone already;
  /// kInvalidOption for a NameLock, whose name may by then be another's, and under
  /// MutexOptions::hand_over, where one node serves several holds: compare tokens there.
  ///
  ///     Multi writes{{Set{"/ledger", row}}};
  ///     if (auto ours = lease->guard(writes); !ours) return ours.error();
  ///     auto outcome = session.call(writes, deadline);
  ///     if (!outcome) return outcome.error();  // Perhaps written: see Error::effect().
  ///     if (!outcome->committed) return outcome->parts.front().error();  // Nothing was written.
  ///
  /// A call that was answered is not yet one that was carried out: `committed` says so.
  /// The session's requests run in order, so what was sent before release() is covered as well.
  [[nodiscard]] Result<void> guard(Multi& multi) const;

  /// Stop is requested when somebody asks us to let go: revoke(), or Curator's Revoker. It is a
  /// wish; the lock stays ours until we release it. The first call starts to listen. Callbacks run
  /// as those of lost().
  [[nodiscard]] std::stop_token release_requested() const;

  /// Ends the hold now; does not wait for the server. Calling it again does nothing.
  Released release() noexcept;

  /// Ends the hold now and waits until the server has removed our node; at once where the lock is
  /// not given up by it (a RecursiveMutex that is held again, a local hand-over).
  /// Errors: kTimedOut (it is still being removed in the background), kLost (it was lost before),
  /// what ended the session, kForked, kWouldDeadlock.
  Result<void> release(Deadline deadline);

  /// For the recipes of this library.
  [[nodiscard]] const std::shared_ptr<recipes::Hold>& hold() const noexcept { return hold_; }

 private:
  std::shared_ptr<recipes::Hold> hold_;
};

}  // namespace latchkey::inline v0
