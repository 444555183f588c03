#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "latchkey/inspect.hpp"
#include "latchkey/node.hpp"

/// What a lock's directory tells people, from what was read of it. Nothing is decided by it.
namespace latchkey::queue {

/// A node at or below a lock's directory, as it was read.
struct Child {
  std::string node;          ///< Its path below the directory: a name, or "leases/" and a name.
  std::optional<Stat> stat;  ///< Nothing: it may not be looked at.
  std::string data;          ///< Empty if it may not be read.
};

/// The queue these children form: who holds and who waits by admit(), for each lock name apart.
/// `mark` is the data of the directory itself, if it is known: whoever is first in line under a
/// lock delay waits until that names it.
[[nodiscard]] Queue picture(std::string directory, std::vector<Child> children,
                            const std::optional<std::string>& mark = {});

/// Do these children make the layout of a semaphore, `locks` and `leases` below its path?
[[nodiscard]] bool is_semaphore(std::span<const std::string> children);

/// A semaphore's queue: whoever has leases holds, unless they are the newest and wait for room;
/// whoever queues in front waits. `others` are the remaining children of the semaphore's path,
/// `mark` is its data, if that is known: the size.
[[nodiscard]] Queue semaphore_picture(std::string path, std::vector<Child> leases,
                                      std::vector<Child> front, std::vector<Child> others,
                                      const std::optional<std::string>& mark = {});

/// The children that hold their lock alone: one at most for each lock name.
[[nodiscard]] std::vector<std::string> sole_holders(std::span<const std::string> children);

/// Who holds an election's directory: the first in line of all it has in it, if the numbers are
/// sound.
[[nodiscard]] std::optional<std::string> first_in_line(std::span<const std::string> children);

}  // namespace latchkey::queue
