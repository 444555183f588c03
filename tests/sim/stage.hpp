#pragma once

#include "sim/judge.hpp"
#include "sim/lookout.hpp"
#include "sim/plan.hpp"
#include "testing/world.hpp"

namespace latchkey::sim {

/// Where a plan is played, and who looks on.
struct Stage {
  testing::World& world;
  Judge& judge;
  Lookout& lookout;
  const Plan& plan;
};

}  // namespace latchkey::sim
