#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "latchkey/deadline.hpp"
#include "latchkey/export.hpp"
#include "latchkey/path.hpp"
#include "latchkey/result.hpp"
#include "latchkey/session.hpp"
#include "latchkey/token.hpp"

namespace latchkey::inline v0 {

/// One child of a lock's directory, as far as its name, stat and data tell.
///
///     for (const QueueEntry& entry : queue->entries) {
///       if (entry.standing != QueueEntry::Standing::kWaits) continue;
///       std::cout << entry.position << ' ' << entry.host << ' ' << entry.pid << '\n';
///     }
struct LATCHKEY_EXPORT QueueEntry {
  enum class Standing {
    kHolds,
    kWaits,
    kForeign,  ///< Not a contender's name: nobody waits for it.
  };

  std::string node;  ///< The child's name; in a semaphore with "leases/" or "locks/" before it.
  Standing standing = Standing::kForeign;
  int position = 0;     ///< From 1, in order of arrival at this lock name; 0 for kForeign.
  bool shared = false;  ///< A read request.
  /// "curator", "kazoo", ...; empty for kForeign. Ours is "curator", that of a named lock "named".
  std::string dialect;
  std::string lock_name;  ///< Of a named lock; empty otherwise.
  Token token{0};
  std::int64_t session = 0;        ///< The owner's session id.
  std::int64_t created_ms = 0;     ///< Milliseconds since 1970, by the server's clock.
  bool release_requested = false;  ///< Somebody has asked it to let go.

  // From the node's data; empty if it is not in our format. `data` is always there, unless we may
  // not read it.
  std::string host;
  std::int64_t pid = 0;
  std::string program;
  std::string since;
  std::string reason;
  std::string data;

  friend bool operator==(const QueueEntry&, const QueueEntry&) = default;
};

/// What inspect() has seen.
///
///     if (!queue->exists) std::cout << queue->directory << " is not in use\n";
///     for (const std::string& warning : queue->warnings) std::clog << warning << '\n';
struct LATCHKEY_EXPORT Queue {
  std::string directory;
  bool exists = false;
  std::optional<int> size = {};     ///< How many permits a semaphore has, if it is stored.
  std::vector<QueueEntry> entries;  ///< Contenders in order of arrival, then the foreign ones.
  /// Sentences for people: clients in one directory that do not see each other, a counter near its
  /// end, and the like. Empty: nothing to worry about.
  std::vector<std::string> warnings;

  [[nodiscard]] std::vector<const QueueEntry*> holders() const;

  friend bool operator==(const Queue&, const Queue&) = default;
};

/// The queue of a Mutex, RwLock, MultiLock member or Election, as data. A picture of one moment
/// that may be past by the time it is looked at: nothing may be decided by it. For a semaphore give
/// its own path: holders are the permits, then come those who wait. Whoever waits out a lock delay
/// is shown as waiting, and so are leases of a semaphore that were made and not granted yet.
///
///     auto queue = inspect(session, "/locks/invoices", deadline_in(5s));
///     for (const QueueEntry* holder : queue->holders()) std::cout << holder->host << '\n';
///
/// A directory that does not exist is an empty queue. Errors: kInvalidPath, kNotAuthorized,
/// kTimedOut, what ended the session.
[[nodiscard]] LATCHKEY_EXPORT Result<Queue> inspect(Session& session, const Path& directory,
                                                    Deadline deadline);

/// The queue as it changes: `handler` gets it once at the start and again after every change, in
/// order, on the session's executor. Changes that follow each other closely may come as one, and
/// those that come while the handler runs do; no two in a row are equal. It ends with an Error as
/// the last call if the session ends or the directory may not be read.
///
///     QueueWatch watch(session, "/locks/invoices", [](Result<Queue> queue) { show(queue); });
///
/// Seen are entries that come and go, the directory's end and return, and changed data of those who
/// hold alone, such as a request to let go; the data of the others is that of the first look. A
/// change costs one list and a read of what is new.
///
/// Destroying it ends the stream and takes its watches along; a call that is under way may still
/// finish. Thread safety: any thread.
class LATCHKEY_EXPORT QueueWatch {
 public:
  using Handler = std::function<void(Result<Queue>)>;

  QueueWatch(const Session& session, Path directory, Handler handler);
  QueueWatch(QueueWatch&&) noexcept;
  QueueWatch& operator=(QueueWatch&&) noexcept;
  ~QueueWatch();

 private:
  class State;
  std::shared_ptr<State> state_;
};

/// Asks whoever holds with `node` (its full path) to let go: see Lease::release_requested(). An
/// entry of ours keeps what it says about its owner; the data of any other is overwritten, in
/// Curator's way. A leader or candidate of an Election cannot be asked: the data of its entry is
/// its id, and has to stay. Let it resign, or remove the entry.
/// Errors: kNoNode (it has let go), kInvalidOption (an election's entry, or the node belongs to no
/// session: perhaps the lock itself was named; in either case nothing is changed), and those of
/// Session::get() and Session::set().
///
///     auto asked = revoke(session, "/locks/invoices/" + holder->node, deadline_in(2s));
LATCHKEY_EXPORT Result<void> revoke(Session& session, const Path& node, Deadline deadline);

}  // namespace latchkey::inline v0
