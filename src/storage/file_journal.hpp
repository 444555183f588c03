#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "latchkey/result.hpp"
#include "storage/files.hpp"
#include "storage/journal.hpp"

namespace latchkey::storage {

/// When the file for the next segment is made.
enum class Spare {
  kInBackground,  ///< By a thread of the journal's own, while the current one fills up.
  kInAppend,      ///< By append() itself, at the same moment: every run makes the same calls.
};

enum class OnDamage {
  kRefuse,
  /// Keep what comes before the damage, and set aside what is damaged and what follows, under names
  /// that begin with "damaged-". Acknowledged entries may be lost.
  kCut,
};

struct FileJournalOptions {
  /// Segments are made this long in advance, and zeroed. A batch that is longer gets a segment of
  /// its own length.
  std::uint64_t segment_bytes = 16U << 20U;
  /// needs_folding() says yes when the finished segments hold more than this and more than the
  /// newest snapshot, so that the cost of folding stays in proportion to what is appended.
  std::uint64_t fold_bytes = 64U << 20U;
  Spare spare = Spare::kInBackground;
  OnDamage on_damage = OnDamage::kRefuse;
};

/// What open() found, for the server's log line.
struct Recovered {
  std::int64_t last_zxid = 0;      ///< Of the newest entry; 0 if there has never been one.
  std::int64_t snapshot_zxid = 0;  ///< What the snapshot covers; 0 without one.
  std::uint64_t items = 0;         ///< Loaded from the snapshot.
  std::uint64_t entries = 0;       ///< Replayed on top of it.
  std::uint64_t bytes_cut = 0;     ///< Length of the torn tail, which nobody was ever told about.
  bool closed_cleanly = false;     ///< The last run ended with close(), or there was none.
  /// The highest epoch (the upper half of a zxid) that was ever reached, as far as is known. New
  /// zxids have to be above it.
  std::int64_t epoch = 0;
  std::string damage;  ///< What was cut, with OnDamage::kCut.
};

/// "zxid 0x100000007: 12 items of a snapshot, 5 entries; a torn tail of 512 bytes was cut".
[[nodiscard]] std::string describe(const Recovered& recovered);

/// The journal in a folder of its own. The format, and how a torn tail is told from damage, are in
/// docs/storage.md.
///
///     auto journal = FileJournal::open("/var/lib/latchkey", {}, tree);
///     if (!journal) return journal.error();
///     log(describe((*journal)->recovered()));
///
/// It does not repair: damage is reported and left as it is, or cut off if the options say so. It
/// notices that files are missing at the end only if a whole epoch is missing with them, or all
/// that followed a snapshot.
///
/// Thread safety: as Journal. The destructor wants no call to be under way; it leaves the end
/// unmarked, as a crash would.
class FileJournal : public Journal {
 public:
  /// Makes the folder if it is missing, locks it, and feeds `state`, which has to be empty, with
  /// everything that is stored. Everything it was fed is durable when this returns. After an error
  /// `state` may hold a part of it and is to be thrown away.
  /// Errors: kInUse, kDamaged, kStorage (also for a folder that holds files which are not ours and
  /// no journal), and whatever `state` refuses with.
  [[nodiscard]] static Result<std::unique_ptr<FileJournal>> open(
      const std::filesystem::path& folder, const FileJournalOptions& options, State& state);
  /// The same over a folder that the caller brings.
  [[nodiscard]] static Result<std::unique_ptr<FileJournal>> open(std::unique_ptr<Files> files,
                                                                 const FileJournalOptions& options,
                                                                 State& state);

  [[nodiscard]] virtual const Recovered& recovered() const = 0;
};

}  // namespace latchkey::storage
