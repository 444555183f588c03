#include "storage/reader.hpp"

#include <algorithm>
#include <cstring>

#include "storage/checksum.hpp"
#include "storage/number.hpp"

namespace latchkey::storage {
namespace {

constexpr std::uint64_t kWindow = std::uint64_t{1} << 20U;

std::uint64_t whole_sectors(std::uint64_t bytes) {
  return (bytes + kSector - 1) / kSector * kSector;
}

bool is_known(BatchKind kind, FileKind file) {
  const BatchKind content = file == FileKind::kJournal ? BatchKind::kEntries : BatchKind::kItems;
  return kind == content || kind == BatchKind::kEnd;
}

}  // namespace

Reader::Reader(std::unique_ptr<File> file, std::uint64_t file_bytes)
    : file_(std::move(file)), file_bytes_(whole_sectors(file_bytes)) {}

Result<Reader> Reader::open(Files& files, const std::string& name) {
  auto file = files.open(name, Access::kRead);
  if (!file) return file.error();
  auto reader = open(*std::move(file));
  if (!reader) {
    return Error{reader.error().code(), files.path_of(name) + ": " + reader.error().message()};
  }
  const std::string own_name = file_name(reader->header_.kind, reader->header_.after);
  if (own_name != name) {
    return Error{Code::kDamaged,
                 files.path_of(name) + ": the header is that of " + own_name + ", at offset 0"};
  }
  return reader;
}

Result<Reader> Reader::open(std::unique_ptr<File> file) {
  const auto size = file->size();
  if (!size) return size.error();
  Reader reader(std::move(file), *size);
  const auto sector = reader.view(0, kSector);
  if (!sector) return sector.error();
  auto header = decode_file_header({*sector, kSector});
  if (!header) return header.error();
  reader.header_ = *header;
  reader.is_cut_ = *size < header->bytes;
  reader.place_ = header->after;
  reader.offset_ = kSector;
  return reader;
}

Result<char*> Reader::view(std::uint64_t offset, std::size_t size) {
  if (offset < window_at_ || offset + size > window_at_ + window_.size()) {
    const std::uint64_t rest = file_bytes_ - std::min(file_bytes_, offset);
    window_.resize(std::max<std::uint64_t>(size, std::min(kWindow, rest)));
    window_at_ = offset;
    const auto got = file_->read(window_.data(), window_.size(), offset);
    if (!got) return got.error();
    std::memset(window_.data() + *got, 0, window_.size() - *got);
  }
  return window_.data() + (offset - window_at_);
}

Result<bool> Reader::next() {
  auto start = view(offset_, kSector);
  if (!start) return start.error();
  const auto header = decode_batch_header({*start, kSector}, header_.salt);
  if (!header) return judge_header(std::string(*start, kSector));
  const std::uint64_t size = std::uint64_t{header->sectors} * kSector;
  if (header->sequence != place_.sequence + 1 || header->chain != place_.chain) {
    return stop(End::kDamaged, "a batch stands here that belongs elsewhere", size);
  }
  if (size == 0 || size > kMaxBatchBytes || !is_known(header->kind, header_.kind)) {
    return stop(End::kDamaged, "a batch stands here that this program would not write", size);
  }
  // There is no need to read, and no room for, what is not there.
  if (offset_ + size > file_bytes_) return judge_batch(*header);
  start = view(offset_, size);
  if (!start) return start.error();
  const std::size_t end = size - kChecksumBytes;
  if (get_number<std::uint64_t>(*start + end) != checksum({*start, end}, header_.salt)) {
    return judge_batch(*header);
  }
  if (!accept(*header, *start)) {
    return stop(End::kDamaged, "a batch holds records that this program would not write", size);
  }
  return true;
}

bool Reader::accept(const BatchHeader& header, char* batch) {
  const std::size_t size = std::size_t{header.sectors} * kSector;
  const auto sum = get_number<std::uint64_t>(batch + size - kChecksumBytes);
  if (!decode_records(batch, header, records_)) return false;
  Place place{header.sequence, sum, place_.zxid};
  if (header.kind == BatchKind::kEntries) {
    for (const Entry& entry : records_) {
      if (entry.zxid <= place.zxid) return false;
      place.zxid = entry.zxid;
    }
  }
  place_ = place;
  batch_ = header;
  offset_ += size;
  return true;
}

Result<bool> Reader::judge_header(const std::string& sector) {
  const auto rest = look_behind();
  if (!rest) return rest.error();
  const std::uint64_t left = std::max(rest->end, offset_ + kSector) - offset_;
  if (rest->later_batch) {
    return stop(End::kDamaged, "a batch is not readable, and later ones follow it", left);
  }
  if (is_zero(sector)) {
    return rest->end == 0 ? stop(End::kZeros, {}, 0) : stop(End::kTorn, {}, left);
  }
  // A header ends in its checksum and so never in zero: this one was cut off while it was written.
  if (rest->end == 0 && is_zero(std::string_view(sector).substr(kBatchHeaderBytes - 1))) {
    return stop(End::kTorn, {}, left);
  }
  return stop(End::kDamaged, "the header of a batch does not match its checksum", left);
}

Result<bool> Reader::judge_batch(const BatchHeader& header) {
  const auto rest = look_behind();
  if (!rest) return rest.error();
  const std::uint64_t end = offset_ + std::uint64_t{header.sectors} * kSector;
  const std::uint64_t left = std::max(rest->end, offset_ + kSector) - offset_;
  if (rest->later_batch) {
    return stop(End::kDamaged, "a batch does not match its checksum, and later ones follow it",
                left);
  }
  if (rest->end <= end) {
    const auto gap = has_gap(end);
    if (!gap) return gap.error();
    if (*gap) return stop(End::kTorn, {}, left);
  }
  return stop(End::kDamaged, "a batch does not match its checksum though all of it was written",
              left);
}

/// Whether the batch from offset_ to `end` lacks a sector, or the last byte of its checksum.
Result<bool> Reader::has_gap(std::uint64_t end) {
  if (end > file_bytes_) return false;  // No crash makes a file shorter.
  for (std::uint64_t at = offset_; at < end; at += kSector) {
    const auto sector = view(at, kSector);
    if (!sector) return sector.error();
    if (is_zero({*sector, kSector})) return true;
    if (at + kSector == end && (*sector)[kSector - 1] == '\0') return true;
  }
  return false;
}

Result<Reader::Rest> Reader::look_behind() {
  Rest rest;
  for (std::uint64_t at = offset_ + kSector; at < file_bytes_; at += kSector) {
    const auto sector = view(at, kSector);
    if (!sector) return sector.error();
    if (is_zero({*sector, kSector})) continue;
    rest.end = at + kSector;
    // The next batch is only begun when this one is durable, so its header is proof enough. Copies
    // of older ones may stand in the records; those have smaller numbers.
    const auto header = decode_batch_header({*sector, kSector}, header_.salt);
    if (header && header->sequence > place_.sequence) rest.later_batch = true;
  }
  return rest;
}

bool Reader::stop(End end, std::string reason, std::uint64_t left_bytes) {
  if (is_cut_ && end != End::kDamaged) {
    ending_ = {End::kDamaged, "the file is shorter than it was made", left_bytes};
    return false;
  }
  ending_ = {end, std::move(reason), left_bytes};
  return false;
}

}  // namespace latchkey::storage
