#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace latchkey::queue {

/// What a place in the queue asks for.
enum class Share : std::uint8_t { kExclusive, kShared };

/// Whose naming a queue entry follows. docs/interop.md says which of them see each other.
enum class Dialect : std::uint8_t {
  kCurator,  ///< `_c_<uuid>-lock-N`, `-__READ__N`, `-__WRIT__N`, `-latch-N`, `-lease-N`: ours too.
  kNamed,    ///< `_c_<uuid>-<name>_lock_N`: several of our locks in one directory.
  kKazoo,    ///< `<hex>__lock__N`, `<hex>__rlock__N`, and with our subclass `<hex>-lock-N`.
  kGo,       ///< `_c_<hex, no dashes>-lock-N`.
  kZooKeeper,  ///< `x-<session>-N`, `n_N`, `n-N`: the recipes that come with ZooKeeper.
  kPegasus,    ///< `LOCKNODEN`.
  kRust,       ///< `<uuid>_N`, `latch-<id>-N`: the crate zookeeper-async.
  kTutorial,   ///< `lock-N`, `seq-N`, `<any>-lock-N`, `<name>_lock_N`, `<host>-R-N`, `<host>-W-N`.
  kExtra,      ///< One of the caller's extra tags.
};

/// One contender's node, as its name tells it.
struct Place {
  std::string name;         ///< The child's name, as listed.
  std::int32_t number = 0;  ///< The server's sequence number: the only thing that orders places.
  Share share = Share::kExclusive;
  Dialect dialect = Dialect::kCurator;
  std::string lock_name;  ///< Set for `<name>_lock_N`; empty otherwise.
  /// `__READ__` or `__WRIT__`: a Curator writer may turn into a reader that keeps its number (H44),
  /// so here, and only here, two places may carry one number and a gone writer may still read.
  bool read_write = false;

  /// Our kind only: the 36 characters after `_c_`; empty for the others. Part of `name`.
  [[nodiscard]] std::string_view guid() const;

  friend bool operator==(const Place&, const Place&) = default;
};

/// Reads a child's name in any dialect we know; nothing for a name that is no contender's.
/// The number is read only after a known tag: a bare `-?\d{10}$` would take the hyphen of
/// `-lock-0000000005` for a minus sign. It must be exactly what a server prints for a 32-bit
/// counter (`%010d`): ten characters, eleven from -1000000000 down.
///
/// Where in doubt a name counts: `<any>-lock-N`, `<any>__lock__N` are contenders whatever stands
/// before the tag, because Curator and kazoo count them too. Wrongly waiting is an annoyance,
/// wrongly entering is a double hold. Mesos (`<label>_N`, `N`) is no lock and is not counted.
///
/// `extra_tags` are further texts that may stand right before the number, read as exclusive.
[[nodiscard]] std::optional<Place> parse_place(std::string_view child,
                                               const std::vector<std::string>& extra_tags = {});

/// What our own node is called before the server adds its number.
///
///     node_prefix("e2b7…", Tag::kLock)          // "_c_e2b7…-lock-"
///     node_prefix("e2b7…", Tag::kLock, "jobs")  // "_c_e2b7…-jobs_lock_"
///
/// `lock_name` must have passed is_lock_name(), or be empty; a named lock is always exclusive.
enum class Tag : std::uint8_t { kLock, kRead, kWrite, kLatch, kLease };
[[nodiscard]] std::string node_prefix(std::string_view guid, Tag tag,
                                      std::string_view lock_name = {});
/// Does the name begin with that?
[[nodiscard]] bool has_node_prefix(std::string_view child, std::string_view guid, Tag tag,
                                   std::string_view lock_name = {});

/// Several locks may share one directory, each with a name. A name must not be empty, hold a `/` or
/// the text `_lock_`, which would make the node's name ambiguous, nor control characters.
[[nodiscard]] bool is_lock_name(std::string_view name);

/// Is this the entry of a candidate of an election, ours or Curator's? Its data is the candidate's
/// id, and nothing else may stand there.
[[nodiscard]] bool is_candidate(std::string_view child);

/// The children of a semaphore's path: the queue in front, and the permits. Where there are permits
/// there is `leases`; `locks` may be gone while nobody queues, and says nothing by itself.
inline constexpr std::string_view kLocks = "locks";
inline constexpr std::string_view kLeases = "leases";

/// 128 random bits as `xxxxxxxx-xxxx-4xxx-yxxx-xxxxxxxxxxxx`.
[[nodiscard]] std::string format_guid(std::uint64_t high, std::uint64_t low);

}  // namespace latchkey::queue
