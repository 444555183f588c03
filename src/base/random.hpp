#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <utility>

namespace latchkey::base {

/// Where the pure machines get their luck from. The simulator hands in a seeded one.
/// Thread safety: one thread at a time.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  std::uint64_t next() { return engine_(); }
  /// Evenly from [0, bound); 0 for a bound of 0.
  std::uint64_t below(std::uint64_t bound) {
    return bound == 0 ? 0 : std::uniform_int_distribution<std::uint64_t>(0, bound - 1)(engine_);
  }

 private:
  std::mt19937_64 engine_;
};

/// 64 bits from the kernel: unpredictable, and different in parent and child after a fork (H08).
[[nodiscard]] std::uint64_t kernel_random();
/// The same, several at once.
void kernel_random(std::span<std::uint64_t> words);

}  // namespace latchkey::base
