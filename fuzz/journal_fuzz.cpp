// Reads any bytes as a file of the journal. Nothing crashes, and nothing is believed whose checksum
// or place in the chain is wrong. Input: one byte, then the file. An odd byte asks for checksums to
// be made right first, so that what stands behind them is reached too.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "storage/checksum.hpp"
#include "storage/format.hpp"
#include "storage/number.hpp"
#include "storage/reader.hpp"

namespace latchkey::storage {
namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

class BytesFile final : public File {
 public:
  explicit BytesFile(const std::string& bytes) : bytes_(bytes) {}

  Result<std::size_t> read(char* to, std::size_t size, std::uint64_t offset) override {
    return offset < bytes_.size() ? bytes_.copy(to, size, offset) : std::size_t{0};
  }
  Result<void> write(std::string_view, std::uint64_t) override { return refused(); }
  Result<void> reserve(std::uint64_t) override { return refused(); }
  Result<void> sync() override { return refused(); }
  Result<std::uint64_t> size() override { return std::uint64_t{bytes_.size()}; }

 private:
  static Result<void> refused() { return Error{Code::kStorage, "only for reading"}; }

  const std::string& bytes_;
};

constexpr std::size_t kHeaderEnd = kBatchHeaderBytes - kChecksumBytes;

/// Signs the header of the file and every batch that could be one, with the chain as it should be.
void make_right(std::string& file) {
  if (file.size() < kSector) return;
  const std::size_t end = kSector - kChecksumBytes;
  put_number(&file[end], checksum({file.data(), end}, 0));
  const auto salt = get_number<std::uint64_t>(&file[16]);
  auto sequence = get_number<std::uint64_t>(&file[24]);
  auto chain = get_number<std::uint64_t>(&file[32]);
  for (std::size_t at = kSector; at + kSector <= file.size();) {
    const std::size_t size = get_number<std::uint32_t>(&file[at + 24]) * kSector;
    if (size == 0 || size > file.size() - at) return;
    put_number(&file[at + 8], ++sequence);
    put_number(&file[at + 16], chain);
    put_number(&file[at + kHeaderEnd], checksum({&file[at], kHeaderEnd}, salt));
    chain = checksum({&file[at], size - kChecksumBytes}, salt);
    put_number(&file[at + size - kChecksumBytes], chain);
    at += size;
  }
}

/// The batch from `from` to `to` is one that the place after it may rely on.
void check_batch(std::string_view file, const Reader& reader, std::uint64_t from,
                 const Place& before) {
  const std::size_t size = reader.offset() - from;
  require(size >= kSector && size % kSector == 0 && reader.offset() <= file.size());
  const std::string_view batch = file.substr(from, size);
  const std::uint64_t salt = reader.header().salt;
  const std::size_t end = size - kChecksumBytes;
  require(get_number<std::uint64_t>(&batch[end]) == checksum(batch.substr(0, end), salt));
  require(get_number<std::uint64_t>(&batch[kHeaderEnd]) ==
          checksum(batch.substr(0, kHeaderEnd), salt));
  require(get_number<std::uint64_t>(&batch[8]) == before.sequence + 1);
  require(get_number<std::uint64_t>(&batch[16]) == before.chain);
  require(reader.place().chain == get_number<std::uint64_t>(&batch[end]));
  require(reader.place().zxid >= before.zxid);
  std::size_t used = 0;
  for (const Entry& record : reader.records()) used += kRecordHeaderBytes + record.bytes.size();
  require(used <= size);
}

void check(std::string file) {
  auto reader = Reader::open(std::make_unique<BytesFile>(file));
  if (!reader) return;
  // As the reader sees it: whole sectors.
  std::string whole = file;
  whole.resize((file.size() + kSector - 1) / kSector * kSector, '\0');
  for (;;) {
    const std::uint64_t from = reader->offset();
    const Place before = reader->place();
    const auto more = reader->next();
    require(more.has_value());
    if (!*more) break;
    check_batch(whole, *reader, from, before);
  }
  const Ending& ending = reader->ending();
  require(ending.end != End::kZeros || is_zero(std::string_view(whole).substr(
                                           std::min<std::size_t>(reader->offset(), whole.size()))));
  require((ending.end == End::kDamaged) == !ending.reason.empty());
  require(ending.end != End::kTorn || ending.left_bytes > 0);
}

}  // namespace
}  // namespace latchkey::storage

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::string file(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 == 1) latchkey::storage::make_right(file);
  latchkey::storage::check(std::move(file));
  return 0;
}
