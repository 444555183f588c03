#pragma once

#include <optional>

#include "latchkey/election.hpp"

namespace latchkey::queue {

/// What one observer of an election has been shown, so that it hears of every change once and never
/// of a leader older than one it has seen: a lagging server may still show that (H76).
/// Thread safety: one thread at a time.
class Succession {
 public:
  /// Is this news? Then it counts as shown.
  [[nodiscard]] bool is_news(const std::optional<Leader>& leader) {
    if (leader && largest_ && leader->token < *largest_) return false;
    if (any_ && leader == shown_) return false;
    any_ = true;
    shown_ = leader;
    if (leader) largest_ = leader->token;
    return true;
  }

 private:
  bool any_ = false;
  std::optional<Leader> shown_;
  std::optional<Token> largest_;
};

}  // namespace latchkey::queue
