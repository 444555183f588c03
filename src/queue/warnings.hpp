#pragma once

#include <span>
#include <string>
#include <vector>

#include "queue/node_name.hpp"

namespace latchkey::queue {

/// What people should know about a lock's directory, a sentence each: entries that do not see each
/// other, names on which other clients stumble, a counter at its end, entries that nobody removes.
/// `foreign` are the names of the children that are no contenders, `lasting` the nodes of
/// contenders that are not ephemeral. docs/interop.md says more about each client.
[[nodiscard]] std::vector<std::string> warnings(std::span<const Place> contenders,
                                                std::span<const std::string> foreign,
                                                std::span<const std::string> lasting);

}  // namespace latchkey::queue
