#pragma once

#include "storage/journal.hpp"
#include "tree/tree.hpp"

namespace latchkey::server {

/// A tree as storage sees it. Thread safety: one thread at a time.
class TreeState final : public storage::State {
 public:
  /// `tree` must outlive this and be empty before the first call.
  explicit TreeState(tree::Tree& tree) : tree_(tree) {}

  Result<void> load(std::string_view item) override { return tree_.load(item); }
  Result<void> replay(const storage::Entry& entry) override {
    return tree_.replay(entry.zxid, entry.bytes);
  }
  void save(base::FunctionRef<void(std::string_view item)> sink) const override {
    tree_.save(sink);
  }

 private:
  tree::Tree& tree_;
};

}  // namespace latchkey::server
