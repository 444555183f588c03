#pragma once

namespace latchkey::base {

[[noreturn]] void assertion_failed(const char* condition, const char* file, int line) noexcept;
[[noreturn]] void die_of_misuse(const char* sentence) noexcept;

}  // namespace latchkey::base

/// A programmer's error, checked in every build: one condition each.
#define LATCHKEY_ASSERT(condition)    \
  ((condition) ? static_cast<void>(0) \
               : ::latchkey::base::assertion_failed(#condition, __FILE__, __LINE__))

/// The same for what a user of the library has done wrong and no Result can tell: ends the process
/// with a sentence that names the call.
#define LATCHKEY_DEMAND(condition, sentence) \
  ((condition) ? static_cast<void>(0) : ::latchkey::base::die_of_misuse(sentence))
