#include "storage/recovery.hpp"

#include <algorithm>

namespace latchkey::storage {
namespace {

struct Listing {
  std::vector<std::string> temporaries;
  std::vector<std::string> snapshots;  ///< Oldest first, as are the segments.
  std::vector<std::string> segments;
};

Result<Listing> look_around(Files& files) {
  auto names = files.list();
  if (!names) return names.error();
  std::sort(names->begin(), names->end());
  Listing listing;
  for (const std::string& name : *names) {
    const auto kind = kind_of(name);
    if (name == kSpareName || name == kHalfSnapshotName) listing.temporaries.push_back(name);
    if (kind == FileKind::kSnapshot) listing.snapshots.push_back(name);
    if (kind == FileKind::kJournal) listing.segments.push_back(name);
  }
  return listing;
}

/// `what` names the file and the offset; from this file on, everything after `before` would go.
Error damaged(const std::string& what, std::int64_t last_good, std::int64_t before) {
  return Error{
      Code::kDamaged,
      what + ". The last good zxid is " + zxid_text(last_good) +
          "; nothing was changed. Restore the folder from a copy, or move this file and "
          "every journal file with a later name away, knowing that everything after zxid " +
          zxid_text(before) + " is lost with them"};
}

Error damaged(Files& files, const std::string& name, const Reader& reader,
              const std::string& reason) {
  return damaged(
      files.path_of(name) + ": " + reason + ", at offset " + std::to_string(reader.offset()),
      reader.place().zxid, reader.header().after.zxid);
}

Error missing(Files& files, const std::string& name, const Reader& reader, const Place& place) {
  return damaged(files.path_of(name) + ": the file goes on from zxid " +
                     zxid_text(reader.place().zxid) + ", but what is stored before it ends with " +
                     zxid_text(place.zxid) + ": a file is missing or was cut",
                 place.zxid, place.zxid);
}

/// Writes zeros over whatever is not zero already.
Result<void> wipe(File& file, std::uint64_t from, std::uint64_t size) {
  constexpr std::uint64_t kChunk = std::uint64_t{1} << 20U;
  std::string chunk;
  for (std::uint64_t done = 0; done < size; done += chunk.size()) {
    chunk.resize(std::min(kChunk, size - done));
    const auto got = file.read(chunk.data(), chunk.size(), from + done);
    if (!got) return got.error();
    if (is_zero({chunk.data(), *got})) continue;
    std::fill(chunk.begin(), chunk.end(), '\0');
    auto written = file.write({chunk.data(), *got}, from + done);
    if (!written) return written;
  }
  return {};
}

/// Writes the last batch once more. After a failed sync the system may show it and yet believe
/// that it need not write it (H84); now it has to.
Result<void> write_again(File& file, std::uint64_t offset, std::uint64_t size) {
  std::string batch(size, '\0');
  const auto got = file.read(batch.data(), batch.size(), offset);
  if (!got) return got.error();
  return file.write({batch.data(), *got}, offset);
}

Result<Segment> go_on_in(Files& files, const std::string& name, const Replayed& replayed) {
  auto file = files.open(name, Access::kReadWrite);
  if (!file) return file.error();
  if (auto wiped = wipe(**file, replayed.offset, replayed.torn_bytes); !wiped) {
    return wiped.error();
  }
  auto written =
      write_again(**file, replayed.offset - replayed.last_batch_bytes, replayed.last_batch_bytes);
  if (!written) return written.error();
  if (auto synced = (*file)->sync(); !synced) return synced.error();
  return Segment(*std::move(file), replayed.header, replayed.offset, replayed.place,
                 replayed.file_bytes);
}

Result<void> remove_all(Files& files, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (auto removed = files.remove(name); !removed) return removed;
  }
  return {};
}

Result<void> replay_segments(Files& files, const std::vector<std::string>& names, State& state,
                             Recovery& recovery) {
  for (const std::string& name : names) {
    const Position position = name == names.back() ? Position::kNewest : Position::kBeforeOthers;
    const auto replayed = replay_segment(files, name, recovery.place, position, state);
    if (!replayed) return replayed.error();
    recovery.place = replayed->place;
    recovery.recovered.entries += replayed->entries;
    if (position == Position::kBeforeOthers) {
      recovery.finished.push_back({name, replayed->offset});
      continue;
    }
    recovery.recovered.bytes_cut = replayed->torn_bytes;
    recovery.recovered.closed_cleanly = replayed->closed;
    auto segment = go_on_in(files, name, *replayed);
    if (!segment) return segment.error();
    recovery.newest.emplace(*std::move(segment));
  }
  return {};
}

}  // namespace

