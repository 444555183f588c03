#pragma once

#include <string_view>

namespace latchkey::base {

/// The rule for a node's path, see latchkey::Path: why one is refused ("a part is empty"); empty if
/// it is not.
[[nodiscard]] std::string_view path_problem(std::string_view path);

}  // namespace latchkey::base
