#pragma once

#include <cstring>
#include <string_view>

namespace latchkey::base {

/// Where the last '/' of `path` is; npos if it has none. As rfind(), which looks at one character
/// at a time where this looks at a register full: a write asks it of its path a dozen times.
[[nodiscard]] inline std::size_t last_slash(std::string_view path) noexcept {
  const void* found = path.empty() ? nullptr : ::memrchr(path.data(), '/', path.size());
  if (found == nullptr) return std::string_view::npos;
  return static_cast<std::size_t>(static_cast<const char*>(found) - path.data());
}

}  // namespace latchkey::base
