#pragma once

namespace latchkey::base {

[[noreturn]] void assertion_failed(const char* condition, const char* file, int line) noexcept;

}  // namespace latchkey::base

/// A programmer's error, checked in every build: one condition each.
#define LATCHKEY_ASSERT(condition)    \
  ((condition) ? static_cast<void>(0) \
               : ::latchkey::base::assertion_failed(#condition, __FILE__, __LINE__))
