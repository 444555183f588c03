#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/function_ref.hpp"
#include "latchkey/result.hpp"

/// Where the server's decisions become durable. This room knows nothing of trees and sessions: to
/// it an entry is a zxid and some bytes, a snapshot a list of items.
namespace latchkey::storage {

/// One decision as it stands in the journal. zxids grow from entry to entry, with gaps.
struct Entry {
  std::int64_t zxid = 0;
  std::string_view bytes;
};

/// State that can be rebuilt from what is stored, and can be written out in a shorter form. The
/// server's tree is one; storage feeds it at start-up, and feeds a second, empty one to fold old
/// entries into a snapshot, so that every snapshot is made of what the disk really holds.
class State {
 public:
  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  virtual ~State() = default;

  /// One item of a snapshot, in the order save() gave them.
  virtual Result<void> load(std::string_view item) = 0;
  /// One entry of the journal, in order.
  virtual Result<void> replay(const Entry& entry) = 0;
  /// A fold into this state is not wanted any more, for good; it ends with kClosed before long.
  [[nodiscard]] virtual bool is_cancelled() const { return false; }
  /// The whole state as items of at most a few megabytes each.
  virtual void save(base::FunctionRef<void(std::string_view item)> sink) const = 0;
};

/// Appends batches of entries, each all or nothing, and gives them back after a restart.
///
///     Result<void> stored = journal.append(batch);  // durable, or the journal has failed for good
///
/// Thread safety: append() and close() one thread at a time; fold() one thread at a time, which may
/// be another one; needs_folding() any thread.
class Journal {
 public:
  Journal() = default;
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;
  virtual ~Journal() = default;

  /// Writes the batch and returns once it is durable. The first error is final: whether the batch
  /// will be there after a restart is open, and every later append gives the same error (H83, H84).
  /// Only kTooLarge, for a batch of a gigabyte and more, changes nothing. zxids have to grow, over
  /// restarts too.
  [[nodiscard]] virtual Result<void> append(std::span<const Entry> batch) = 0;

  /// Enough entries lie above the newest snapshot to make a new one worth it.
  [[nodiscard]] virtual bool needs_folding() const = 0;

  /// Folds what lies in finished segments into a new snapshot by way of `empty`, then removes what
  /// the snapshot has made superfluous. append() goes on meanwhile. An error here leaves the stored
  /// entries as they were. kDamaged: they could not be read back, and after a restart neither.
  [[nodiscard]] virtual Result<void> fold(State& empty) = 0;

  /// Marks the end as meant, so that a later damage of the last batch is told from a torn one.
  /// Worth calling after a failed append too: where the disk still takes it, the mark is made.
  /// Nothing can be appended afterwards (kClosed).
  [[nodiscard]] virtual Result<void> close() = 0;
};

}  // namespace latchkey::storage
