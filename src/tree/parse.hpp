#pragma once

#include <optional>
#include <string_view>

#include "wire/jute.hpp"

namespace latchkey::tree {

/// A request's body. Bytes after it are ignored, as Apache does: a newer client may add fields.
template <class Body>
[[nodiscard]] std::optional<Body> parse(std::string_view bytes) {
  Body body;
  wire::Reader reader(bytes);
  reader(body);
  if (!reader.ok()) return std::nullopt;
  return body;
}

}  // namespace latchkey::tree
