#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "latchkey/result.hpp"
#include "storage/files.hpp"
#include "storage/format.hpp"

namespace latchkey::storage {

/// Why a file ends where it ends.
enum class End {
  kZeros,    ///< Nothing was ever written from here on.
  kTorn,     ///< A write did not get to its end: what it was to say was never acknowledged.
  kDamaged,  ///< Something that was whole is not so any more.
};

struct Ending {
  End end = End::kZeros;
  std::string reason;            ///< For kDamaged.
  std::uint64_t left_bytes = 0;  ///< From the end of the last good batch to the last byte written.
};

/// Reads a segment or a snapshot batch by batch, believing nothing without its checksum.
///
///     for (;;) {
///       Result<bool> more = reader.next();
///       if (!more) return more.error();  // the disk could not be read
///       if (!*more) break;               // see ending()
///       use(reader.kind(), reader.records());
///     }
///
/// What follows the last good batch is judged by the rules of docs/storage.md, which are those for
/// the newest file; in any other one kTorn is damage too. A file that is shorter than it was made
/// is damaged where its batches end. Memory: one batch, or a megabyte.
///
/// Thread safety: one thread at a time.
class Reader {
 public:
  /// Errors: kStorage; kDamaged for a header that is not whole, or not that of a file of this name.
  [[nodiscard]] static Result<Reader> open(Files& files, const std::string& name);
  /// Over a file whose name does not matter.
  [[nodiscard]] static Result<Reader> open(std::unique_ptr<File> file);

  [[nodiscard]] Result<bool> next();

  /// The batch that next() found; the records live until the next one.
  [[nodiscard]] BatchKind kind() const { return batch_.kind; }
  [[nodiscard]] const std::vector<Entry>& records() const { return records_; }
  /// How much of the file it takes, up to offset(); 0 before the first one.
  [[nodiscard]] std::uint64_t batch_bytes() const { return batch_.sectors * kSector; }

  /// After next() has returned false.
  [[nodiscard]] const Ending& ending() const { return ending_; }

  [[nodiscard]] const FileHeader& header() const { return header_; }
  /// How far the batches read so far go, and the offset after the last one.
  [[nodiscard]] const Place& place() const { return place_; }
  [[nodiscard]] std::uint64_t offset() const { return offset_; }
  [[nodiscard]] std::uint64_t file_bytes() const { return file_bytes_; }

 private:
  /// What is written behind the sector at offset_.
  struct Rest {
    bool later_batch = false;
    std::uint64_t end = 0;  ///< Of the last sector that is not zero; 0 without one.
  };

  Reader(std::unique_ptr<File> file, std::uint64_t file_bytes);

  [[nodiscard]] Result<char*> view(std::uint64_t offset, std::size_t size);
  [[nodiscard]] bool accept(const BatchHeader& header, char* batch);
  [[nodiscard]] Result<bool> judge_header(const std::string& sector);
  [[nodiscard]] Result<bool> judge_batch(const BatchHeader& header);
  [[nodiscard]] Result<bool> has_gap(std::uint64_t end);
  [[nodiscard]] Result<Rest> look_behind();
  bool stop(End end, std::string reason, std::uint64_t left_bytes);

  std::unique_ptr<File> file_;
  std::uint64_t file_bytes_ = 0;
  bool is_cut_ = false;  ///< Shorter than it was made.
  FileHeader header_;
  Place place_;
  std::uint64_t offset_ = 0;

  BatchHeader batch_;
  std::vector<Entry> records_;
  Ending ending_;

  std::string window_;  ///< The file from window_at_ on.
  std::uint64_t window_at_ = 0;
};

}  // namespace latchkey::storage
