#pragma once

#include <cstdint>
#include <string>

#include "latchkey/result.hpp"
#include "storage/files.hpp"
#include "storage/format.hpp"
#include "storage/journal.hpp"

namespace latchkey::storage {

/// A whole state in one file, in the batches of the journal: items, then an end with their number
/// and digest (H79).
struct Snapshot {
  std::string name;
  Place covers;  ///< Everything up to here is in it.
  std::uint64_t bytes = 0;
  std::uint64_t items = 0;
};

/// Feeds a snapshot to an empty state. Errors: kDamaged, kStorage, those of the state.
[[nodiscard]] Result<Snapshot> load_snapshot(Files& files, const std::string& name, State& state);

/// Saves a state to a new file, reads it back, and only then gives it its name; it is durable when
/// this returns. After an error there is no new snapshot, or there is and it is whole.
[[nodiscard]] Result<Snapshot> write_snapshot(Files& files, const State& state,
                                              const Place& covers);

}  // namespace latchkey::storage
