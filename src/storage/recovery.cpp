#include "storage/recovery.hpp"

#include <algorithm>

#include "storage/epoch.hpp"

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
    if (name == kSpareName || name == kHalfSnapshotName || name == kHalfEpochName) {
      listing.temporaries.push_back(name);
    }
    if (kind == FileKind::kSnapshot) listing.snapshots.push_back(name);
    if (kind == FileKind::kJournal) listing.segments.push_back(name);
  }
  return listing;
}

/// `what` names the file and the offset.
Error damaged(const std::string& what, std::int64_t last_good) {
  return Error{Code::kDamaged,
               what +
                   "; nothing was changed. Restore the folder from a copy; or start once with "
                   "--cut-damage (ServerOptions::on_damage), which sets the damaged files aside, "
                   "and then everything after zxid " +
                   zxid_text(last_good) + " is lost"};
}

Error damaged(Files& files, const std::string& name, const Reader& reader,
              const std::string& reason) {
  return damaged(
      files.path_of(name) + ": " + reason + ", at offset " + std::to_string(reader.offset()),
      reader.place().zxid);
}

Error missing(Files& files, const std::string& name, const Reader& reader, const Place& place) {
  return damaged(files.path_of(name) + ": the file goes on from zxid " +
                     zxid_text(reader.place().zxid) + ", but what is stored before it ends with " +
                     zxid_text(place.zxid) + ": a file is missing or was cut",
                 place.zxid);
}

/// The bytes are what was written, so neither the disk nor a cut is to blame or of help.
Error refused(Files& files, const std::string& name, const Reader& reader, std::int64_t zxid,
              const Error& error) {
  if (error != Code::kDamaged) return error;
  return Error{error.code(),
               files.path_of(name) + ": " + error.message() + ", zxid " + zxid_text(zxid) +
                   " in the batch at offset " +
                   std::to_string(reader.offset() - reader.batch_bytes()) +
                   "; nothing was changed. The checksums are right: start the version that wrote "
                   "it, or restore the folder from a copy"};
}

/// A fold covers finished segments only, and one is finished when the next has its name.
Error end_missing(Files& files, const Snapshot& snapshot) {
  return damaged(files.path_of(file_name(FileKind::kJournal, snapshot.covers)) +
                     ": the file is missing, and with it whatever was stored after " +
                     snapshot.name,
                 snapshot.covers.zxid);
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
  const std::uint64_t bytes = std::max(replayed.header.bytes, replayed.file_bytes);
  if (auto filled = write_zeros(**file, replayed.file_bytes, bytes); !filled) return filled.error();
  auto written =
      write_again(**file, replayed.offset - replayed.last_batch_bytes, replayed.last_batch_bytes);
  if (!written) return written.error();
  if (auto synced = (*file)->sync(); !synced) return synced.error();
  return Segment(*std::move(file), replayed.header, replayed.offset, replayed.place, bytes);
}

Result<void> remove_all(Files& files, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (auto removed = files.remove(name); !removed) return removed;
  }
  return {};
}

/// A name that is free, so that no earlier one that was set aside is lost.
Result<std::string> name_aside(Files& files, const std::string& name) {
  const auto names = files.list();
  if (!names) return names.error();
  std::string aside = kDamagedPrefix + name;
  for (int i = 2; std::ranges::find(*names, aside) != names->end(); ++i) {
    aside = kDamagedPrefix + name + "-" + std::to_string(i);
  }
  return aside;
}

Result<void> copy(Files& files, const std::string& from, const std::string& to) {
  constexpr std::size_t kChunk = std::size_t{1} << 20U;
  auto source = files.open(from, Access::kRead);
  if (!source) return source.error();
  auto target = files.open(to, Access::kCreate);
  if (!target) return target.error();
  std::string chunk(kChunk, '\0');
  for (std::uint64_t at = 0;; at += chunk.size()) {
    const auto got = (*source)->read(chunk.data(), chunk.size(), at);
    if (!got) return got.error();
    if (auto put = (*target)->write({chunk.data(), *got}, at); !put) return put;
    if (*got < chunk.size()) return (*target)->sync();
  }
}

/// Keeps the first file up to the damage, if anything of it is good, and none of the others. What
/// they held is durable under other names before anything is changed.
Result<void> set_aside(Files& files, const std::vector<std::string>& names, bool keep_first) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto aside = name_aside(files, names[i]);
    if (!aside) return aside.error();
    auto done =
        i == 0 && keep_first ? copy(files, names[i], *aside) : files.rename(names[i], *aside);
    if (!done) return done;
  }
  return files.sync_folder();
}

