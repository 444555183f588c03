#pragma once

#include <string>
#include <vector>

#include "latchkey/export.hpp"
#include "latchkey/lock.hpp"
#include "latchkey/node.hpp"
#include "latchkey/path.hpp"
#include "latchkey/session.hpp"

namespace latchkey::inline v0 {

/// What a MultiLock may be told beyond its members.
///
///     MultiLock books(session, {"/books/2025", "/books/2026"}, {.reason = "closing the year"});
struct MultiLockOptions {
  std::string reason = {};  ///< See MutexOptions.
  std::vector<Acl> acl = open_acl();
  Parent parent = Parent::kContainer;
};

/// Several exclusive locks as one: all or nothing, and one lost means all lost.
///
///     MultiLock transfer(session, {"/accounts/17", "/accounts/42"});
///     auto lease = transfer.lock(deadline_in(5s));
///
/// The entries in all directories are made in one transaction, so of any two MultiLocks one came
/// first everywhere: they cannot wait for each other in a circle, in whatever order the members are
/// named. Whoever takes a MultiLock while it holds a member, or a member one after the other while
/// it holds another, is not protected by that; it has its deadline.
///
/// Each member contends with the Mutex of its directory, as long as that one has no name. The token
/// is that of the one transaction, and is newer than that of any earlier hold of each member.
/// Lease::nodes() has one node for each member, in the order they were named, and Lock::path()
/// names them all, separated by commas.
///
/// A missing directory costs one more round trip for its member. All must be on one session, and
/// their requests have to fit into one frame (SessionOptions::max_request_bytes): that is room for
/// some thousands. A directory whose sequence counter nears its end is not made anew here, as Mutex
/// does it: the others would have to be given up meanwhile. lock() fails with kCounterExhausted
/// until a Mutex has been locked there once.
///
/// Thread safety: any thread.
class LATCHKEY_EXPORT MultiLock : public Lock {
 public:
  /// Nothing is created on the server until the first lock(). Errors of lock(), besides those of
  /// Lock: kInvalidOption (no member, or one named twice). An error names the member it is about,
  /// after a time-out one that was waited for.
  MultiLock(const Session& session, std::vector<Path> directories,
            MultiLockOptions options = MultiLockOptions());
};

}  // namespace latchkey::inline v0
