#include "recipes/companions.hpp"

#include <utility>

#include "recipes/commons.hpp"

namespace latchkey::recipes {

std::shared_ptr<Companions> Companions::of(session::Machine& machine, const std::string& directory,
                                           const std::string& name,
                                           const std::vector<std::string>& extra_tags) {
  std::string key = "company";
  for (const std::string& part : {directory, name}) key += '\n' + part;
  for (const std::string& tag : extra_tags) key += '\n' + tag;
  return common<Companions>(machine, key,
                            [&] { return std::make_shared<Companions>(machine, extra_tags); });
}

Companions::Id Companions::join(Companion& one) {
  members_.emplace(++last_, &one);
  return last_;
}

bool Companions::enters(Id id) {
  const bool waits = company_.enters(id);
  tell_due();
  return waits;
}

void Companions::is_at(Id id, const queue::Place& place) {
  company_.is_at(id, place);
  tell_due();
}

void Companions::holds(Id id) {
  company_.holds(id);
  tell_due();
}

void Companions::leaves(Id id, const std::string& name) {
  if (members_.erase(id) == 0) return;
  std::erase_if(watchers_, [&](const auto& item) { return item.second == id; });
  company_.leaves(id);
  std::vector<Id> watchers;
  for (auto [at, end] = watchers_.equal_range(name); at != end; ++at)
    watchers.push_back(at->second);
  watchers_.erase(name);
  for (const Id watcher : watchers) {
    tell([this, watcher, name] {
      if (const auto one = members_.find(watcher); one != members_.end()) {
        one->second->companion_left(name);
      }
    });
  }
  tell_due();
}

void Companions::forget(Id id) {
  members_.erase(id);
  company_.leaves(id);
  static_cast<void>(company_.take_due());
}

bool Companions::watch(Id id, const std::string& name) {
  const auto owner = company_.owner_of(name);
  if (!owner) return false;
  watchers_.emplace(name, id);
  tell_to_watch(*owner);
  return true;
}

void Companions::tell_to_watch(Id id) {
  tell([this, id] {
    const auto one = members_.find(id);
    if (one != members_.end()) one->second->watch_yourself();
  });
}

void Companions::unwatch(Id id, const std::string& name) {
  std::erase_if(watchers_,
                [&](const auto& item) { return item.first == name && item.second == id; });
}

void Companions::tell_due() {
  for (const Id near : company_.take_near()) tell_to_watch(near);
  for (const Id due : company_.take_due()) {
    tell([this, due] {
      const auto one = members_.find(due);
      if (one != members_.end()) one->second->is_due(company_.known_to(due));
    });
  }
}

/// One after the other, however many follow from each other. A session that is over is told to each
/// of them by itself, and nothing else any more: nobody holds by what somebody else has left.
void Companions::tell(Tiding tiding) {
  const auto alive = shared_from_this();
  inbox_.put(std::move(tiding), [this](const Tiding& next) {
    if (!machine_.is_ending()) next();
  });
}

}  // namespace latchkey::recipes