Result<Replayed> replay_segment(Files& files, const std::string& name, const Place& after,
                                Position position, State& state) {
  auto reader = Reader::open(files, name);
  if (!reader) {
    const Error& error = reader.error();
    return error == Code::kDamaged ? damaged(error.message(), after.zxid, after.zxid) : error;
  }
  if (reader->header().after != after) return missing(files, name, *reader, after);
  Replayed replayed;
  for (;;) {
    const auto more = reader->next();
    if (!more) return more.error();
    if (!*more) break;
    replayed.closed = reader->kind() == BatchKind::kEnd;
    if (replayed.closed) continue;
    for (const Entry& entry : reader->records()) {
      if (auto taken = state.replay(entry); !taken) return taken.error();
    }
    replayed.entries += reader->records().size();
  }
  const Ending& ending = reader->ending();
  if (ending.end == End::kDamaged) return damaged(files, name, *reader, ending.reason);
  if (ending.end == End::kTorn && position == Position::kBeforeOthers) {
    return damaged(files, name, *reader, "a batch is not whole, though a newer file follows");
  }
  replayed.header = reader->header();
  replayed.place = reader->place();
  replayed.offset = reader->offset();
  replayed.last_batch_bytes = reader->batch_bytes();
  replayed.file_bytes = reader->file_bytes();
  replayed.torn_bytes = ending.left_bytes;
  return replayed;
}

Result<Recovery> recover(Files& files, State& state) {
  auto listing = look_around(files);
  if (!listing) return listing.error();
  Recovery recovery;
  recovery.recovered.closed_cleanly = true;
  if (!listing->snapshots.empty()) {
    auto snapshot = load_snapshot(files, listing->snapshots.back(), state);
    if (!snapshot) return snapshot.error();
    recovery.place = snapshot->covers;
    recovery.recovered.snapshot_zxid = snapshot->covers.zxid;
    recovery.recovered.items = snapshot->items;
    recovery.snapshot = *std::move(snapshot);
  }

  auto& segments = listing->segments;
  const std::string first = file_name(FileKind::kJournal, recovery.place);
  segments.erase(segments.begin(), std::lower_bound(segments.begin(), segments.end(), first));
  auto replayed = replay_segments(files, segments, state, recovery);
  if (!replayed) return replayed.error();
  recovery.recovered.last_zxid = recovery.place.zxid;

  // In this order: the new name of a snapshot has to be durable before what it replaces goes.
  if (auto synced = files.sync_folder(); !synced) return synced.error();
  if (recovery.snapshot) {
    auto removed = remove_superfluous(files, *recovery.snapshot);
    if (!removed) return removed.error();
  }
  if (auto removed = remove_all(files, listing->temporaries); !removed) return removed.error();
  return recovery;
}

Result<void> remove_superfluous(Files& files, const Snapshot& newest) {
  auto listing = look_around(files);
  if (!listing) return listing.error();
  std::vector<std::string> names = std::move(listing->snapshots);
  std::erase(names, newest.name);
  const std::string first = file_name(FileKind::kJournal, newest.covers);
  for (const std::string& name : listing->segments) {
    if (name < first) names.push_back(name);
  }
  return remove_all(files, names);
}

}  // namespace latchkey::storage
