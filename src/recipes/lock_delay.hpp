#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "recipes/recipe.hpp"

namespace latchkey::recipes {

/// A lock that is not granted at once after a holder that vanished: whoever comes next waits first,
/// for resources that cannot check tokens and may still hear from the vanished one (H73).
///
/// Whoever waits out the delay keeps its place as long as its session lives, whatever the local
/// clock says meanwhile; see queue::LockDelay. `below` has to know of the delay too, or its entries
/// would end with the lease (EntryStyle::lock_delay). Thread safety: any thread.
class DelayRecipe final : public Recipe {
 public:
  /// `lock_name` as in MutexOptions: refused, because the mark is the directory's.
  DelayRecipe(std::shared_ptr<const Recipe> below, std::chrono::milliseconds delay,
              std::string lock_name);

  [[nodiscard]] Result<void> check() const override;
  std::shared_ptr<Claim> start(session::Machine& machine, queue::Wait wait,
                               std::shared_ptr<Claimant> claimant) const override;

 private:
  const std::shared_ptr<const Recipe> below_;
  const std::chrono::milliseconds delay_;
  const std::string lock_name_;
};

}  // namespace latchkey::recipes
