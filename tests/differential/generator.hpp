#pragma once

#include <cstddef>
#include <cstdint>

#include "differential/step.hpp"

namespace latchkey::differential {

/// A random script, the same for the same seed. The names are few, so that steps meet the same
/// nodes; most steps succeed, because the generator keeps a rough picture of the tree while it
/// writes. Dropping any of the steps leaves a script that can be played too.
///
/// It does not write what known_differences() says it does not.
[[nodiscard]] Script make_script(std::uint64_t seed, std::size_t length);

}  // namespace latchkey::differential
