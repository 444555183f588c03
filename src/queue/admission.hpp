#pragma once

#include <span>
#include <string>
#include <vector>

#include "queue/node_name.hpp"

namespace latchkey::queue {

/// The answer to "may I hold now?".
struct Admission {
  /// Everyone who stands in the way, by name, the farthest first. Empty: hold.
  std::vector<std::string> ahead;
  /// Another place carries our number although the server gives each number once: the directory's
  /// counter has ended (H35). Never a tie to break, except that a `__READ__` with the number of a
  /// `__WRIT__` is a Curator downgrade.
  bool broken = false;
  /// One of `ahead` is a `__WRIT__`: when it goes, a `__READ__` with its number may have taken its
  /// place (H44). Then "everyone ahead is gone" does not follow from their deletions, and only a
  /// new list tells (the exception to P4).
  bool may_downgrade = false;

  [[nodiscard]] bool holds() const { return ahead.empty() && !broken; }
};

/// May `self` hold the lock now? If not, `ahead` names everyone who excludes it: to watch the last
/// of them is enough, so that a release wakes the next in line and not the whole queue. Order is by
/// number alone. Places of another lock name are not in each other's way.
[[nodiscard]] Admission admit(std::span<const Place> queue, const Place& self);

}  // namespace latchkey::queue
