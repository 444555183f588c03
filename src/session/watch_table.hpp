#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "latchkey/watch.hpp"
#include "wire/messages.hpp"

namespace latchkey::session {

/// What a watch is on. kExists is a watch on a node that was absent when it was set.
enum class WatchOn { kData, kExists, kChildren, kPersistent, kRecursive };

using WatchId = std::uint64_t;

/// The local side of a session's watches: who wants to hear of what. The server keeps one watch for
/// each (kind, path), however many watchers there are here (H29). Paths are the server's, chroot
/// included.
///
/// Thread safety: one thread at a time.
class WatchTable {
 public:
  /// Whom a nearby end of a hold concerns: see Machine::owe_delete().
  enum class Kin { kNo, kYes };

  struct Watch {
    WatchId id = 0;
    WatchOn on = WatchOn::kData;
    Kin kin = Kin::kNo;
    Watcher watcher;
  };

  void add(const std::string& path, Watch watch);
  /// Forgets one watcher. Says what it watched if it was the last one there.
  std::optional<std::pair<WatchOn, std::string>> remove(WatchId id);
  /// Takes out every watcher of `path` that RemoveWatches of this type covers.
  std::vector<Watch> remove_all(const std::string& path, wire::WatcherType type);
  /// Takes out the one-shot watchers on data of `path` that belong to recipes of this session.
  std::vector<Watch> take_kin(const std::string& path);
  /// Takes out everything.
  std::vector<Watch> clear();

  /// Those an event concerns; one-shot ones are taken out.
  std::vector<Watcher> fire(wire::EventType type, const std::string& path);

  /// Takes out the watchers of children that this event concerns although the server will not say
  /// so: servers before 3.9 keep one mode for each path, and there a recursive watch hides a
  /// one-shot watch on the same node's children. The event is about a child of `parent`, which is
  /// filled in.
  std::vector<Watch> take_hidden(wire::EventType type, const std::string& path,
                                 std::string& parent);

  [[nodiscard]] bool watches(WatchOn on, const std::string& path) const;
  [[nodiscard]] bool empty() const { return by_id_.empty(); }
  [[nodiscard]] std::size_t size() const { return by_id_.size(); }

  /// Frames that set all watches again on a new connection, each under `max_frame` bytes (H63).
  /// setWatches2 only if there are persistent ones: servers before 3.6 do not know it.
  void append_restore(std::string& out, std::int64_t last_zxid, std::size_t max_frame,
                      int& frames) const;

 private:
  using Entries = std::map<std::string, std::vector<Watch>, std::less<>>;

  [[nodiscard]] Entries& entries(WatchOn on) { return entries_[static_cast<std::size_t>(on)]; }
  [[nodiscard]] const Entries& entries(WatchOn on) const {
    return entries_[static_cast<std::size_t>(on)];
  }
  /// Moves the watchers of (on, path) to the end of `out` and forgets them.
  void take(WatchOn on, const std::string& path, std::vector<Watch>& out);

  std::array<Entries, 5> entries_;
  std::map<WatchId, std::pair<WatchOn, std::string>> by_id_;
};

}  // namespace latchkey::session
