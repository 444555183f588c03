#include "sim/mutants.hpp"

#include <algorithm>
#include <array>

#include "sim/directed.hpp"
#include "sim/run.hpp"

namespace latchkey::sim {

std::span<const Quarry> quarries() {
  using base::Mutant;
  using enum Invariant;
  static const std::array<Quarry, base::kMutants - 1> kAll = {{
      {Mutant::kNeighbourLeft, {kServerOrder}, play_queue},
      {Mutant::kSearchWithoutSync, {kNoOrphan}, play_lost_create},
      {Mutant::kCreateAgain, {kNoOrphan, kAwake, kLiveness}, play_queue, 10},
      {Mutant::kReceiveTime, {kBelief}, play_lease_edges},
      {Mutant::kReadHeartbeat, {kBelief}, play_lease_edges},
      {Mutant::kStaleGrant, {kBelief}, play_queue},
      {Mutant::kWholeName, {kServerOrder}, nullptr, 2},
      {Mutant::kDeleteOnce, {kNoOrphan, kAwake}, play_queue},
      {Mutant::kCancelForgets, {kNoOrphan, kAwake}, play_queue},
      {Mutant::kWatchKept, {kNoWatch}, nullptr, 12},
      {Mutant::kNoRestore, {kWatches, kAwake}, play_queue},
      {Mutant::kLostEvent, {kWatches, kAwake}, play_queue},
      {Mutant::kTokenFromNumber, {kServerOrder, kTokens}, nullptr, 1},
      {Mutant::kSameToken, {kTokens}, nullptr, 51},
      {Mutant::kReaderOvertakes, {kServerOrder}, nullptr, 2},
      {Mutant::kOneTooMany, {kPermits}, nullptr, 10},
      {Mutant::kReplyEarly, {kDurable}, nullptr, 2},
      {Mutant::kSyncErrorIgnored, {kDurable, kReplay}, nullptr, 12, true},
      {Mutant::kSessionsForgotten, {kAwake, kLiveness, kNoOrphan}, nullptr, 6},
      {Mutant::kOldConnectionKept, {kWire, kServerOrder, kAwake}, nullptr, 41, true},
      {Mutant::kNoOwnerCheck, {kServerOrder}, play_stolen_guid},
      {Mutant::kNoTickDoubt, {kBelief}, play_lease_edges},
      {Mutant::kNoBeatDoubt, {kBelief}, play_lease_edges},
      {Mutant::kOwnTrip, {kBelief}, play_lease_edges},
      {Mutant::kNoDrift, {kBelief}, play_lease_edges},
      {Mutant::kDirtyReads, {kDurable}, nullptr, 3},
      {Mutant::kLateEvent, {kWire}, nullptr, 1},
      {Mutant::kStaleReplay, {kReplay}, nullptr, 7},
      {Mutant::kProofNewsLost, {kAwake}, play_queue, 5'093},
      {Mutant::kLastsTooStrict, {kAwake}, nullptr, 1},
      {Mutant::kLossUntold, {kBelief}, play_queue},
      {Mutant::kDeadlineIgnored, {kOneOutcome}, nullptr, 1},
      {Mutant::kNoDelay, {kDelay}, nullptr, 75},
      {Mutant::kGuardWithoutCheck, {kFence}, play_robbed_writer},
      {Mutant::kAnyFarewell, {kServerOrder}, nullptr, 18},
      {Mutant::kGapIgnored, {kServerOrder}, nullptr, 4},
      {Mutant::kLongerGrant, {kBelief}, nullptr, 121, true},
      {Mutant::kMissedInOrder, {kServerOrder}, nullptr, 3'052'990, true},
      {Mutant::kNoHandshakeDoubt, {kBelief}, nullptr, 701, true},
  }};
  return kAll;
}

#ifdef LATCHKEY_MUTANTS

Plan hunting_plan(const Quarry& quarry, std::uint64_t seed) {
  constexpr Duration kLength = std::chrono::seconds(5);
  Plan plan = draw_plan(seed);
  if (!quarry.is_rare) plan.length = std::min(plan.length, kLength);
  return plan;
}

namespace {

/// Makes a mistake for as long as it lives.
class Mistake {
 public:
  explicit Mistake(base::Mutant mutant) { base::mutant = mutant; }
  ~Mistake() { base::mutant = base::Mutant::kNone; }
  Mistake(const Mistake&) = delete;
  Mistake& operator=(const Mistake&) = delete;
};

}  // namespace

std::optional<Catch> hunt(const Quarry& quarry, std::uint64_t first_seed,
                          base::FunctionRef<bool(std::uint64_t seed)> goes_on) {
  Catch caught;
  const auto play_it = [&] {
    return quarry.schedule != nullptr ? quarry.schedule()
                                      : play(hunting_plan(quarry, caught.seed)).violation;
  };
  std::optional<Violation> seen;
  {
    const Mistake mistake(quarry.mutant);
    if (quarry.schedule != nullptr) seen = play_it();
    for (std::uint64_t seed = first_seed; quarry.schedule == nullptr && !seen && goes_on(seed);
         ++seed) {
      caught.seed = seed;
      // A simulated follower takes an answer without a record for a refusal, and stumbles.
      const bool stumbles = quarry.mutant == base::Mutant::kReplyEarly;
      if (stumbles && hunting_plan(quarry, seed).world.followers > 0) continue;
      seen = play_it();
    }
  }
  if (!seen) return std::nullopt;
  caught.violation = *seen;
  caught.is_expected = std::ranges::find(quarry.by, seen->invariant) != quarry.by.end();
  caught.innocent = play_it();
  return caught;
}

std::string describe(const Catch& caught) {
  std::string text =
      caught.seed == 0 ? "by a directed schedule" : "by seed " + std::to_string(caught.seed);
  text += ": " + std::string(name(caught.violation.invariant)) + ": " + caught.violation.what;
  if (!caught.is_expected) text += " (NOT the invariant that it violates)";
  if (caught.innocent) text += " (and WITHOUT the mistake: " + caught.innocent->what + ")";
  return text;
}

#endif

}  // namespace latchkey::sim
