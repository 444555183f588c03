#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace latchkey::app {

/// What a person's lock says about itself, as the reason of its queue entry: readable in any
/// ZooKeeper shell, and by us.
///
///     the big move (hold: ann until 2026-11-16T09:30:00Z)
struct HoldNote {
  std::string reason;
  std::string owner;
  std::string until;  ///< UTC.

  friend bool operator==(const HoldNote&, const HoldNote&) = default;
};

[[nodiscard]] std::string format_hold(const HoldNote& note);
/// Nothing: that is not a hold's.
[[nodiscard]] std::optional<HoldNote> parse_hold(std::string_view text);

/// "2026-11-16T09:30:00Z"
[[nodiscard]] std::string utc_text(std::int64_t ms);

}  // namespace latchkey::app
