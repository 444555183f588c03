#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace latchkey::queue {

/// What Curator sets a holder's node to, to ask it to let go.
inline constexpr std::string_view kRevokeData = "__REVOKE__";

/// Who stands behind a queue entry, as its node's data tells people and tools. Nothing is ever
/// decided by it: identity is the guid in the name and the session that owns the node.
struct Owner {
  std::string host;
  std::int64_t pid = 0;
  std::string program;
  std::string since;   ///< UTC, as text: "2024-05-17T09:30:00Z".
  std::string reason;  ///< What the caller said it needs the lock for.

  friend bool operator==(const Owner&, const Owner&) = default;
};

/// Lines that can be read in any ZooKeeper shell. Empty fields are left out.
///
///     latchkey/1
///     host=db1
///     pid=4711
///     program=backup
///     since=2024-05-17T09:30:00Z
///     reason=nightly run
///
/// Control characters, `%` and bytes beyond ASCII that are not UTF-8 text appear as `%` and two hex
/// digits, so that every value survives and none can pose as another line.
[[nodiscard]] std::string format_owner(const Owner& owner);

/// Reads it back. Unknown keys are skipped, missing ones stay empty; nothing for data that is not
/// ours (a Curator client writes its address there, kazoo an identifier).
[[nodiscard]] std::optional<Owner> parse_owner(std::string_view data);

/// What to set a node to that has `data`, so that its holder hears that it is to let go. One of
/// ours keeps what it says about itself and gets `release=requested` as its second line; any other
/// understands Curator's word only, and loses what it said.
[[nodiscard]] std::string asking_to_let_go(std::string_view data);

/// Whether the holder of a node with this data has been asked to let go, in either way.
[[nodiscard]] bool is_asked_to_let_go(std::string_view data);

}  // namespace latchkey::queue
