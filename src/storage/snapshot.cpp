#include "storage/snapshot.hpp"

#include <optional>

#include "base/function_ref.hpp"
#include "base/random.hpp"
#include "storage/checksum.hpp"
#include "storage/number.hpp"
#include "storage/reader.hpp"

namespace latchkey::storage {
namespace {

constexpr std::size_t kBatchBytes = std::size_t{256} << 10U;
/// Synced bit by bit, so that appends at the same time do not wait behind all of it.
constexpr std::uint64_t kSyncBytes = std::uint64_t{4} << 20U;

struct Content {
  std::uint64_t items = 0;
  std::uint64_t digest = 0;

  friend bool operator==(const Content&, const Content&) = default;
};

/// Writes the items to a file; the first error ends it.
class Writer {
 public:
  Writer(File& file, const Place& covers)
      : file_(file), header_{FileKind::kSnapshot, base::kernel_random(), covers}, place_(covers) {}

  void start() {
    note(file_.write(encode(header_), 0));
    offset_ = kSector;
  }

  void add(std::string_view item) {
    if (error_) return;
    digest_.add(item);
    batch_.add(static_cast<std::int64_t>(items_), item);
    ++items_;
    if (batch_.sealed_bytes() >= kBatchBytes) put(BatchKind::kItems);
  }

  Result<Content> finish() {
    put(BatchKind::kItems);
    const Content content{items_, digest_.value()};
    char digest[sizeof content.digest];
    put_number(digest, content.digest);
    batch_.add(static_cast<std::int64_t>(content.items), {digest, sizeof digest});
    put(BatchKind::kEnd);
    if (!error_) note(file_.sync());
    if (error_) return *error_;
    return content;
  }

  [[nodiscard]] std::uint64_t bytes() const { return offset_; }

 private:
  void note(const Result<void>& done) {
    if (!done && !error_) error_ = done.error();
  }

  void put(BatchKind kind) {
    if (error_) return;
    place_ = batch_.seal(kind, place_, header_.salt);
    note(file_.write(batch_.bytes(), offset_));
    offset_ += batch_.bytes().size();
    batch_.clear();
    if (!error_ && offset_ - synced_ >= kSyncBytes) {
      note(file_.sync());
      synced_ = offset_;
    }
  }

  File& file_;
  const FileHeader header_;
  Place place_;
  std::uint64_t offset_ = 0;
  std::uint64_t synced_ = 0;
  Batch batch_;
  Digest digest_;
  std::uint64_t items_ = 0;
  std::optional<Error> error_;
};

Error damaged_snapshot(const Reader& reader, const std::string& reason) {
  return Error{Code::kDamaged, reason + ", at offset " + std::to_string(reader.offset())};
}

Result<void> check_wanted(const State& state) {
  if (state.is_cancelled()) return Error{Code::kClosed, "folding was cancelled"};
  return {};
}

/// Reads to the end, gives every item to `take`, and checks the digest.
Result<Content> read_content(Reader& reader,
                             base::FunctionRef<Result<void>(std::string_view)> take) {
  Digest digest;
  Content content;
  std::optional<Content> declared;
  for (;;) {
    const auto more = reader.next();
    if (!more) return more.error();
    if (!*more) break;
    if (declared) return damaged_snapshot(reader, "something follows the end of the snapshot");
    if (reader.kind() == BatchKind::kEnd) {
      if (reader.records().size() != 1 || reader.records()[0].bytes.size() != kChecksumBytes) {
        return damaged_snapshot(reader,
                                "the end of the snapshot is not one that this program would write");
      }
      const Entry& end = reader.records()[0];
      declared = Content{static_cast<std::uint64_t>(end.zxid),
                         get_number<std::uint64_t>(end.bytes.data())};
      continue;
    }
    for (const Entry& item : reader.records()) {
      digest.add(item.bytes);
      ++content.items;
      if (auto taken = take(item.bytes); !taken) return taken.error();
    }
  }
  const Ending& ending = reader.ending();
  if (ending.end == End::kDamaged) return damaged_snapshot(reader, ending.reason);
  if (ending.end == End::kTorn || !declared)
    return damaged_snapshot(reader, "the snapshot is not whole");
  content.digest = digest.value();
  if (content != *declared) return damaged_snapshot(reader, "the items do not match their digest");
  return content;
}

Result<Content> read_back(Files& files, const State& state) {
  auto file = files.open(kHalfSnapshotName, Access::kRead);
  if (!file) return file.error();
  auto reader = Reader::open(*std::move(file));
  if (!reader) return reader.error();
  return read_content(*reader, [&](std::string_view) { return check_wanted(state); });
}

Error with_advice(const Error& error) {
  if (error != Code::kDamaged) return error;
  return Error{error.code(),
               error.message() +
                   "; nothing was changed. Restore the folder from a copy: what the snapshot held "
                   "is nowhere else. To begin with nothing, move every file but \"epoch\" away and "
                   "start once with --cut-damage (ServerOptions::on_damage); without that file "
                   "fencing tokens would start over"};
}

Result<Snapshot> write_and_check(Files& files, const State& state, const Place& covers) {
  auto file = files.open(kHalfSnapshotName, Access::kCreate);
  if (!file) return file.error();
  Writer writer(**file, covers);
  writer.start();
  state.save([&](std::string_view item) {
    if (!state.is_cancelled()) writer.add(item);
  });
  // Not all of it may have been written.
  if (auto wanted = check_wanted(state); !wanted) return wanted.error();
  const auto content = writer.finish();
  if (!content) return content.error();
  const auto stored = read_back(files, state);
  if (!stored && stored.error() != Code::kDamaged) return stored.error();
  if (!stored || *stored != *content) {
    return Error{Code::kDamaged, files.path_of(kHalfSnapshotName) +
                                     ": what was read back is not what was written; the disk or "
                                     "the memory of this machine is broken"};
  }
  return Snapshot{file_name(FileKind::kSnapshot, covers), covers, writer.bytes(), content->items};
}

}  // namespace

Result<Snapshot> load_snapshot(Files& files, const std::string& name, State& state) {
  auto reader = Reader::open(files, name);
  if (!reader) return with_advice(reader.error());
  const auto content = read_content(*reader, [&](std::string_view item) {
    auto wanted = check_wanted(state);
    return wanted ? state.load(item) : wanted;
  });
  if (!content) {
    return with_advice(
        Error{content.error().code(), files.path_of(name) + ": " + content.error().message()});
  }
  return Snapshot{name, reader->header().after, reader->offset(), content->items};
}

Result<Snapshot> write_snapshot(Files& files, const State& state, const Place& covers) {
  auto snapshot = write_and_check(files, state, covers);
  if (!snapshot) {
    // Only to give the space back; the next open would do it as well.
    (void)files.remove(kHalfSnapshotName);
    return snapshot;
  }
  if (auto named = files.rename(kHalfSnapshotName, snapshot->name); !named) return named.error();
  if (auto synced = files.sync_folder(); !synced) return synced.error();
  return snapshot;
}

}  // namespace latchkey::storage
