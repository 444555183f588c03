#pragma once

#include <string>

namespace latchkey::app {

/// How often somebody was woken who waited, with each way to watch.
struct WakeUps {
  bool everyone_held = false;
  int targeted = 0;
  int directory = 0;

  [[nodiscard]] bool fewer() const { return targeted < directory; }
};

/// The second act of the demonstration: readers and writers queue for a read-write lock, once with
/// a watch on the one entry that is in the way and once with a watch on the whole directory, side
/// by side, as processes of their own.
[[nodiscard]] WakeUps show_watching(const std::string& connect);

}  // namespace latchkey::app
