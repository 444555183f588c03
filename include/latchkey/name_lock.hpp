#pragma once

#include <string>
#include <vector>

#include "latchkey/export.hpp"
#include "latchkey/lock.hpp"
#include "latchkey/node.hpp"
#include "latchkey/path.hpp"
#include "latchkey/session.hpp"

namespace latchkey::inline v0 {

/// What a NameLock may be told beyond its node.
///
///     NameLock lock(session, "/running/import", {.reason = "prices of May"});
struct NameLockOptions {
  std::string reason = {};  ///< See MutexOptions.
  /// Of the node. Whoever may not read it has to try again and again instead of being told.
  std::vector<Acl> acl = open_acl();
  /// Of missing levels above the node.
  Parent parent = Parent::kContainer;
};

/// The simplest lock: whoever creates the one ephemeral node holds it; the others are told when it
/// goes, and race. Cheapest when nobody contends (one create, one delete, no list), unfair and a
/// herd when many do: use Mutex then.
///
///     NameLock lock(session, "/running/nightly-backup");
///     auto lease = lock.try_lock();
///     if (!lease && lease.error() == Code::kBusy) return;  // it runs elsewhere
///
/// Whatever has that name is waited for, and is kBusy to try_lock(): also a plain node that an
/// operator made by hand, and the node of another caller on the same session. The node's data says
/// who holds it; do not overwrite it while lock() is under way, since it is how a create whose
/// answer was lost is told from somebody else's.
///
/// Names return, so a node that another hand deletes and a third makes anew may be hit by the
/// delete of a holder that has not heard of it yet: leave the nodes of others alone.
///
/// Thread safety: any thread.
class LATCHKEY_EXPORT NameLock : public Lock {
 public:
  /// Nothing is created on the server until the first lock(). Errors of lock(): those of Lock; "/"
  /// is kInvalidPath.
  NameLock(const Session& session, Path node, NameLockOptions options = NameLockOptions());
};

}  // namespace latchkey::inline v0
