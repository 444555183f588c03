#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "scenario/mini_world.hpp"

namespace latchkey::mini {

/// How often each kind of trouble may strike along one path.
struct Troubles {
  int cuts = 0;
  int cancels = 0;
  int lease_ends = 0;
  int crashes = 0;
  int deletions = 0;  ///< By an operator's hand.
  int touches = 0;
  int removals = 0;  ///< Of the empty directory.
  int heartbeats = 0;
  int downgrades = 0;
  int writes = 0;  ///< Of a user, into the directory's data.
};

/// Goes through every order in which the messages, callers and troubles of a world can happen,
/// depth first, each state once.
///
///     Explorer explorer(world, {.cuts = 1, .cancels = 1});
///     explorer.run();
///     EXPECT_EQ(explorer.failure(), "");
///
/// Everyone starts whenever it likes, and whoever holds releases sooner or later.
class Explorer {
 public:
  Explorer(World world, Troubles troubles) : world_(std::move(world)), troubles_(troubles) {}

  void run(std::size_t most_states = 3'000'000);

  /// Empty, or the first broken promise and the road to it.
  [[nodiscard]] const std::string& failure() const { return failure_; }
  [[nodiscard]] std::size_t states() const { return states_; }
  [[nodiscard]] bool complete() const { return complete_; }

 private:
  const World world_;
  Troubles troubles_;
  std::string failure_;
  std::size_t states_ = 0;
  bool complete_ = true;
};

/// Lets everything arrive that is on its way. Nothing goes wrong meanwhile.
void settle(World& world);

}  // namespace latchkey::mini
