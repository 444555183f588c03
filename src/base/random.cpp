#include "base/random.hpp"

#include <sys/random.h>

#include <cerrno>

#include "base/assert.hpp"
#include "base/surroundings.hpp"

namespace latchkey::base {

std::uint64_t kernel_random() {
  if (surroundings != nullptr) return surroundings->random();
  std::uint64_t bits = 0;
  ssize_t got = 0;
  do {
    got = ::getrandom(&bits, sizeof bits, 0);
  } while (got == -1 && errno == EINTR);
  LATCHKEY_ASSERT(got == static_cast<ssize_t>(sizeof bits));
  return bits;
}

}  // namespace latchkey::base