Result<Replayed> read_segment(Files& files, const std::string& name, const Place& after,
                              Position position, State& state) {
  Replayed replayed;
  replayed.place = after;
  auto reader = Reader::open(files, name);
  if (!reader) {
    const Error& error = reader.error();
    if (error != Code::kDamaged) return error;
    replayed.damage = damaged(error.message(), after.zxid);
    return replayed;
  }
  if (reader->header().after != after) {
    replayed.damage = missing(files, name, *reader, after);
    return replayed;
  }
  for (;;) {
    const auto more = reader->next();
    if (!more) return more.error();
    if (!*more) break;
    if (state.is_cancelled()) return Error{Code::kClosed, "reading the journal was cancelled"};
    replayed.closed = reader->kind() == BatchKind::kEnd;
    if (replayed.closed) continue;
    for (const Entry& entry : reader->records()) {
      if (auto taken = state.replay(entry); !taken) {
        return refused(files, name, *reader, entry.zxid, taken.error());
      }
    }
    replayed.entries += reader->records().size();
  }
  const Ending& ending = reader->ending();
  replayed.header = reader->header();
  replayed.place = reader->place();
  replayed.offset = reader->offset();
  replayed.last_batch_bytes = reader->batch_bytes();
  replayed.file_bytes = reader->file_bytes();
  replayed.torn_bytes = ending.left_bytes;
  if (ending.end == End::kDamaged) {
    replayed.damage = damaged(files, name, *reader, ending.reason);
  } else if (ending.end == End::kTorn && position == Position::kBeforeOthers) {
    replayed.damage =
        damaged(files, name, *reader, "a batch is not whole, though a newer file follows");
  }
  return replayed;
}

Result<void> replay_segments(Files& files, const std::vector<std::string>& names, State& state,
                             OnDamage on_damage, Recovery& recovery) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string& name = names[i];
    Position position = i + 1 == names.size() ? Position::kNewest : Position::kBeforeOthers;
    auto replayed = read_segment(files, name, recovery.place, position, state);
    if (!replayed) return replayed.error();
    recovery.place = replayed->place;
    recovery.recovered.entries += replayed->entries;
    if (replayed->damage) {
      if (on_damage == OnDamage::kRefuse) return *replayed->damage;
      recovery.recovered.damage = replayed->damage->message();
      const std::vector<std::string> bad(names.begin() + static_cast<std::ptrdiff_t>(i),
                                         names.end());
      const bool keep_first = replayed->offset != 0;
      if (auto done = set_aside(files, bad, keep_first); !done) return done;
      if (!keep_first) return {};
      replayed->torn_bytes = replayed->file_bytes - replayed->offset;
      position = Position::kNewest;
      i = names.size();
    }
    if (position == Position::kBeforeOthers) {
      recovery.finished.push_back({name, replayed->offset});
      continue;
    }
    if (!replayed->damage) recovery.recovered.bytes_cut = replayed->torn_bytes;
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
  auto replayed = read_segment(files, name, after, position, state);
  if (replayed && replayed->damage) return *replayed->damage;
  return replayed;
}

Result<void> check_folder(Files& files) {
  const auto names = files.list();
  if (!names) return names.error();
  std::string foreign;
  for (const std::string& name : *names) {
    if (kind_of(name) || name == kEpochName) return {};
    const bool is_ours = name == kSpareName || name == kHalfSnapshotName ||
                         name == kHalfEpochName || name == kLockName ||
                         name.starts_with(kDamagedPrefix);
    const bool is_the_systems = name == "." || name == ".." || name == "lost+found";
    if (!is_ours && !is_the_systems && (foreign.empty() || name == "version-2")) foreign = name;
  }
  if (foreign.empty()) return {};
  const std::string what = foreign == "version-2"
                               ? " holds Apache ZooKeeper's data, whose format is not ours"
                               : " holds files that are not ours and no journal";
  return Error{Code::kStorage, files.path_of(foreign) + ": this folder" + what +
                                   "; nothing was changed. Name an empty folder, or one that is "
                                   "to be made"};
}

Result<Recovery> recover(Files& files, State& state, OnDamage on_damage) {
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
  if (recovery.snapshot && segments.empty()) {
    const Error missing = end_missing(files, *recovery.snapshot);
    if (on_damage == OnDamage::kRefuse) return missing;
    recovery.recovered.damage = missing.message();
  }
  auto replayed = replay_segments(files, segments, state, on_damage, recovery);
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
