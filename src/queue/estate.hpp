#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "queue/node_name.hpp"

namespace latchkey::queue {

/// What a holder leaves to the next entry of its session, if that one is made in the very
/// transaction that deletes its own: what its last list showed. A loop of lock and unlock then
/// needs no list on arrival, and one that is alone no list at all.
///
/// Why that is sound, for an entry that the transaction has given the number n, and a list that
/// showed the holder's entry and nothing later than `last`:
/// - It is the same directory, for the holder's entry was in it from the list to the transaction,
///   and a directory cannot be made anew around an entry (G6). So n is larger than `last`.
/// - Whoever is ahead of n and has a number up to `last` was there when the list was taken: numbers
///   are given in order (P2). It is in `behind`, or ahead of the holder, and of those nobody was
///   left. (A writer that has become a reader has a new name and an old number, but the writer is
///   in `behind`, and where one is only a list tells when it is gone: Admission::may_downgrade.)
/// - Whoever is ahead of n and has a larger number than `last` came in between: nobody, if n is
///   `last` + 1. Otherwise some that are ahead are not known. That is enough to wait for one that
///   is: when it leaves a list shows them all.
/// - The transaction's answer says that the entry was there when all that was true, which is what a
///   list in the same flush would have said (H05).
///
/// The holder's list may be one that it had of a companion, cut at its own number: then `last` is
/// that number, and only the next one leaves no gap. Two may come to wait for one and the same, an
/// heir that does not know who came in between and that one: a deletion then wakes both, once.
///
/// If the answer is lost, or the delete left without the entry, nothing of that is proven: list.
struct Estate {
  std::string entry;                ///< The holder's own.
  std::int32_t last = 0;            ///< The largest number in the list.
  std::vector<std::string> behind;  ///< Who stood behind it there, the last one last.
};

/// More than this are not kept for an heir.
inline constexpr std::size_t kMostBehind = 128;

/// What an heir may take for a list: itself and whoever it knows to have come before it.
struct Inherited {
  std::vector<std::string> children;
  bool whole = false;  ///< There is nobody else ahead.
};
[[nodiscard]] Inherited inherit(Estate estate, const Place& heir);

}  // namespace latchkey::queue
