#pragma once

#include <string>

namespace latchkey::app {

/// The second act of the demonstration: readers and writers queue for a read-write lock, once with
/// a watch on the one entry that is in the way and once with a watch on the whole directory, side
/// by side, as processes of their own. True if everyone held the lock and the first way woke fewer.
[[nodiscard]] bool show_watching(const std::string& connect);

}  // namespace latchkey::app
