#pragma once

#include <string>

namespace latchkey::recipes {

/// What a queue entry of ours says about us: host, process, program, time, and why (M13).
[[nodiscard]] std::string entry_data(const std::string& reason);

}  // namespace latchkey::recipes
