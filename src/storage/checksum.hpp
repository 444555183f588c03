#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

namespace latchkey::storage {

/// XXH3 of the bytes, with the first and the last bit of the top byte set. As numbers are stored
/// with that byte last, what ends in a checksum never ends in zero, and a single flipped bit does
/// not make it so: a write that did not get to its end can be told from one that was damaged.
[[nodiscard]] std::uint64_t checksum(std::string_view bytes, std::uint64_t seed) noexcept;

/// The checksum of many pieces, each counted with its length: [ab, c] is not [a, bc].
/// Thread safety: one thread at a time.
class Digest {
 public:
  Digest();
  ~Digest();

  void add(std::string_view piece) noexcept;
  [[nodiscard]] std::uint64_t value() const noexcept;

 private:
  struct Sum;
  std::unique_ptr<Sum> sum_;
};

}  // namespace latchkey::storage
