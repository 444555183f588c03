#pragma once

#include <cstddef>
#include <string>

#include "latchkey/error.hpp"

namespace latchkey::queue {

/// Which directory level to create next when a lock directory is missing. The directory itself is
/// tried first: usually only it was removed. A missing parent sends it one level up, success one
/// level down again.
///
///     ParentMaker maker("/locks/a/b");
///     maker.path();       // "/locks/a/b"
///     maker.missing();    // its parent is missing: now "/locks/a"
///     maker.present();    // made: now "/locks/a/b" again
///
/// A reaper may remove a fresh empty level under our hands (H39). Then missing() answers
/// kPulledAway, and whoever drives this should back off before the next try.
///
/// Thread safety: a value.
class ParentMaker {
 public:
  enum class Next { kMake, kPulledAway, kAllThere, kNoRoot };

  explicit ParentMaker(std::string directory);

  /// The level to create now.
  [[nodiscard]] std::string path() const { return directory_.substr(0, end_); }
  /// The level was created, or somebody else did it.
  [[nodiscard]] Next present();
  /// The level could not be created because its parent does not exist.
  [[nodiscard]] Next missing();

 private:
  std::string directory_;
  std::size_t end_;  ///< Of the level in hand, within `directory_`.
  bool going_down_ = false;
};

}  // namespace latchkey::queue
