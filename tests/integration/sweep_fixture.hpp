#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "integration/mutex_fixture.hpp"

namespace latchkey::test_support {

/// The fault sweep: the connection breaks at the 1st, 2nd, ... nth message of each kind on the way
/// through everything a lock knows, before and after the request and before and after the reply,
/// until a run is over before the fault strikes. Whatever breaks, the same must be true in the end.
///
/// Nothing here takes long, so that the sessions' time-out never comes to anybody's help.
class SweepTest : public MutexTest {
 protected:
  /// One run, at a lock of its own, by the sessions `first` and `second`.
  virtual void go_through(const std::string& path) = 0;

  /// Sweeps one kind of message. `before` makes the message happen, where it needs a fault itself.
  void sweep(
      wire::Op op, const std::function<void()>& before = [] {});

  /// The first who has to wait at `path` watches its own node and the one ahead. Where a fault is
  /// placed by the number of these requests, nobody else may ask for a watch before.
  [[nodiscard]] testing::AssertionResult is_in_line(const std::string& path);

  // Steps of a run. They end the test if they fail, so call them with ASSERT_NO_FATAL_FAILURE.

  void enter(Waiter& waiter);
  /// Lets go, and the next one holds.
  void hand_on(Waiter& holder, Waiter& next);
  void let_go(Waiter& holder);
  void give_up(Waiter& waiter);

  FaultProxy proxy{service().follower()};
  Session first = open_session(proxy.connect_string(), quick(60s));
  Session second = open_session(proxy.connect_string(), quick(60s));

 private:
  void wait_for_answers();

  const std::int64_t first_id_ = first.id();
  const std::int64_t second_id_ = second.id();
  Section section_;
};

}  // namespace latchkey::test_support
