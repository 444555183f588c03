#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <string_view>

#include "latchkey/export.hpp"

namespace latchkey::inline v0 {

/// What happened to a watched node.
///
///     const auto has_gone = [](EventKind kind) { return kind == EventKind::kDeleted; };
enum class EventKind {
  kCreated,
  kDeleted,
  kDataChanged,
  kChildrenChanged,
  kWatchRemoved,  ///< By RemoveWatches; this watcher will not be called again.
  kSessionOver,   ///< The session ended; no watch of it will ever fire again.
  kUnknown,       ///< A newer server's event: look again.
};

/// What a watcher is told: look again, for more may have happened since.
///
///     const auto log = [](const WatchEvent& event) { std::clog << event.kind << event.path; };
struct WatchEvent {
  EventKind kind = EventKind::kUnknown;
  std::string path;
  /// It came before a new connection had told all that happened without one. Such events come in no
  /// particular order.
  bool missed = false;
};

/// Called on the session's callback executor, never on the I/O thread, one at a time per session
/// and in the order of the changes. It may use the session freely, blocking calls included.
///
///     const Watcher watcher = [](const WatchEvent& event) {
///       if (event.kind == EventKind::kSessionOver) return open_again();
///       std::clog << name(event.kind) << ' ' << event.path << '\n';
///     };
using Watcher = std::function<void(const WatchEvent&)>;

/// "created", "deleted", ...
[[nodiscard]] LATCHKEY_EXPORT std::string_view name(EventKind kind) noexcept;
LATCHKEY_EXPORT std::ostream& operator<<(std::ostream& out, EventKind kind);

}  // namespace latchkey::inline v0
