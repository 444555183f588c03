#pragma once

#include "storage/journal.hpp"

namespace latchkey::storage {

/// A journal that keeps nothing: for tests and for a server whose data may die with it. It never
/// needs folding, and folding it does nothing.
///
/// Thread safety: as Journal.
class MemoryJournal final : public Journal {
 public:
  Result<void> append(std::span<const Entry> batch) override;
  [[nodiscard]] bool needs_folding() const override { return false; }
  Result<void> fold(State& empty) override;
  Result<void> close() override;

 private:
  std::int64_t last_zxid_ = 0;
  bool closed_ = false;
};

}  // namespace latchkey::storage
