#pragma once

#include <string_view>

#include "latchkey/error.hpp"

namespace latchkey::base {

/// What a code means to a person, and what to try: "no such node".
[[nodiscard]] std::string_view explain(Code code) noexcept;

}  // namespace latchkey::base
