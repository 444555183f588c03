#pragma once

#include <cstdint>

namespace latchkey::queue {

/// A directory's sequence numbers are 32 bits wide, and what comes after the last one is not order
/// but chaos (H35). Half of them are used; from here on the directory is drained and made anew.
constexpr std::int32_t kSpentFrom = 1 << 30;

/// No number to enter a queue with: too near the end, or beyond it.
[[nodiscard]] constexpr bool is_spent(std::int32_t number) {
  return number < 0 || number >= kSpentFrom;
}

/// Seen while a directory is drained: no live entry of the old one is likely to be this far behind.
[[nodiscard]] constexpr bool is_of_a_fresh_directory(std::int32_t number) {
  return number >= 0 && number < kSpentFrom / 2;
}

}  // namespace latchkey::queue
