#pragma once

#include <optional>
#include <string_view>

#include "wire/jute.hpp"

namespace latchkey::tree {

/// What a path is that is not there: with most requests a mistake, for the empty path is the
/// root's.
enum class NullPath { kIsRefused, kIsEmpty };

/// A request's body. Bytes after it are ignored, as Apache does: a newer client may add fields. A
/// null string is an empty one, which is how kazoo writes those; for a path, which always comes
/// first, see NullPath.
template <class Body, NullPath null_path = NullPath::kIsRefused>
[[nodiscard]] std::optional<Body> parse(std::string_view bytes) {
  Body body;
  if constexpr (null_path == NullPath::kIsRefused && requires { body.path; }) {
    if (bytes.starts_with("\xFF\xFF\xFF\xFF")) return std::nullopt;
  }
  wire::Reader reader(bytes);
  reader(body);
  if (!reader.ok()) return std::nullopt;
  return body;
}

}  // namespace latchkey::tree
