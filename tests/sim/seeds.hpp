#pragma once

#include <array>
#include <cstdint>

namespace latchkey::sim {

/// The quick set. Few, and between them they meet every hazard that luck can meet; 15, 28, 176,
/// 185, 247 and 443 once showed a fault, too.
inline constexpr std::array<std::uint64_t, 18> kQuick = {3,  11, 15,  24,  28,  35,  54,  56,  60,
                                                         76, 77, 131, 168, 176, 185, 247, 443, 634};

}  // namespace latchkey::sim
