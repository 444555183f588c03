#pragma once

#include "latchkey/error.hpp"

namespace latchkey::queue {

/// How the create of a create-and-list pair ended.
enum class CreateOutcome {
  kUnanswered,
  kOk,
  kNoNode,
  kNodeExists,
  kRefused,
  kRolledBack,  ///< Undone, because another part of the same transaction failed.
  kAmbiguous,
};

/// How its list ended; the first two are said of a list that was answered OK.
enum class ListOutcome { kShowsOwn, kLacksOwn, kNoNode, kRefused, kAmbiguous, kUnanswered };

/// What follows from the two.
enum class AfterPair {
  kWait,          ///< Not enough is known yet.
  kDecide,        ///< Created, and listed after it: the list decides (P1, P6).
  kLost,          ///< Created and gone again: never a grant (H05).
  kListAgain,     ///< The node is known, the queue is not. No search needed.
  kReportList,    ///< The node is known and has to go; the list is refused for good.
  kMakeParents,   ///< The directory is missing.
  kEnterAgain,    ///< Nothing was created, and nothing speaks against asking again.
  kCounterEnded,  ///< The server gave a number twice (H35).
  kReportCreate,  ///< Not created.
  kSearch,        ///< Perhaps created: look for it (P7).
};

/// The table of H71. What the list says counts only behind a create that was answered OK: behind a
/// refused one it may stem from a directory that was made anew in between, behind an ambiguous one
/// it ran on another connection than the create did, perhaps before it.
[[nodiscard]] AfterPair after_pair(CreateOutcome create, ListOutcome list);

}  // namespace latchkey::queue
