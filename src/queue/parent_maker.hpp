#pragma once

#include <cstddef>
#include <string>

#include "queue/messages.hpp"

namespace latchkey::queue {

/// Which directory level to create next when a lock directory is missing. The directory itself is
/// tried first: usually only it was removed. A missing parent sends it one level up, success one
/// level down again.
///
///     ParentMaker maker("/locks/a/b");
///     maker.begin();          // kMake: path() is "/locks/a/b"
///     maker.made(no_node);    // its parent is missing: now "/locks/a"
///     maker.made(ok);         // made: now "/locks/a/b" again
///
/// A reaper may remove a fresh empty level under our hands (H39), or the server may be in trouble:
/// then the answer is kMakeLater, and whoever drives this backs off before the next try.
///
/// Thread safety: a value.
class ParentMaker {
 public:
  enum class Next { kMake, kMakeLater, kAllThere, kRefused };

  /// An empty directory is the root.
  explicit ParentMaker(std::string directory);

  /// The directory is missing.
  [[nodiscard]] Next begin();
  /// What became of the create of the level in hand.
  [[nodiscard]] Next made(const Answer& answer);
  /// The directory is there, and was used.
  void end() { begun_ = false; }

  /// The level to create now.
  [[nodiscard]] std::string path() const { return directory_.substr(0, end_); }
  /// After kRefused: what was refused.
  [[nodiscard]] Refusal refusal() const;
  /// Between begin() and end().
  [[nodiscard]] bool has_begun() const { return begun_; }

 private:
  [[nodiscard]] Next present();
  [[nodiscard]] Next missing();

  std::string directory_;
  std::size_t end_;  ///< Of the level in hand, within `directory_`.
  bool begun_ = false;
  bool going_down_ = false;
  Code refused_with_ = Code::kNoNode;
};

}  // namespace latchkey::queue
