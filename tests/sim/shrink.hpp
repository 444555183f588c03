#pragma once

#include "sim/plan.hpp"
#include "sim/run.hpp"

namespace latchkey::sim {

/// The smallest plan found that still violates the same invariant: faults, locks, clients and time
/// are taken away one after the other, and stay away if it makes no difference.
[[nodiscard]] Plan shrink(Plan plan, Invariant invariant);

}  // namespace latchkey::sim
