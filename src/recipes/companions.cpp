#include "recipes/companions.hpp"

#include <algorithm>
#include <utility>

#include "recipes/commons.hpp"

namespace latchkey::recipes {

std::shared_ptr<Companions> Companions::of(session::Machine& machine, const std::string& directory,
                                           const std::string& name,
                                           const std::vector<std::string>& extra_tags) {
  std::string key = "company";
  for (const std::string& part : {directory, name}) key += '\n' + part;
  for (const std::string& tag : extra_tags) key += '\n' + tag;
  return common<Companions>(machine, key, [&] { return std::make_shared<Companions>(machine); });
}

Companions::Id Companions::join(Companion& one) {
  // Nobody is left of them: who comes now is alone again.
  if (several_ && several_->members.empty() && !several_->inbox.is_busy()) several_.reset();
  if (!several_ && lone_.one == nullptr) {
    lone_ = {.one = &one};
    return ++last_;
  }
  if (!several_) make_company();
  several_->members.emplace(++last_, &one);
  return last_;
}

void Companions::make_company() {
  several_ = std::make_unique<Several>(lone_.one->extra_tags());
  several_->members.emplace(last_, lone_.one);
  queue::Company& company = several_->company;
  if (lone_.has_entered) static_cast<void>(company.enters(last_));
  const std::optional<queue::Place>& place = lone_.one->stands_at();
  if (lone_.has_place && place) company.is_at(last_, *place);
  if (lone_.holds) company.holds(last_);
  lone_ = {};
}

bool Companions::enters(Id id) {
  if (!several_) {
    lone_ = {.one = lone_.one, .has_entered = true};
    return false;
  }
  const bool waits = several_->company.enters(id);
  tell_due();
  return waits;
}

void Companions::is_at(Id id, const queue::Place& place, const std::string& replaced) {
  if (!several_) {
    lone_.has_place = true;
    lone_.holds = false;
    return;
  }
  several_->company.is_at(id, place, replaced);
  tell_due();
}

void Companions::goes_alone(Id id) {
  if (several_) several_->company.goes_alone(id);
}

void Companions::holds(Id id) {
  if (!several_) {
    lone_.holds = lone_.has_place;
    return;
  }
  several_->company.holds(id);
  tell_due();
}

void Companions::leaves(Id id) {
  if (!several_) {
    lone_ = {};
    return;
  }
  auto& [company, inbox, members, watchers] = *several_;
  if (members.erase(id) == 0) return;
  const std::string name = company.entry_of(id);
  std::erase_if(watchers, [&](const auto& item) { return item.second == id; });
  company.leaves(id);
  std::vector<Id> hearing;
  for (auto [at, end] = watchers.equal_range(name); at != end; ++at) hearing.push_back(at->second);
  watchers.erase(name);
  for (const Id watcher : hearing) {
    tell([this, watcher, name] {
      const auto one = several_->members.find(watcher);
      if (one != several_->members.end()) one->second->companion_left(name);
    });
  }
  tell_due();
}

void Companions::forget(Id id) {
  if (!several_) {
    lone_ = {};
    return;
  }
  several_->members.erase(id);
  several_->company.leaves(id);
  static_cast<void>(several_->company.take_due());
}

void Companions::listed(const std::vector<std::string>& children) {
  if (several_) several_->company.listed(children);
}

void Companions::gone(const std::string& name) {
  if (several_) several_->company.gone(name);
}

bool Companions::is_known_by(Id id, const std::string& name) const {
  if (several_) return several_->company.entry_of(id) == name;
  if (!lone_.has_place) return false;
  const std::optional<queue::Place>& place = lone_.one->stands_at();
  return !place || place->name == name;
}

std::optional<std::string> Companions::ahead_of(Id id) const {
  return several_ ? several_->company.ahead_of(id) : std::nullopt;
}

std::string Companions::last_left(
    base::FunctionRef<bool(const std::string& entry)> is_wanted) const {
  if (!several_) return {};
  const std::vector<std::string>& left = several_->company.left();
  const auto found = std::find_if(left.rbegin(), left.rend(), is_wanted);
  return found == left.rend() ? std::string() : *found;
}

bool Companions::watch(Id id, const std::string& name) {
  if (!several_) return false;
  const auto owner = several_->company.owner_of(name);
  if (!owner) return false;
  several_->watchers.emplace(name, id);
  tell_to_watch(*owner);
  return true;
}

void Companions::tell_to_watch(Id id) {
  tell([this, id] {
    const auto one = several_->members.find(id);
    if (one != several_->members.end()) one->second->watch_yourself();
  });
}

void Companions::unwatch(Id id, const std::string& name) {
  if (!several_) return;
  std::erase_if(several_->watchers,
                [&](const auto& item) { return item.first == name && item.second == id; });
}

void Companions::tell_due() {
  queue::Company& company = several_->company;
  for (const Id near : company.take_near()) tell_to_watch(near);
  for (const Id due : company.take_due()) {
    tell([this, due] {
      const auto one = several_->members.find(due);
      if (one != several_->members.end()) one->second->is_due(several_->company.known_to(due));
    });
  }
}

/// One after the other, however many follow from each other. A session that is over is told to each
/// of them by itself, and nothing else any more: nobody holds by what somebody else has left.
void Companions::tell(Tiding tiding) {
  const auto alive = shared_from_this();
  several_->inbox.put(std::move(tiding), [this](const Tiding& next) {
    if (!machine_.is_ending()) next();
  });
}

}  // namespace latchkey::recipes
