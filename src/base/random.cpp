#include "base/random.hpp"

#include <sys/random.h>

#include <cerrno>

#include "base/assert.hpp"
#include "base/surroundings.hpp"

namespace latchkey::base {

std::uint64_t kernel_random() {
  std::uint64_t word = 0;
  kernel_random({&word, 1});
  return word;
}

void kernel_random(std::span<std::uint64_t> words) {
  if (surroundings != nullptr) {
    for (std::uint64_t& word : words) word = surroundings->random();
    return;
  }
  ssize_t got = 0;
  do {
    got = ::getrandom(words.data(), words.size_bytes(), 0);
  } while (got == -1 && errno == EINTR);
  LATCHKEY_ASSERT(got == static_cast<ssize_t>(words.size_bytes()));
}

}  // namespace latchkey::base
