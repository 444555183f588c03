#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace latchkey::test_support {

/// First come, first served: the numbers at the ends of the nodes' names grow from one to the next.
/// Readers do not mind whose turn it is among themselves.
///
///     EXPECT_TRUE(in_order_of_arrival(section.entered()));
[[nodiscard]] testing::AssertionResult in_order_of_arrival(const std::vector<std::string>& nodes);

/// First come, first served at a semaphore of `size` permits, of which everybody takes one at a
/// time. `events` are those of a recursive watch on its path, from its first moment on, as
/// session_fixture.hpp's note() writes them.
///
///     EXPECT_TRUE(permits_in_order_of_arrival(events.all(), 2));
///
/// Who holds a permit may take its time before it makes a mark, while others come and go, so the
/// order of marks says nothing. The order on the server does: a lease is made by the head of the
/// queue in front and by nobody else, and not before the head before it has its permit. Who made a
/// lease is not known; but if it was not the head, then the head's own is the second lease in its
/// turn. A head that was killed stays the head until its session ends, so the dead are no
/// exception.
[[nodiscard]] testing::AssertionResult permits_in_order_of_arrival(
    const std::vector<std::string>& events, std::size_t size);

}  // namespace latchkey::test_support
