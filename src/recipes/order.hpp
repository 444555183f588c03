#pragma once

#include <memory>
#include <stop_token>
#include <vector>

#include "latchkey/lock_request.hpp"
#include "recipes/recipe.hpp"

namespace latchkey::recipes {

/// Everything a LockRequest knows before it is sent.
struct Order {
  std::shared_ptr<const Recipe> recipe;
  queue::Wait wait = queue::Wait::kYes;
  Deadline deadline = Deadline::never();
  std::vector<std::stop_token> stops;
  Executor executor;  ///< Empty: the session's.
};

}  // namespace latchkey::recipes
