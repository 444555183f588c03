#include "storage/file_journal.hpp"

#include <algorithm>
#include <atomic>
#include <optional>
#include <sstream>
#include <vector>

#include "base/assert.hpp"
#include "base/thread_annotations.hpp"
#include "storage/epoch.hpp"
#include "storage/recovery.hpp"
#include "storage/segment.hpp"
#include "storage/snapshot.hpp"

namespace latchkey::storage {
namespace {

class FolderJournal final : public FileJournal {
 public:
  FolderJournal(std::unique_ptr<Files> files, std::unique_ptr<FolderLock> lock,
                const FileJournalOptions& options)
      : options_(options),
        files_(std::move(files)),
        lock_(std::move(lock)),
        spares_(*files_, options.segment_bytes, options.spare) {}

  Result<void> start(State& state);

  Result<void> append(std::span<const Entry> batch) override;
  bool needs_folding() const override;
  Result<void> fold(State& empty) override;
  Result<void> close() override;
  const Recovered& recovered() const override { return recovered_; }

 private:
  Result<void> check_epoch();
  /// One that a batch of that length fits into.
  Result<void> start_segment(const Place& after, std::size_t batch_bytes);
  Result<void> write(BatchKind kind);
  Result<void> note_epoch(std::int64_t zxid);

  const FileJournalOptions options_;
  const std::unique_ptr<Files> files_;
  const std::unique_ptr<FolderLock> lock_;
  Recovered recovered_;  // Constant after start().

  // Touched by append() and close() only.
  SpareMaker spares_;
  std::optional<Segment> segment_;
  Batch batch_;
  std::optional<Error> failed_;
  bool segment_is_sound_ = true;  // No write to it has failed, and none follows it.
  bool marked_ = false;           // Its last batch is an end mark.
  bool closed_ = false;
  std::int64_t epoch_ = 0;  // As it stands in its file.

  std::atomic<std::uint64_t> finished_bytes_{0};
  std::atomic<std::uint64_t> snapshot_bytes_{0};

