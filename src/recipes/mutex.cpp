#include "latchkey/mutex.hpp"

#include <utility>

#include "recipes/hand_over.hpp"
#include "recipes/lock_delay.hpp"
#include "recipes/queue_recipe.hpp"

namespace latchkey::recipes {
namespace {

/// Whoever would make the same entry in the same queue has the same one; the reason, which is for
/// people, aside. Each part is preceded by its length, so that no two lists look alike.
std::string hand_over_key(const Path& directory, const MutexOptions& options) {
  std::string key;
  const auto add = [&key](const std::string& part) {
    key += std::to_string(part.size()) + ' ' + part;
  };
  add(directory.text());
  add(options.name);
  add(std::to_string(options.lock_delay.count()));
  add(options.parent == Parent::kContainer ? "container" : "persistent");
  for (const std::string& tag : options.extra_tags) add(tag);
  for (const Acl& acl : options.acl) {
    key += '\n';
    add(std::to_string(acl.permissions));
    add(acl.scheme);
    add(acl.id);
  }
  return key;
}

}  // namespace

std::shared_ptr<const Recipe> mutex_recipe(const std::shared_ptr<session::Host>& host,
                                           Path directory, const MutexOptions& options) {
  const bool delayed = options.lock_delay.count() != 0;
  // Other names and tags make others count than the neighbour counted.
  const bool is_plain = !delayed && options.name.empty() && options.extra_tags.empty();
  // What makes no sense is refused there.
  const HandOver& hand_over = options.hand_over;
  const bool hands_over = hand_over.count > 1 || hand_over.count < 0 || hand_over.time.count() < 0;
  std::string key = hands_over ? hand_over_key(directory, options) : std::string();
  std::shared_ptr<const Recipe> recipe = std::make_shared<QueueRecipe>(
      host, std::move(directory),
      EntryStyle{.contender = {.lock_name = options.name,
                               .extra_tags = options.extra_tags,
                               .farewell_from = is_plain ? queue::kDeep : queue::Contender::kNever},
                 .reason = options.reason,
                 .lock_delay = options.lock_delay,
                 .acl = options.acl,
                 // The mark of a vanished holder has to outlive everybody.
                 .parent = delayed ? Parent::kPersistent : options.parent});
  if (delayed)
    recipe = std::make_shared<DelayRecipe>(std::move(recipe), options.lock_delay, options.name);
  if (hands_over) {
    recipe = std::make_shared<HandOverRecipe>(std::move(recipe), std::move(key), hand_over);
  }
  return recipe;
}

}  // namespace latchkey::recipes

namespace latchkey::inline v0 {

Mutex::Mutex(const Session& session, Path directory, MutexOptions options)
    : Lock(recipes::mutex_recipe(session.host(), std::move(directory), options)) {}

}  // namespace latchkey::inline v0
