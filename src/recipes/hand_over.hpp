#pragma once

#include <memory>
#include <string>

#include "latchkey/mutex.hpp"
#include "recipes/recipe.hpp"

namespace latchkey::recipes {

/// Those of one session who want the same lock share one claim to it and pass it on among
/// themselves, a bounded number of times and for a bounded time, before others get their turn
/// (H70). Each hold has a token of its own: that of the claim, and the number of the hold within
/// it. Thread safety: any thread.
class HandOverRecipe final : public Recipe {
 public:
  /// Recipes with the same `key` on one session share.
  HandOverRecipe(std::shared_ptr<const Recipe> below, std::string key, HandOver limits);

  [[nodiscard]] Result<void> check() const override;
  std::shared_ptr<Claim> start(session::Machine& machine, queue::Wait wait,
                               std::shared_ptr<Claimant> claimant) const override;

 private:
  const std::shared_ptr<const Recipe> below_;
  const std::string key_;
  const HandOver limits_;
};

}  // namespace latchkey::recipes
