#include "tree/record.hpp"

#include "wire/frame.hpp"

namespace latchkey::tree {

std::string encode(const Record& record) {
  constexpr std::size_t kOrdinary = 256;
  std::string bytes;
  bytes.reserve(kOrdinary);
  wire::Writer writer(bytes);
  writer(record);
  return bytes;
}

std::optional<Record> decode_record(std::int64_t zxid, std::string_view bytes) {
  std::optional<Record> record = wire::decode<Record>(bytes);
  if (record) record->zxid = zxid;
  return record;
}

}  // namespace latchkey::tree
