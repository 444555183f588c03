#pragma once

#include <stop_token>
#include <string_view>
#include <utility>

#include "storage/journal.hpp"
#include "tree/tree.hpp"

namespace latchkey::server {

/// A tree as storage sees it. Thread safety: one thread at a time.
class TreeState final : public storage::State {
 public:
  /// `tree` must outlive this and be empty before the first call. What is stored is fed until it is
  /// `cancelled`.
  explicit TreeState(tree::Tree& tree, std::stop_token cancelled = {})
      : tree_(tree), cancelled_(std::move(cancelled)) {}

  Result<void> load(std::string_view item) override { return tree_.load(item); }
  Result<void> replay(const storage::Entry& entry) override {
    return tree_.replay(entry.zxid, entry.bytes);
  }
  void save(base::FunctionRef<void(std::string_view item)> sink) const override {
    tree_.save(sink);
  }
  bool is_cancelled() const override { return cancelled_.stop_requested(); }

 private:
  tree::Tree& tree_;
  const std::stop_token cancelled_;
};

}  // namespace latchkey::server
