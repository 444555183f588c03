#include "recipes/queue_recipe.hpp"

#include <utility>

#include "base/surroundings.hpp"
#include "queue/delay_note.hpp"
#include "queue/node_name.hpp"
#include "recipes/attempt.hpp"
#include "recipes/entry_data.hpp"
#include "recipes/misuse.hpp"

namespace latchkey::recipes {

QueueRecipe::QueueRecipe(std::shared_ptr<session::Host> host, Path directory, EntryStyle style)
    : Recipe(std::move(host), directory.text()),
      directory_(std::move(directory)),
      style_(std::move(style)) {}

Result<void> QueueRecipe::check() const {
  if (auto valid = check_place(*host(), directory_); !valid) return valid;
  for (const std::string& tag : style_.contender.extra_tags) {
    // One that is empty would make every child with a number at its end a contender.
    if (tag.empty()) return invalid_option(path(), "an extra tag is empty", "such as \"mylock-\"");
  }
  const std::string& name = style_.contender.lock_name;
  if (!name.empty() && !queue::is_lock_name(name)) {
    return Error(Code::kInvalidOption, "lock name \"" + name +
                                           "\": it must not contain / or _lock_ or control "
                                           "characters");
  }
  return {};
}

std::shared_ptr<const Plan> QueueRecipe::make_plan(session::Machine& machine,
                                                   queue::Wait wait) const {
  queue::Contender::Options options = style_.contender;
  options.directory = path();
  options.wait = wait;
  // Whoever waits out a delay keeps its place; what ends with the lease is the claim on top of it.
  if (style_.lock_delay.count() != 0) options.until = queue::Until::kNodeGoes;
  Plan plan{.contender = std::make_shared<const queue::Contender::Options>(std::move(options)),
            .data = queue::with_delay_note(style_.data ? *style_.data : entry_data(style_.reason),
                                           style_.lock_delay),
            .acl = style_.acl,
            .parent = style_.parent};
  const bool in_company = style_.contender.tag == queue::Tag::kLock &&
                          style_.contender.watching == queue::Watching::kNearest &&
                          style_.lock_delay.count() == 0 && wait == queue::Wait::kYes;
  if (in_company) {
    if (!company_) {
      company_ =
          Companions::of(machine, path(), style_.contender.lock_name, style_.contender.extra_tags);
    }
    plan.company = company_;
  }
  return std::make_shared<const Plan>(std::move(plan));
}

std::shared_ptr<Claim> QueueRecipe::start(session::Machine& machine, queue::Wait wait,
                                          std::shared_ptr<Claimant> claimant) const {
  const std::int64_t second = base::wall_ms() / 1'000;
  if (std::exchange(planned_at_, second) != second || !plan_ || plan_->contender->wait != wait) {
    plan_ = make_plan(machine, wait);
  }
  return Attempt::start(host(), machine, plan_, std::move(claimant));
}

}  // namespace latchkey::recipes
