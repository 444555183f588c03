#pragma once

#include <optional>
#include <string>
#include <vector>

#include "latchkey/export.hpp"
#include "latchkey/lock.hpp"
#include "latchkey/node.hpp"
#include "latchkey/path.hpp"
#include "latchkey/session.hpp"

namespace latchkey::inline v0 {

/// What a Semaphore may be told beyond its path.
///
///     Semaphore gpus(session, "/pools/gpu", {.size = 8, .parent = Parent::kPersistent});
struct SemaphoreOptions {
  /// How many permits there are. It is stored in the semaphore's node by whoever makes it; later a
  /// caller with another number is refused (kSizeMismatch). Left out: whatever is stored.
  std::optional<int> size = {};
  std::string reason = {};  ///< See MutexOptions.
  /// Of all nodes we make at or below the path.
  std::vector<Acl> acl = open_acl();
  /// A container is removed when it has not been used for a while, and a changed size is forgotten
  /// with it. Choose kPersistent if resize() has to last.
  Parent parent = Parent::kContainer;
};

/// At most `size` permits are held at a time; a caller takes one or several at once, all or
/// nothing, in the order of arrival.
///
///     Semaphore gpus(session, "/pools/gpu", {.size = 8});
///     auto two = gpus.permits(2).lock(deadline_in(1min));
///
/// Callers queue in front, and only the first of them looks at the permits: nobody is woken in
/// vain, and a large request is never overtaken by small ones, even if those could be served. The
/// layout on the server is that of Curator's InterProcessSemaphoreV2: `locks/` and `leases/` below
/// the path. A semaphore that Curator made has no stored size: it is joined with the caller's, and
/// the session's log gets a warning.
///
/// Its Lease has one node for each permit and ends as a whole: should another hand delete one of
/// them, all are lost. Holders are not ordered among each other, so one token does not overtake
/// another: a resource can use tokens to tell holds apart, not to refuse older ones (H18).
///
/// Thread safety: any thread.
class LATCHKEY_EXPORT Semaphore {
 public:
  Semaphore(const Session& session, Path path, SemaphoreOptions options = SemaphoreOptions());

  /// `count` permits as one lock. Errors of its lock(), besides those of Lock: kInvalidOption
  /// (count below 1 or above the size, or no size known), kSizeMismatch, kKindMismatch (a mutex or
  /// the like has entries at the path, which would not exclude us). try_lock() is kBusy also
  /// when the permits are there and another caller is just about to take some.
  [[nodiscard]] Lock permits(int count = 1) const;

  /// Changes the stored size, for everybody. Nobody who holds is evicted: after a reduction new
  /// grants wait until enough permits have come back; after an increase several may enter at once.
  /// Callers that were set up with the old size are refused from then on; a lock() that is under
  /// way goes along with the new one, unless that is less than it asks for.
  /// Errors: kInvalidOption (below 1, or what is at the path is not a semaphore: neither stores a
  /// size nor has `locks` or `leases` below it), kNoNode (there is no semaphore yet), and those of
  /// Session.
  Result<void> resize(int size, Deadline deadline) const;

  /// The stored size; nothing if none is stored. Errors: those of Session.
  [[nodiscard]] Result<std::optional<int>> size(Deadline deadline) const;

 private:
  struct Parts;
  std::shared_ptr<const Parts> parts_;
};

}  // namespace latchkey::inline v0
