#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "latchkey/result.hpp"
#include "storage/journal.hpp"

/// Bytes and their meaning: what stands in a segment and in a snapshot. Without I/O;
/// docs/storage.md has the tables.
namespace latchkey::storage {

/// What a disk writes whole or not at all, as far as we rely on it. Every batch starts on a sector
/// of its own, so that nothing acknowledged is ever written over.
inline constexpr std::size_t kSector = 512;
inline constexpr std::uint32_t kFormatVersion = 1;
/// The longest batch, with all that belongs to it.
inline constexpr std::size_t kMaxBatchBytes = std::size_t{1} << 30U;

enum class FileKind : std::uint32_t { kJournal = 1, kSnapshot = 2 };

/// How far the journal has come: the last batch, its checksum, and the newest zxid. A file goes on
/// from one place, and a file that ends at that place is the one before it.
struct Place {
  std::uint64_t sequence = 0;
  std::uint64_t chain = 0;
  std::int64_t zxid = 0;

  friend bool operator==(const Place&, const Place&) = default;
};

/// The first sector of a file.
struct FileHeader {
  FileKind kind = FileKind::kJournal;
  std::uint64_t salt = 0;  ///< Seeds every checksum in the file: no batch of another fits in here.
  Place after;             ///< A segment goes on from here, a snapshot holds everything up to here.
  std::uint64_t bytes = 0;  ///< How long a segment was made, before it got its name; 0: not said.
};

[[nodiscard]] std::string encode(const FileHeader& header);

/// Errors: kDamaged; kStorage for a version that this program does not know.
[[nodiscard]] Result<FileHeader> decode_file_header(std::string_view sector);

/// "journal-00000001000000a4-0000000000000017": the first zxid that can be in it and the number of
/// its first batch; "snapshot-...": the last zxid and the last batch that it covers. Names sort as
/// the files follow each other.
[[nodiscard]] std::string file_name(FileKind kind, const Place& after);

/// Which kind of file a name stands for. Nothing: not one of ours.
[[nodiscard]] std::optional<FileKind> kind_of(std::string_view name);

/// Files that are being made; what is left of them is removed by the next open.
inline constexpr const char* kSpareName = "spare.tmp";
inline constexpr const char* kHalfSnapshotName = "snapshot.tmp";
/// In front of the names of files that were set aside because they are damaged.
inline constexpr const char* kDamagedPrefix = "damaged-";

enum class BatchKind : std::uint32_t {
  kEntries = 1,  ///< Of the journal, each with its zxid.
  kItems = 2,    ///< Of a snapshot, numbered from 0.
  kEnd = 3,  ///< Journal: closed on purpose. Snapshot: one record, the number of items and digest.
};

/// What stands in front of a batch. It has a checksum of its own, so that its length can be trusted
/// where the rest is not there.
struct BatchHeader {
  BatchKind kind = BatchKind::kEntries;
  std::uint64_t sequence = 0;
  std::uint64_t chain = 0;  ///< The checksum of the batch before.
  std::uint32_t sectors = 0;
  std::uint32_t count = 0;
  std::uint64_t mask = 0;  ///< See Batch::seal.
};

inline constexpr std::size_t kBatchHeaderBytes = 48;
inline constexpr std::size_t kChecksumBytes = 8;
inline constexpr std::size_t kRecordHeaderBytes = 12;

/// Nothing: not a header, or not a whole one, or one of another file.
[[nodiscard]] std::optional<BatchHeader> decode_batch_header(std::string_view sector,
                                                             std::uint64_t salt);

/// A batch on its way to a file.
///
///     Batch batch;
///     batch.add(zxid, bytes);
///     place = batch.seal(BatchKind::kEntries, place, salt);
///     file.write(batch.bytes(), offset);
///
/// No sector of a sealed batch has fewer than two bits set, whatever the records hold: were it to,
/// the records are written under a mask. So a sector that reads as zero was never written, and no
/// single flipped bit makes a written one look so.
///
/// Thread safety: one thread at a time.
class Batch {
 public:
  Batch() { clear(); }

  /// `number` is a zxid or the index of an item.
  void add(std::int64_t number, std::string_view bytes);
  /// How long it would be if it were sealed now.
  [[nodiscard]] std::size_t sealed_bytes() const;

  /// Fills in header, mask and checksum, and returns the place after it; the zxid is that of
  /// `after` or, with entries, of the last one.
  Place seal(BatchKind kind, const Place& after, std::uint64_t salt);
  [[nodiscard]] std::string_view bytes() const { return bytes_; }

  /// Makes room for the next one, and keeps the memory unless it is a lot.
  void clear();

 private:
  std::string bytes_;
  std::uint32_t count_ = 0;
  std::int64_t last_number_ = 0;
};

/// Takes the mask off and cuts the records out of a batch whose checksum holds. False: they do not
/// add up to the batch, which no crash and no flipped bit can bring about.
[[nodiscard]] bool decode_records(char* batch, const BatchHeader& header,
                                  std::vector<Entry>& records);

/// The sector reads as zero.
[[nodiscard]] bool is_zero(std::string_view bytes) noexcept;

/// "0x100000007".
[[nodiscard]] std::string zxid_text(std::int64_t zxid);

}  // namespace latchkey::storage
