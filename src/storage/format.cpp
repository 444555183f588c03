#include "storage/format.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <limits>

#include "base/assert.hpp"
#include "storage/checksum.hpp"
#include "storage/number.hpp"

namespace latchkey::storage {
namespace {

constexpr std::string_view kFileMagic = "LATCHKEY";
constexpr std::uint32_t kBatchMagic = 0x54424b4c;  // "LKBT"
constexpr std::size_t kKeptCapacity = std::size_t{4} << 20U;
constexpr std::string_view kJournalPrefix = "journal-";
constexpr std::string_view kSnapshotPrefix = "snapshot-";

std::string hex16(std::uint64_t number) {
  char digits[16];
  const auto end = std::to_chars(digits, std::end(digits), number, 16).ptr;
  const std::string text(digits, end);
  return std::string(16 - text.size(), '0') + text;
}

void mask_with(std::uint64_t mask, char* bytes, std::size_t size) {
  if (mask == 0) return;
  for (std::size_t i = 0; i < size; i += sizeof mask) {
    put_number(bytes + i, get_number<std::uint64_t>(bytes + i) ^ mask);
  }
}

bool has_two_bits(const char* sector, std::uint64_t mask) {
  int bits = 0;
  for (std::size_t i = 0; i < kSector && bits < 2; i += sizeof mask) {
    bits += std::popcount(get_number<std::uint64_t>(sector + i) ^ mask);
  }
  return bits >= 2;
}

/// The sectors between the one with the header and the one with the checksum would do.
bool suits(std::uint64_t mask, std::string_view batch) {
  for (std::size_t at = kSector; at + kSector < batch.size(); at += kSector) {
    if (!has_two_bits(batch.data() + at, mask)) return false;
  }
  return true;
}

std::uint64_t find_mask(std::string_view batch) {
  // A sector rules out its own repeated word and those one bit beside it, so a few tries are
  // enough.
  std::uint64_t mask = 0;
  while (!suits(mask, batch)) mask = mask * 6364136223846793005U + 0x9e3779b97f4a7c15U;
  return mask;
}

}  // namespace

std::string encode(const FileHeader& header) {
  std::string sector(kSector, '\0');
  kFileMagic.copy(sector.data(), kFileMagic.size());
  put_number(&sector[8], kFormatVersion);
  put_number(&sector[12], static_cast<std::uint32_t>(header.kind));
  put_number(&sector[16], header.salt);
  put_number(&sector[24], header.after.sequence);
  put_number(&sector[32], header.after.chain);
  put_number(&sector[40], header.after.zxid);
  put_number(&sector[48], header.bytes);
  const std::size_t end = kSector - kChecksumBytes;
  put_number(&sector[end], checksum({sector.data(), end}, 0));
  return sector;
}

Result<FileHeader> decode_file_header(std::string_view sector) {
  LATCHKEY_ASSERT(sector.size() == kSector);
  const std::size_t end = kSector - kChecksumBytes;
  if (!sector.starts_with(kFileMagic) ||
      get_number<std::uint64_t>(&sector[end]) != checksum(sector.substr(0, end), 0)) {
    return Error{Code::kDamaged, "the file header does not match its checksum, at offset 0"};
  }
  const auto version = get_number<std::uint32_t>(&sector[8]);
  if (version != kFormatVersion) {
    return Error{Code::kStorage, "the file has format version " + std::to_string(version) +
                                     ", this program knows " + std::to_string(kFormatVersion) +
                                     ": start the newer version that wrote it"};
  }
  FileHeader header;
  header.kind = static_cast<FileKind>(get_number<std::uint32_t>(&sector[12]));
  header.salt = get_number<std::uint64_t>(&sector[16]);
  header.after.sequence = get_number<std::uint64_t>(&sector[24]);
  header.after.chain = get_number<std::uint64_t>(&sector[32]);
  header.after.zxid = get_number<std::int64_t>(&sector[40]);
  header.bytes = get_number<std::uint64_t>(&sector[48]);
  return header;
}

std::string file_name(FileKind kind, const Place& after) {
  const bool journal = kind == FileKind::kJournal;
  const std::uint64_t first = journal ? 1 : 0;
  return std::string(journal ? kJournalPrefix : kSnapshotPrefix) +
         hex16(static_cast<std::uint64_t>(after.zxid) + first) + "-" +
         hex16(after.sequence + first);
}

std::optional<FileKind> kind_of(std::string_view name) {
  const bool journal = name.starts_with(kJournalPrefix);
  if (!journal && !name.starts_with(kSnapshotPrefix)) return std::nullopt;
  name.remove_prefix((journal ? kJournalPrefix : kSnapshotPrefix).size());
  if (name.size() != 33 || name[16] != '-') return std::nullopt;
  if (name.find_first_not_of("0123456789abcdef-") != name.npos) return std::nullopt;
  return journal ? FileKind::kJournal : FileKind::kSnapshot;
}

std::optional<BatchHeader> decode_batch_header(std::string_view sector, std::uint64_t salt) {
  LATCHKEY_ASSERT(sector.size() >= kBatchHeaderBytes);
  const std::size_t end = kBatchHeaderBytes - kChecksumBytes;
  if (get_number<std::uint32_t>(sector.data()) != kBatchMagic) return std::nullopt;
  if (get_number<std::uint64_t>(&sector[end]) != checksum(sector.substr(0, end), salt)) {
    return std::nullopt;
  }
  BatchHeader header;
  header.kind = static_cast<BatchKind>(get_number<std::uint32_t>(&sector[4]));
  header.sequence = get_number<std::uint64_t>(&sector[8]);
  header.chain = get_number<std::uint64_t>(&sector[16]);
  header.sectors = get_number<std::uint32_t>(&sector[24]);
  header.count = get_number<std::uint32_t>(&sector[28]);
  header.mask = get_number<std::uint64_t>(&sector[32]);
  return header;
}

void Batch::add(std::int64_t number, std::string_view bytes) {
  LATCHKEY_ASSERT(bytes.size() <= std::numeric_limits<std::uint32_t>::max());
  char head[kRecordHeaderBytes];
  put_number(head, number);
  put_number(head + 8, static_cast<std::uint32_t>(bytes.size()));
  bytes_.append(head, sizeof head);
  bytes_.append(bytes);
  ++count_;
  last_number_ = number;
}

std::size_t Batch::sealed_bytes() const {
  return (bytes_.size() + kChecksumBytes + kSector - 1) / kSector * kSector;
}

Place Batch::seal(BatchKind kind, const Place& after, std::uint64_t salt) {
  bytes_.resize(sealed_bytes(), '\0');
  LATCHKEY_ASSERT(bytes_.size() <= kMaxBatchBytes);
  const std::uint64_t mask = find_mask(bytes_);
  const std::size_t end = bytes_.size() - kChecksumBytes;
  mask_with(mask, &bytes_[kBatchHeaderBytes], end - kBatchHeaderBytes);

  put_number(bytes_.data(), kBatchMagic);
  put_number(&bytes_[4], static_cast<std::uint32_t>(kind));
  put_number(&bytes_[8], after.sequence + 1);
  put_number(&bytes_[16], after.chain);
  put_number(&bytes_[24], static_cast<std::uint32_t>(bytes_.size() / kSector));
  put_number(&bytes_[28], count_);
  put_number(&bytes_[32], mask);
  put_number(&bytes_[40], checksum({bytes_.data(), kBatchHeaderBytes - kChecksumBytes}, salt));
  const std::uint64_t sum = checksum({bytes_.data(), end}, salt);
  put_number(&bytes_[end], sum);
  return {after.sequence + 1, sum, kind == BatchKind::kEntries ? last_number_ : after.zxid};
}

void Batch::clear() {
  if (bytes_.capacity() > kKeptCapacity) std::string().swap(bytes_);
  bytes_.assign(kBatchHeaderBytes, '\0');
  count_ = 0;
}

bool decode_records(char* batch, const BatchHeader& header, std::vector<Entry>& records) {
  const std::size_t end = std::size_t{header.sectors} * kSector - kChecksumBytes;
  mask_with(header.mask, batch + kBatchHeaderBytes, end - kBatchHeaderBytes);
  records.clear();
  std::size_t at = kBatchHeaderBytes;
  for (std::uint32_t i = 0; i < header.count; ++i) {
    if (end - at < kRecordHeaderBytes) return false;
    const auto number = get_number<std::int64_t>(batch + at);
    const std::size_t size = get_number<std::uint32_t>(batch + at + 8);
    at += kRecordHeaderBytes;
    if (end - at < size) return false;
    records.push_back({number, {batch + at, size}});
    at += size;
  }
  return end - at < kSector && is_zero({batch + at, end - at});
}

bool is_zero(std::string_view bytes) noexcept {
  return bytes.empty() ||
         (bytes[0] == '\0' && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

std::string zxid_text(std::int64_t zxid) {
  char digits[16];
  const auto end =
      std::to_chars(digits, std::end(digits), static_cast<std::uint64_t>(zxid), 16).ptr;
  return "0x" + std::string(digits, end);
}

}  // namespace latchkey::storage
