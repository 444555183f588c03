#include "support/seeded_data.hpp"

#include <fstream>
#include <stdexcept>
#include <string_view>

#include "server/tree_state.hpp"
#include "storage/file_journal.hpp"
#include "support/raw_client.hpp"
#include "tree/record.hpp"
#include "tree/tree.hpp"
#include "wire/jute.hpp"

namespace latchkey::test_support {
namespace {

std::int64_t adler32(std::string_view bytes) {
  std::uint32_t a = 1;
  std::uint32_t b = 0;
  for (const char byte : bytes) {
    a = (a + static_cast<unsigned char>(byte)) % 65'521;
    b = (b + a) % 65'521;
  }
  return static_cast<std::int64_t>(b) << 16U | a;
}

/// One of Apache's log files.
class TransactionLog {
 public:
  TransactionLog() { put(std::int32_t{0x5A4B4C47}, std::int32_t{2}, std::int64_t{0}); }  // "ZKLG"

  void create(const std::string& path, std::int32_t creates) {
    std::string body;
    wire::Writer writer(body);
    const wire::Create open = create_request(path, wire::CreateMode::kPersistent);
    writer(path, open.data, open.acl, false, creates);
    add(1, body);
  }
  void remove(const std::string& path) {
    std::string body;
    wire::Writer{body}(path);
    add(2, body);
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  template <class... Fields>
  void put(const Fields&... fields) {
    wire::Writer{bytes_}(fields...);
  }

  void add(std::int32_t type, const std::string& body) {
    std::string record;
    wire::Writer{record}(std::int64_t{0}, std::int32_t{0}, ++zxid_, std::int64_t{0}, type);
    record += body;
    put(adler32(record), record);
    bytes_ += 'B';
  }

  std::string bytes_;
  std::int64_t zxid_ = 0;
};

void append(storage::Journal& journal, const tree::Record& record) {
  const std::string bytes = encode(record);
  const storage::Entry entry{record.zxid, bytes};
  const Result<void> stored = journal.append({&entry, 1});
  if (!stored) throw std::runtime_error("seed the journal: " + stored.error().message());
}

}  // namespace

void SeededData::save_for_apache(const std::filesystem::path& folder) const {
  TransactionLog log;
  for (const Step& step : steps_) {
    step.creates == kRemoved ? log.remove(step.path) : log.create(step.path, step.creates);
  }
  std::filesystem::create_directories(folder / "version-2");
  std::ofstream(folder / "version-2" / "log.1", std::ios::binary) << log.bytes();
}

void SeededData::save_for_embedded(const std::filesystem::path& folder) const {
  tree::Tree tree;
  server::TreeState state(tree);
  const auto journal = storage::FileJournal::open(folder, {}, state);
  if (!journal) throw std::runtime_error("seed the journal: " + journal.error().message());
  append(**journal, tree.begin_epoch(1));
  for (const Step& step : steps_) {
    tree::Change change{tree::Change::Kind::kDelete, step.path};
    if (step.creates != kRemoved) {
      change.kind = tree::Change::Kind::kCreate;
      change.acl = *tree::open_list();
      change.version = step.creates;
    }
    tree::Record record;
    record.zxid = tree.spend_zxid();
    record.time_ms = 1;
    record.changes = {std::move(change)};
    append(**journal, record);
  }
  if (const auto closed = (*journal)->close(); !closed) {
    throw std::runtime_error("seed the journal: " + closed.error().message());
  }
}

}  // namespace latchkey::test_support
