#pragma once

#include <optional>
#include <string_view>

#include "wire/jute.hpp"

namespace latchkey::tree {

/// A request's body. Bytes after it are ignored, as Apache does: a newer client may add fields. A
/// null string is an empty one, which is how kazoo writes those; only as a path, which always comes
/// first, it is not, for the empty path is the root's.
template <class Body>
[[nodiscard]] std::optional<Body> parse(std::string_view bytes) {
  Body body;
  if constexpr (requires { body.path; }) {
    if (bytes.starts_with("\xFF\xFF\xFF\xFF")) return std::nullopt;
  }
  wire::Reader reader(bytes);
  reader(body);
  if (!reader.ok()) return std::nullopt;
  return body;
}

}  // namespace latchkey::tree
