#include "storage/segment.hpp"

#include <algorithm>
#include <system_error>

#include "base/mutant.hpp"
#include "base/random.hpp"
#include "storage/file_journal.hpp"

namespace latchkey::storage {
namespace {

constexpr std::uint64_t kZeroBytes = std::uint64_t{1} << 20U;

}  // namespace

Result<Segment> Segment::start(Files& files, std::unique_ptr<File> spare, const Place& after,
                               std::uint64_t bytes) {
  const auto made = spare->size();
  if (!made) return made.error();
  if (auto filled = write_zeros(*spare, *made, bytes); !filled) return filled.error();
  const FileHeader header{FileKind::kJournal, base::kernel_random(), after, bytes};
  if (auto written = spare->write(encode(header), 0); !written) return written.error();
  if (auto synced = spare->sync(); !synced) return synced.error();
  if (auto named = files.rename(kSpareName, file_name(header.kind, after)); !named) {
    return named.error();
  }
  if (auto synced = files.sync_folder(); !synced) return synced.error();
  return Segment(std::move(spare), header, kSector, after, bytes);
}

bool Segment::has_room_for(std::size_t batch_bytes) const {
  return offset_ + batch_bytes + kSector <= bytes_;
}

Result<void> Segment::append(Batch& batch, BatchKind kind) {
  const Place after = batch.seal(kind, place_, header_.salt);
  if (auto written = file_->write(batch.bytes(), offset_); !written) return written;
  if (auto synced = file_->sync(); !synced && !base::mutated(base::Mutant::kSyncErrorIgnored)) {
    return synced;
  }
  offset_ += batch.bytes().size();
  place_ = after;
  return {};
}

Result<void> write_zeros(File& file, std::uint64_t from, std::uint64_t to) {
  if (from >= to) return {};
  const std::string zeros(std::min(kZeroBytes, to - from), '\0');
  for (std::uint64_t at = from; at < to; at += zeros.size()) {
    const std::size_t size = std::min<std::uint64_t>(zeros.size(), to - at);
    if (auto written = file.write({zeros.data(), size}, at); !written) return written;
  }
  return {};
}

void SpareMaker::prepare() {
  if (made_.valid()) return;
  if (when_ == Spare::kInAppend) {
    made_ = std::async(std::launch::deferred, [this] { return make(); });
    made_.wait();
    return;
  }
  try {
    made_ = std::async(std::launch::async, [this] { return make(); });
  } catch (const std::system_error&) {
    // No thread to be had: take() will make it.
  }
}

Result<std::unique_ptr<File>> SpareMaker::take() {
  if (made_.valid()) {
    auto made = made_.get();
    if (made) return made;
  }
  return make();
}

SpareMaker::Made SpareMaker::make() {
  auto file = files_.open(kSpareName, Access::kCreate);
  if (!file) return file;
  if (auto reserved = (*file)->reserve(bytes_); !reserved) return reserved.error();
  if (auto filled = write_zeros(**file, 0, bytes_); !filled) return filled.error();
  if (auto synced = (*file)->sync(); !synced) return synced.error();
  return file;
}

}  // namespace latchkey::storage
