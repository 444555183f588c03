#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace latchkey::app {

struct Character {
  std::uint32_t code = 0;
  std::size_t size = 0;  ///< In bytes; 0: these are no UTF-8.
};

/// The first character of a text that is not empty. Neither overlong forms nor surrogates count.
///
///     first_character("\xC3\xA4x");  // {0xE4, 2}
[[nodiscard]] Character first_character(std::string_view text);

}  // namespace latchkey::app
