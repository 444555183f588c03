#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <string>

#include "latchkey/result.hpp"
#include "storage/files.hpp"
#include "storage/format.hpp"

namespace latchkey::storage {

/// The newest segment: a file of zeros with a header, which batches fill from the front.
/// Thread safety: one thread at a time.
class Segment {
 public:
  /// Goes on in `file` at `offset`, where `place` is. `bytes` is how long the file was made.
  Segment(std::unique_ptr<File> file, const FileHeader& header, std::uint64_t offset,
          const Place& place, std::uint64_t bytes)
      : file_(std::move(file)), header_(header), offset_(offset), place_(place), bytes_(bytes) {}

  /// Gives a spare file that length, a header and its name, and makes all of it durable.
  [[nodiscard]] static Result<Segment> start(Files& files, std::unique_ptr<File> spare,
                                             const Place& after, std::uint64_t bytes);

  /// A batch of that length and an end mark fit in.
  [[nodiscard]] bool has_room_for(std::size_t batch_bytes) const;
  [[nodiscard]] bool is_empty() const { return offset_ == kSector; }

  /// Seals the batch and returns when it is durable. After an error nothing may be appended again.
  [[nodiscard]] Result<void> append(Batch& batch, BatchKind kind);

  [[nodiscard]] std::string name() const { return file_name(header_.kind, header_.after); }
  [[nodiscard]] const Place& place() const { return place_; }
  [[nodiscard]] std::uint64_t offset() const { return offset_; }
  [[nodiscard]] bool is_half_full() const { return offset_ >= bytes_ / 2; }

 private:
  std::unique_ptr<File> file_;
  FileHeader header_;
  std::uint64_t offset_;
  Place place_;
  std::uint64_t bytes_;
};

/// Fills the file with zeros from one offset to another.
[[nodiscard]] Result<void> write_zeros(File& file, std::uint64_t from, std::uint64_t to);

enum class Spare;

/// Makes the file for the next segment before it is needed, so that append() need not wait for it
/// and a full disk is met while the current segment still has room for the end mark.
///
/// Zeros are written and synced, not only reserved: overwriting them later changes nothing but
/// data, and a sync then costs one write of the disk instead of several (docs/storage.md).
///
/// Thread safety: one thread at a time.
class SpareMaker {
 public:
  SpareMaker(Files& files, std::uint64_t bytes, Spare when)
      : files_(files), bytes_(bytes), when_(when) {}

  /// Makes one, unless there is one or it is under way.
  void prepare();
  /// The prepared one, or, where that failed or was never asked for, one made now.
  [[nodiscard]] Result<std::unique_ptr<File>> take();

 private:
  using Made = Result<std::unique_ptr<File>>;

  Made make();

  Files& files_;
  const std::uint64_t bytes_;
  const Spare when_;
  std::future<Made> made_;  ///< Waits in its destructor.
};

}  // namespace latchkey::storage
