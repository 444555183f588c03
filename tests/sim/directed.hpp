#pragma once

#include <optional>
#include <string>

namespace latchkey::sim {

/// Schedules that luck alone would not bring about. Each says what went wrong, if anything did.

/// A create is lost on its way, and a stranger makes a node with our guid before we look for ours
/// (H04). Luck does not guess guids.
[[nodiscard]] std::optional<std::string> play_stolen_guid();

}  // namespace latchkey::sim
