#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "latchkey/inspect.hpp"
#include "table.hpp"

/// What a queue looks like to people and to programs, as functions of values. `now_ms` is the wall
/// clock.
namespace latchkey::app {

/// "4s", "12min", "3h", "5d": how long ago, for people.
[[nodiscard]] std::string age_text(std::int64_t ms);

/// "db1 pid 4711 (backup)", or what a foreign client wrote into its node, or the node's name; its
/// session, if what it wrote was overwritten by a request to let go.
[[nodiscard]] std::string who_text(const QueueEntry& entry);

/// What for; of a person's lock also whose it is and when it ends, and whether it is to let go.
[[nodiscard]] std::string reason_text(const QueueEntry& entry);

/// Who and what for: "db1 pid 4711 (backup): nightly".
[[nodiscard]] std::string holder_text(const QueueEntry& entry);

/// "2 of 4 permits are held", of a semaphore whose size is known; otherwise empty.
[[nodiscard]] std::string permits_text(const Queue& lock);

/// Many locks, one to a row.
[[nodiscard]] Table locks_table(std::span<const Queue> locks, std::int64_t now_ms);

/// One lock, its entries in order.
[[nodiscard]] Table queue_table(const Queue& lock, std::int64_t now_ms);

/// One line without its end.
///
///     {"lock":"/locks/backup","exists":true,"held":true,"waiting":2,"entries":[...],"warnings":[]}
[[nodiscard]] std::string queue_json(const Queue& lock);

/// One lock in a line, for a log: "backup: held by db1 pid 4711 (backup): nightly; 2 wait".
[[nodiscard]] std::string queue_line(const Queue& lock);

/// Not a contender but the mark that `latchkey once` leaves when its command has run; a lock of
/// that name is none.
[[nodiscard]] bool is_done_mark(const QueueEntry& entry);
/// Contenders that wait.
[[nodiscard]] std::size_t waiting_count(const Queue& lock);
/// Nobody holds it and nobody waits for it.
[[nodiscard]] bool is_free(const Queue& lock);

}  // namespace latchkey::app
