#include "storage/memory_journal.hpp"

#include "base/assert.hpp"

namespace latchkey::storage {

Result<void> MemoryJournal::append(std::span<const Entry> batch) {
  if (closed_) return Error{Code::kClosed, "append to a journal that is closed"};
  for (const Entry& entry : batch) {
    LATCHKEY_ASSERT(entry.zxid > last_zxid_);
    last_zxid_ = entry.zxid;
  }
  return {};
}

Result<void> MemoryJournal::fold(State& /*empty*/) { return {}; }

Result<void> MemoryJournal::close() {
  closed_ = true;
  return {};
}

}  // namespace latchkey::storage
