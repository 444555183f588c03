#pragma once

#include <chrono>
#include <utility>

#include "latchkey/deadline.hpp"

namespace latchkey::test_support {

/// A few milliseconds off the processor between two looks at a condition.
void pause_between_looks();

/// Looks at `predicate` every few milliseconds until it holds or the deadline passes, and says
/// which. The last look comes after the deadline, so a slow machine never fails by a hair.
///
///     ASSERT_TRUE(eventually([&] { return session.state() == State::kConnected; }));
template <class Predicate>
[[nodiscard]] bool eventually(Predicate&& predicate,
                              Deadline deadline = deadline_in(std::chrono::seconds(60))) {
  while (true) {
    const bool last = deadline.has_passed(BootClock::now());
    if (predicate()) return true;
    if (last) return false;
    pause_between_looks();
  }
}

}  // namespace latchkey::test_support
