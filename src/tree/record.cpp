#include "tree/record.hpp"

#include "wire/frame.hpp"

namespace latchkey::tree {

std::string encode(const Record& record) {
  std::string bytes;
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
