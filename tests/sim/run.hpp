#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "sim/hazards.hpp"
#include "sim/judge.hpp"
#include "sim/plan.hpp"

namespace latchkey::sim {

/// What a run has shown.
struct Outcome {
  std::uint64_t seed = 0;
  std::uint64_t trace = 0;  ///< Equal for two runs of the same seed.
  std::uint64_t events = 0;
  std::uint64_t holds = 0;
  std::uint64_t stale_writes = 0;  ///< Refused by the fence.
  std::uint64_t twins = 0;
  std::array<std::uint64_t, testing::kFaults> faults{};
  std::array<std::uint64_t, kInvariants> checks{};
  Sightings sightings;
  std::optional<Violation> violation;
};

/// Plays a plan: a part with faults, then healing, then everybody has to get every lock, then
/// nothing may be left. Ends at the first violation.
///
///     const Outcome outcome = play(draw_plan(17));
///     if (outcome.violation) std::cerr << describe(outcome) << '\n';
[[nodiscard]] Outcome play(const Plan& plan);

/// For people: what was violated, when, and how to have it again.
[[nodiscard]] std::string describe(const Outcome& outcome);

}  // namespace latchkey::sim
