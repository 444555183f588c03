#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "latchkey/result.hpp"
#include "storage/file_journal.hpp"
#include "storage/files.hpp"
#include "storage/journal.hpp"
#include "storage/reader.hpp"
#include "storage/segment.hpp"
#include "storage/snapshot.hpp"

namespace latchkey::storage {

/// A segment that nothing will be appended to.
struct Finished {
  std::string name;
  std::uint64_t bytes = 0;  ///< Up to the end of its last batch.
};

/// What a folder holds, in the order of the journal.
struct Recovery {
  Recovered recovered;
  std::optional<Snapshot> snapshot;
  std::vector<Finished> finished;
  std::optional<Segment> newest;  ///< Nothing: the folder has none yet.
  Place place;
};

/// Feeds everything that is stored to `state`, cuts a torn tail off, removes what an interrupted
/// fold left behind, and makes all that it found durable: a batch that a killed process wrote and
/// did not sync is as good as any from now on. A state that is cancelled meanwhile ends it with
/// kClosed, and nothing is changed.
[[nodiscard]] Result<Recovery> recover(Files& files, State& state, OnDamage on_damage);

/// An error if the folder holds what is not ours, and no journal: somebody took it for another.
[[nodiscard]] Result<void> check_folder(Files& files);

enum class Position { kNewest, kBeforeOthers };

/// What one segment held.
struct Replayed {
  FileHeader header;
  Place place;               ///< After its last batch.
  std::uint64_t offset = 0;  ///< Likewise.
  std::uint64_t last_batch_bytes = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t entries = 0;
  std::uint64_t torn_bytes = 0;
  bool closed = false;          ///< The last batch is an end mark.
  std::optional<Error> damage;  ///< What follows is damaged; offset 0: so is the header.
};

/// Feeds the entries of a segment, which has to go on from `after`, to `state`.
/// Errors: kDamaged with a message that says what to do, kStorage, those of the state.
[[nodiscard]] Result<Replayed> replay_segment(Files& files, const std::string& name,
                                              const Place& after, Position position, State& state);

/// Removes the snapshots and segments that the newest snapshot has made superfluous.
[[nodiscard]] Result<void> remove_superfluous(Files& files, const Snapshot& newest);

}  // namespace latchkey::storage
