#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "history.hpp"

namespace latchkey::faults {

/// Whether later holders of a lock have larger tokens. Those of a semaphore are not ordered.
enum class Order { kByToken, kNone };

/// A lock is held within its capacity at any moment. A want says its weight: who excludes everybody
/// weighs the whole capacity, a reader one of very many, a permit one of few.
struct LockRule {
  std::int64_t capacity = 1;
  Order order = Order::kByToken;
};

/// What the histories are held against.
struct Rules {
  std::map<std::string, LockRule> locks;
  /// Names of processes, "w0" and so on, each of which has to have every lock once with the text
  /// kSettle in its want: after the last fault everybody gets everything again.
  std::vector<std::string> workers;
  /// What stands in the ledger in the end.
  std::optional<std::int64_t> ledger;
};

inline constexpr std::string_view kSettle = "settle";

/// The text in the want of a writer that becomes a reader. It keeps its place and its token: the
/// one exception to "no token is granted twice", and in the order it may equal the one before.
inline constexpr std::string_view kDowngrade = "downgrade";

/// A broken promise, with the lines that show it.
struct Violation {
  std::string rule;
  std::string what;
  std::vector<Event> evidence;
};

/// Decides whether the recorded histories of all clients and of the fenced store keep the promises:
///
/// - *exclusion*: the weights of those who can prove their belief at one moment fit the capacity;
/// - *order*: of two holds that exclude each other the later has the larger token, which is also
///   the order of arrival, since a token is the number of the transaction that made the entry;
/// - *token*: no token is granted twice;
/// - *outcome*: every want has one outcome, unless the process was killed in between;
/// - *loss*: who was told that its hold is lost is never told that it is held again;
/// - *fence*: the store never took an older token after a newer one, and refused nobody who held;
/// - *ledger*: numbers acknowledged under guard grow with the tokens, and the last is still there;
/// - *liveness*: everybody was granted every lock once more after the faults.
///
/// Belief is proven by lines kHolds only: the time was read before the lease was asked, and a loss
/// is final, so the hold was believed from the first of them to the last. A process that is stopped
/// or killed anywhere proves less, never too much; no assumption about pauses is needed.
///
///     for (const Violation& violation : check(read_histories(folder), rules)) std::cerr <<
///     violation;
///
/// `events` are ordered by time. Thread safety: a function of its arguments.
[[nodiscard]] std::vector<Violation> check(std::span<const Event> events, const Rules& rules);

/// "exclusion: mutex is held twice ..." and the lines below it.
std::ostream& operator<<(std::ostream& out, const Violation& violation);

}  // namespace latchkey::faults
