#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace latchkey::queue {

/// What a holder may write into its directory's data in the very transaction that deletes its
/// entry: who it was, by the transaction that made the entry.
///
///     left 4294967321
///
/// Whoever stood right behind it reads that instead of a list, and knows that nobody is ahead any
/// more: so a hand-over takes the same few bytes however deep the queue is (P9).
///
/// Why that is sound, for a waiter that knew `czxid` of its neighbour and reads `left czxid`:
/// - Only that neighbour writes its czxid, only as the holder, and only if its entry goes in the
///   same transaction. A holder is first and stays so (P2). Nobody stood between the two and nobody
///   can come to (P2). So when it left the waiter was first, and it still is if it is still there,
///   which is another question (H05): a watch on its own entry answers that.
/// - No server has to be up to date. One that lags shows an older state, which names somebody else
///   or nobody; so does a neighbour that crashed, gave up, was deleted by another hand or is
///   another client's; so does whatever was written since. All of that proves nothing: list. On the
///   connection that told of the deletion the answer is never older than that (G4).
/// - The directory cannot be made anew under the waiter's entry (G6). Data that came from
///   elsewhere, from a backup say, was written before the neighbour's entry was made: mzxid tells.
/// - The holder counts entries of its own session whose holds have ended as gone while their
///   deletes are on the way; to others they are not. So nobody says farewell before those are
///   answered (Machine::owe_delete).
///
/// What is not promised: that it is there. Whatever else the data may be, a user's or a lock
/// delay's, is never written over: only who has seen it empty, or with a farewell in it, writes,
/// and only if nobody has written since.
struct Farewell {
  std::string data;
  std::int32_t version = 0;  ///< Of the data that it replaces.
};

/// With as many left ahead a list is long enough, about two kilobytes, to look for a farewell
/// first. With fewer the longer transaction, and the second round trip if there is none, weigh
/// more.
inline constexpr std::size_t kDeep = 32;

[[nodiscard]] std::string format_farewell(std::int64_t czxid);
/// Whose it is; nothing for anything but what format_farewell() writes.
[[nodiscard]] std::optional<std::int64_t> parse_farewell(std::string_view data);
/// May a farewell be written over this? Over nothing, and over an older one.
[[nodiscard]] bool makes_room(std::string_view data);

}  // namespace latchkey::queue
