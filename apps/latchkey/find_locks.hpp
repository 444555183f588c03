#pragma once

#include <string>
#include <vector>

#include "latchkey/inspect.hpp"

namespace latchkey::app {

/// Every lock at or below `root`, sorted by path; those in use and those that only have a directory
/// left. A directory that only holds other directories is none. A picture of no single moment: one
/// lock is looked at after the other.
/// Errors: those of inspect(); a lock that goes while we look is left out.
[[nodiscard]] Result<std::vector<Queue>> find_locks(Session& session, const std::string& root,
                                                    Deadline deadline);

/// Leaves out of each lock what is a lock itself, or has one below it: a directory that somebody
/// holds or waits in, or a container, which only locks make and the server removes.
void leave_out_locks_within(std::vector<Queue>& locks);

/// Whether a node belongs to a session, and is not a directory of any kind.
[[nodiscard]] bool is_ephemeral(const QueueEntry& entry);

}  // namespace latchkey::app
