#pragma once

#include <cstddef>

/// What takes how long, about, in the measure of Tree::work(): a few nanoseconds.
namespace latchkey::tree {

/// To find a name, a path or a connection somewhere in memory; to copy and store an entry of a
/// permission list.
inline constexpr std::size_t kLookWork = 64;
/// To compare an entry of a permission list with an identity, or to take it into an index.
inline constexpr std::size_t kComparisonWork = 32;
/// To tell somebody who watches of a change: to find it, to see whether it may hear of it, and to
/// write it down. At its longest, for planning.
inline constexpr std::size_t kTellingWork = 128;

}  // namespace latchkey::tree
