#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/function_ref.hpp"
#include "base/mutant.hpp"
#include "sim/judge.hpp"

namespace latchkey::sim {

/// A mistake, where to look for it, and the invariants that it violates. Caught by any other it
/// would show something else.
struct Quarry {
  base::Mutant mutant = base::Mutant::kNone;
  std::vector<Invariant> by;
  /// A directed schedule, for those that luck meets too rarely; and a seed at or soon after which
  /// it shows: what each seed draws changes with every message that is sent otherwise.
  std::optional<Violation> (*schedule)() = nullptr;
  std::uint64_t seed = 1;
  /// What a mistake does it usually does soon: plans are cut short, unless it takes a rare chance.
  bool is_rare = false;
};

/// One for each mistake, in their order.
[[nodiscard]] std::span<const Quarry> quarries();

#ifdef LATCHKEY_MUTANTS

/// A seed's plan, as it is played for that quarry.
[[nodiscard]] Plan hunting_plan(const Quarry& quarry, std::uint64_t seed);

struct Catch {
  std::uint64_t seed = 0;  ///< 0: by a directed schedule.
  Violation violation;
  bool is_expected = false;           ///< By one of its invariants.
  std::optional<Violation> innocent;  ///< The same schedule without the mistake shows this as well.
};

/// Makes the mistake and plays its schedule, or seeds for as long as `goes_on` says so; then plays
/// what has shown it once more without the mistake. Nothing if it is not seen.
[[nodiscard]] std::optional<Catch> hunt(const Quarry& quarry, std::uint64_t first_seed,
                                        base::FunctionRef<bool(std::uint64_t seed)> goes_on);

/// On one line, for people.
[[nodiscard]] std::string describe(const Catch& caught);

#endif

}  // namespace latchkey::sim
