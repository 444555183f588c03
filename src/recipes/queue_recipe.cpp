#include "recipes/queue_recipe.hpp"

#include <utility>

#include "queue/delay_note.hpp"
#include "queue/node_name.hpp"
#include "recipes/attempt.hpp"
#include "recipes/entry_data.hpp"

namespace latchkey::recipes {

QueueRecipe::QueueRecipe(std::shared_ptr<session::Host> host, Path directory, EntryStyle style)
    : Recipe(std::move(host), directory.text()),
      directory_(std::move(directory)),
      style_(std::move(style)) {}

Result<void> QueueRecipe::check() const {
  if (auto valid = directory_.check(); !valid) return valid;
  const std::string& name = style_.contender.lock_name;
  if (!name.empty() && !queue::is_lock_name(name)) {
    return Error(Code::kInvalidOption, "lock name \"" + name +
                                           "\": it must not contain / or _lock_ or control "
                                           "characters");
  }
  return {};
}

std::shared_ptr<Claim> QueueRecipe::start(session::Machine& machine, queue::Wait wait,
                                          std::shared_ptr<Claimant> claimant) const {
  Plan plan{.contender = style_.contender,
            .data = queue::with_delay_note(style_.data ? *style_.data : entry_data(style_.reason),
                                           style_.lock_delay),
            .acl = style_.acl,
            .parent = style_.parent};
  plan.contender.directory = path();
  plan.contender.wait = wait;
  // Whoever waits out a delay keeps its place; what ends with the lease is the claim on top of it.
  if (style_.lock_delay.count() != 0) plan.contender.until = queue::Until::kNodeGoes;
  return Attempt::start(host(), machine, std::move(plan), std::move(claimant));
}

}  // namespace latchkey::recipes
