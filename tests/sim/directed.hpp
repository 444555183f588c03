#pragma once

#include <optional>

#include "sim/judge.hpp"

namespace latchkey::sim {

/// Schedules that luck alone would not bring about. Each says what went wrong, if anything did.

/// A create is lost on its way, and a stranger makes a node with our guid before we look for ours
/// (H04). Luck does not guess guids.
[[nodiscard]] std::optional<Violation> play_stolen_guid();

/// The answer to a create is lost, and its session attaches again where the node is not known yet
/// (H02): there has to be one node all the same.
[[nodiscard]] std::optional<Violation> play_lost_create();

/// Another hand removes a holder's entry, and it writes under guard before it hears of that, when
/// the next one has written (H93).
[[nodiscard]] std::optional<Violation> play_robbed_writer();

/// Waiters of one mutex leave, are cut off and lose answers, one after the other in every place
/// where a classic mistake of a queue shows (H01, H06, H12, H21, H27, H91), or whose lease
/// ends (H09).
[[nodiscard]] std::optional<Violation> play_queue();

/// The lease at its edges: a follower that tells its leader of a holder as late as can be, and is
/// cut off right after a proof, with and without drift, pauses and requests that are held up.
/// Nothing if no two believe at the same time, otherwise what the judge says.
[[nodiscard]] std::optional<Violation> play_lease_edges();

}  // namespace latchkey::sim
