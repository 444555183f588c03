#include "base/assert.hpp"

#include <cstdio>
#include <cstdlib>

namespace latchkey::base {

void assertion_failed(const char* condition, const char* file, int line) noexcept {
  std::fprintf(stderr, "latchkey: assertion failed: %s (%s:%d)\n", condition, file, line);
  std::abort();
}

void die_of_misuse(const char* sentence) noexcept {
  std::fprintf(stderr, "latchkey: %s\n", sentence);
  std::abort();
}

}  // namespace latchkey::base
