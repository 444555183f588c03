#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "latchkey/mutex.hpp"
#include "latchkey/node.hpp"
#include "latchkey/path.hpp"
#include "queue/contender.hpp"
#include "recipes/companions.hpp"
#include "recipes/recipe.hpp"

namespace latchkey::recipes {

struct Plan;

/// What the entries of one such lock have in common.
struct EntryStyle {
  queue::Contender::Options contender = {};  ///< Its directory and `wait` are filled in.
  std::string reason = {};
  /// Of our nodes; without it they say who we are.
  std::optional<std::string> data = {};
  std::chrono::milliseconds lock_delay{0};  ///< Noted in the data: see queue/delay_note.hpp.
  std::vector<Acl> acl = open_acl();
  Parent parent = Parent::kContainer;
};

/// The recipe that is one entry in one queue: mutex, either side of a read-write lock, election.
/// Thread safety: any thread.
class QueueRecipe final : public Recipe {
 public:
  QueueRecipe(std::shared_ptr<session::Host> host, Path directory, EntryStyle style);

  [[nodiscard]] Result<void> check() const override;
  std::shared_ptr<Claim> start(session::Machine& machine, queue::Wait wait,
                               std::shared_ptr<Claimant> claimant) const override;

 private:
  [[nodiscard]] std::shared_ptr<const Plan> make_plan(session::Machine& machine,
                                                      queue::Wait wait) const;

  const Path directory_;
  const EntryStyle style_;
  // Session strand only: of the last entry. Whoever locks often says the same for a second.
  mutable std::int64_t planned_at_ = -1;
  mutable std::shared_ptr<const Plan> plan_;
  mutable std::shared_ptr<Companions> company_;  ///< Kept, so that it need not be found each time.
};

/// The recipe of a mutex: a queue, with the lock delay and the local hand-over it asks for.
[[nodiscard]] std::shared_ptr<const Recipe> mutex_recipe(const std::shared_ptr<session::Host>& host,
                                                         Path directory,
                                                         const MutexOptions& options);

}  // namespace latchkey::recipes
