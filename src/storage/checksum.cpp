#include "storage/checksum.hpp"

// The header holds the whole of it, so the installed library needs no further one at run time.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "storage/number.hpp"

namespace latchkey::storage {
namespace {

std::uint64_t marked(std::uint64_t sum) { return sum | 0x8100000000000000U; }

}  // namespace

struct Digest::Sum {
  XXH3_state_t state;
};

std::uint64_t checksum(std::string_view bytes, std::uint64_t seed) noexcept {
  return marked(XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed));
}

Digest::Digest() : sum_(std::make_unique<Sum>()) { XXH3_64bits_reset(&sum_->state); }

Digest::~Digest() = default;

void Digest::add(std::string_view piece) noexcept {
  char length[8];
  put_number<std::uint64_t>(length, piece.size());
  XXH3_64bits_update(&sum_->state, length, sizeof length);
  XXH3_64bits_update(&sum_->state, piece.data(), piece.size());
}

std::uint64_t Digest::value() const noexcept { return marked(XXH3_64bits_digest(&sum_->state)); }

}  // namespace latchkey::storage
