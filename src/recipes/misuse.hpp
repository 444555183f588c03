#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "latchkey/error.hpp"
#include "latchkey/path.hpp"
#include "latchkey/result.hpp"
#include "session/host.hpp"

/// What every recipe refuses before anything is sent, and in which words.
namespace latchkey::recipes {

/// May a lock be there? The path has to be valid, and neither the service's root, which has
/// everybody's nodes for children, nor the service's own part of the tree.
[[nodiscard]] Result<void> check_place(const session::Host& host, const Path& path);

/// An option that makes no sense: what, where, and what would.
///
///     invalid_option("/locks/a", "hand_over.count is -1", "0 and more")
[[nodiscard]] Error invalid_option(const std::string& path, const std::string& what,
                                   std::string_view allowed);

/// Success unless `value` is less than `least`; `name` is the option's.
[[nodiscard]] Result<void> check_at_least(const std::string& path, std::string_view name,
                                          std::chrono::milliseconds value,
                                          std::chrono::milliseconds least);

}  // namespace latchkey::recipes
