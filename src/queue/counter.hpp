#pragma once

#include <cstdint>

namespace latchkey::queue {

/// A directory's sequence numbers are 32 bits wide, and there is no order beyond the last one
/// (H35). From here on, a million before it, the directory is drained and made anew.
constexpr std::int32_t kSpentFrom = INT32_MAX - (1 << 20);

/// While a directory is drained, no client of ours makes an entry that gets its turn. After so many
/// looks in which the first in line came after ours, and after the one of the look before, another
/// client goes on using the directory, and it will not be empty. With the pauses of the usual
/// RetryPolicy that takes about ten seconds.
constexpr int kMostLooksAtLaterOnes = 12;

/// No number to enter a queue with: too near the end, or beyond it.
[[nodiscard]] constexpr bool is_spent(std::int32_t number) {
  return number < 0 || number >= kSpentFrom;
}

/// Seen while a directory is drained: no live entry of the old one is likely to be this far behind.
[[nodiscard]] constexpr bool is_of_a_fresh_directory(std::int32_t number) {
  return number >= 0 && number < kSpentFrom / 2;
}

/// Was the entry made after the other one? Negative numbers come after all positive ones.
[[nodiscard]] constexpr bool is_later(std::int32_t number, std::int32_t other) {
  return static_cast<std::uint32_t>(number) > static_cast<std::uint32_t>(other);
}

}  // namespace latchkey::queue