  base::LocalMutex mutex_;
  std::optional<Snapshot> snapshot_ LATCHKEY_GUARDED_BY(mutex_);
  std::vector<Finished> finished_ LATCHKEY_GUARDED_BY(mutex_);
};

Result<void> FolderJournal::start(State& state) {
  auto recovery = recover(*files_, state, options_.on_damage);
  if (!recovery) return recovery.error();
  recovered_ = recovery->recovered;
  if (auto checked = check_epoch(); !checked) return checked;
  marked_ = recovery->newest && recovered_.closed_cleanly;
  for (const Finished& segment : recovery->finished) finished_bytes_ += segment.bytes;
  if (recovery->snapshot) snapshot_bytes_ = recovery->snapshot->bytes;
  {
    const base::LocalLock lock(mutex_);
    snapshot_ = std::move(recovery->snapshot);
    finished_ = std::move(recovery->finished);
  }
  segment_ = std::move(recovery->newest);
  return segment_ ? Result<void>{} : start_segment(recovery->place, 0);
}

Result<void> FolderJournal::check_epoch() {
  const auto stored = read_epoch(*files_);
  if (!stored) return stored.error();
  epoch_ = stored->value_or(0);
  const std::int64_t reached = epoch_of(recovered_.last_zxid);
  recovered_.epoch = std::max(epoch_, reached);
  if (reached >= epoch_) return {};
  const std::string what = files_->path_of(kEpochName) + ": epoch " + std::to_string(epoch_) +
                           " was reached, but the journal ends with zxid " +
                           zxid_text(recovered_.last_zxid) + ": its newest files are missing";
  if (options_.on_damage == OnDamage::kRefuse) {
    return Error{Code::kDamaged,
                 what +
                     ". Restore them from a copy; or start once with --cut-damage "
                     "(ServerOptions::on_damage), and then everything after that zxid is lost"};
  }
  if (recovered_.damage.empty()) recovered_.damage = what;
  return {};
}

Result<void> FolderJournal::start_segment(const Place& after, std::size_t batch_bytes) {
  auto file = spares_.take();
  if (!file) return file.error();
  const std::uint64_t bytes = std::max(options_.segment_bytes, batch_bytes + 2 * kSector);
  auto segment = Segment::start(*files_, *std::move(file), after, bytes);
  if (!segment) {
    // The new one may have its name already, and goes on from where this one ends now.
    segment_is_sound_ = false;
    return segment.error();
  }
  // An empty one that was too short had the same name, and is gone.
  if (segment_ && !segment_->is_empty()) {
    const base::LocalLock lock(mutex_);
    finished_.push_back({segment_->name(), segment_->offset()});
    finished_bytes_ += segment_->offset();
  }
  segment_.emplace(*std::move(segment));
  return {};
}

Result<void> FolderJournal::append(std::span<const Entry> batch) {
  if (failed_) return *failed_;
  if (closed_) return Error{Code::kClosed, "append to a journal that is closed"};
  if (batch.empty()) return {};
  std::size_t size = kBatchHeaderBytes + kSector;
  for (const Entry& entry : batch) size += kRecordHeaderBytes + entry.bytes.size();
  if (size > kMaxBatchBytes) {
    return Error{Code::kTooLarge, "append " + std::to_string(size) +
                                      " bytes: a batch has at most " +
                                      std::to_string(kMaxBatchBytes)};
  }

  batch_.clear();
  std::int64_t last = segment_->place().zxid;
  for (const Entry& entry : batch) {
    LATCHKEY_ASSERT(entry.zxid > last);
    last = entry.zxid;
    batch_.add(entry.zxid, entry.bytes);
  }
  if (!segment_->has_room_for(batch_.sealed_bytes())) {
    if (auto started = start_segment(segment_->place(), batch_.sealed_bytes()); !started) {
      failed_ = started.error();
      return started;
    }
  }
  if (auto written = write(BatchKind::kEntries); !written) return written;
  if (segment_->is_half_full()) spares_.prepare();
  return note_epoch(last);
}

Result<void> FolderJournal::note_epoch(std::int64_t zxid) {
  if (epoch_of(zxid) <= epoch_) return {};
  if (auto written = write_epoch(*files_, epoch_of(zxid)); !written) {
    failed_ = written.error();
    return written;
  }
  epoch_ = epoch_of(zxid);
  return {};
}

Result<void> FolderJournal::write(BatchKind kind) {
  auto written = segment_->append(batch_, kind);
  if (!written) {
    segment_is_sound_ = false;
    failed_ = written.error();
  }
  marked_ = kind == BatchKind::kEnd;
  return written;
}

bool FolderJournal::needs_folding() const {
  return finished_bytes_ > std::max(options_.fold_bytes, snapshot_bytes_.load());
}

Result<void> FolderJournal::fold(State& empty) {
  std::optional<Snapshot> old;
  std::vector<Finished> finished;
  {
    const base::LocalLock lock(mutex_);
    old = snapshot_;
    finished = finished_;
  }
  if (finished.empty()) return {};

  Place place;
  if (old) {
    const auto loaded = load_snapshot(*files_, old->name, empty);
    if (!loaded) return loaded.error();
    place = loaded->covers;
  }
  std::uint64_t folded_bytes = 0;
  for (const Finished& segment : finished) {
    const auto replayed =
        replay_segment(*files_, segment.name, place, Position::kBeforeOthers, empty);
    if (!replayed) return replayed.error();
    place = replayed->place;
    folded_bytes += segment.bytes;
  }
  auto snapshot = write_snapshot(*files_, empty, place);
  if (!snapshot) return snapshot.error();

  snapshot_bytes_ = snapshot->bytes;
  finished_bytes_ -= folded_bytes;
  {
    const base::LocalLock lock(mutex_);
    snapshot_ = *snapshot;
    finished_.erase(finished_.begin(),
                    finished_.begin() + static_cast<std::ptrdiff_t>(finished.size()));
  }
  return remove_superfluous(*files_, *snapshot);
}

Result<void> FolderJournal::close() {
  if (!segment_is_sound_) return *failed_;
  closed_ = true;
  if (marked_) return {};
  batch_.clear();
  return write(BatchKind::kEnd);
}

}  // namespace

std::string describe(const Recovered& recovered) {
  std::ostringstream text;
  text << "zxid 0x" << std::hex << recovered.last_zxid << std::dec << ": " << recovered.items
       << " items of a snapshot, " << recovered.entries << " entries";
  if (recovered.bytes_cut > 0) {
    text << "; a torn tail of " << recovered.bytes_cut << " bytes was cut";
  } else if (!recovered.closed_cleanly) {
    text << "; the last run was not closed";
  }
  if (!recovered.damage.empty()) text << "; CUT OFF because it was damaged: " << recovered.damage;
  return text.str();
}

Result<std::unique_ptr<FileJournal>> FileJournal::open(const std::filesystem::path& folder,
                                                       const FileJournalOptions& options,
                                                       State& state) {
  auto files = open_folder(folder);
  if (!files) return files.error();
  return open(*std::move(files), options, state);
}

Result<std::unique_ptr<FileJournal>> FileJournal::open(std::unique_ptr<Files> files,
                                                       const FileJournalOptions& options,
                                                       State& state) {
  if (auto checked = check_folder(*files); !checked) return checked.error();
  auto lock = files->lock();
  if (!lock) return lock.error();
  auto journal = std::make_unique<FolderJournal>(std::move(files), *std::move(lock), options);
  if (auto started = journal->start(state); !started) return started.error();
  return std::unique_ptr<FileJournal>(std::move(journal));
}

}  // namespace latchkey::storage
