#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

/// How whoever looks at a queue tells a contender that waits out a lock delay from one that holds.
namespace latchkey::queue {

/// A contender under a lock delay says so behind whatever else its node's data says. It holds once
/// the directory's mark names it (lock_delay.hpp), and not as soon as it is first in line.
///
///     node-7
///     lock_delay=5000
///
/// Without the note the mark means nothing: it may be an old one, of a lock that is now used
/// without a delay. No delay, no note.
[[nodiscard]] std::string with_delay_note(std::string data, std::chrono::milliseconds delay);
[[nodiscard]] bool has_delay_note(std::string_view data);
/// What the contender said besides.
[[nodiscard]] std::string_view without_delay_note(std::string_view data);

/// Does a contender hold that is first in line, made by the transaction `czxid` and says `data`,
/// where the directory's own data is `mark`?
[[nodiscard]] bool holds_if_first(std::string_view data, std::int64_t czxid, std::string_view mark);

}  // namespace latchkey::queue
