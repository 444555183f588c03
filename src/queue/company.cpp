#include "queue/company.hpp"

#include <algorithm>
#include <iterator>

namespace latchkey::queue {
namespace {

/// So many hand-overs take at least as long as a round trip.
constexpr std::size_t kNear = 6;

}  // namespace

bool Company::enters(Id id) {
  Member& member = members_[id];
  forget_place(member);
  // Behind a holder alone it is due as soon as it has a place: then it may as well look at once.
  member = {.waits = members_.size() - 1 > holders_};
  return member.waits;
}

void Company::is_at(Id id, const Place& place) {
  const auto found = members_.find(id);
  if (found == members_.end()) return;
  forget_place(found->second);
  found->second.entry = Entry{place.number, place.name};
  consider(line_.emplace(*found->second.entry, id).first);
}

void Company::goes_alone(Id id) {
  const auto found = members_.find(id);
  if (found != members_.end()) found->second.waits = false;
}

void Company::holds(Id id) {
  const auto found = members_.find(id);
  if (found == members_.end() || !found->second.entry) return;
  if (!std::exchange(found->second.holds, true)) ++holders_;
  // Whoever was ahead is gone, if that list was of this queue and not of one made anew since.
  if (const auto own = listed_.find(*found->second.entry); own != listed_.end()) {
    listed_.erase(listed_.begin(), own);
  }
  consider(std::next(line_.find(*found->second.entry)));
}

void Company::leaves(Id id) {
  const auto found = members_.find(id);
  if (found == members_.end()) return;
  forget_place(found->second);
  members_.erase(found);
}

void Company::forget_place(Member& member) {
  if (std::exchange(member.holds, false)) --holders_;
  if (!member.entry) return;
  listed_.erase(*member.entry);
  const auto next = line_.erase(line_.find(*member.entry));
  member.entry.reset();
  consider(next);
}

void Company::consider(Line::const_iterator at) {
  if (at == line_.end()) return;
  Member& member = members_.at(at->second);
  if (!member.waits) return;
  if (at != line_.begin() && !members_.at(std::prev(at)->second).holds) return;
  member.waits = false;
  due_.push_back(at->second);
}

std::optional<Company::Entry> Company::entry_of(const std::string& child) const {
  const auto place = parse_place(child, extra_tags_);
  if (!place) return std::nullopt;
  return Entry{place->number, child};
}

void Company::listed(const std::vector<std::string>& children) {
  listed_.clear();
  // It is good for those whose entries are in it, and whoever comes later has none in there.
  if (members_.size() < 2) return;
  // That it is no queue at all is for each of them to see.
  if (std::find(children.begin(), children.end(), kLeases) != children.end()) return;
  for (const std::string& child : children) {
    if (auto entry = entry_of(child)) listed_.insert(*std::move(entry));
  }
}

void Company::gone(const std::string& name) {
  const auto place = parse_place(name, extra_tags_);
  const bool may_read_on = place && place->read_write && place->share == Share::kExclusive;
  if (place && !may_read_on) listed_.erase({place->number, name});
}

std::vector<Company::Id> Company::take_due() { return std::exchange(due_, {}); }

std::vector<Company::Id> Company::take_near() {
  std::vector<Id> near;
  std::size_t places = 0;
  for (auto at = line_.begin(); at != line_.end() && places < kNear; ++at, ++places) {
    Member& member = members_.at(at->second);
    if (member.waits && !std::exchange(member.near, true)) near.push_back(at->second);
  }
  return near;
}

std::optional<std::vector<std::string>> Company::known_to(Id id) const {
  const auto found = members_.find(id);
  if (found == members_.end() || !found->second.entry) return std::nullopt;
  const auto own = listed_.find(*found->second.entry);
  if (own == listed_.end()) return std::nullopt;
  std::vector<std::string> names;
  // With others of its own number, should there be any (H35).
  for (const auto& [number, name] : listed_) {
    if (number > own->first) break;
    names.push_back(name);
  }
  return names;
}

std::optional<std::string> Company::ahead_of(Id id) const {
  const auto found = members_.find(id);
  if (found == members_.end() || !found->second.entry) return std::nullopt;
  const auto at = line_.find(*found->second.entry);
  if (at == line_.begin()) return std::nullopt;
  return std::prev(at)->first.second;
}

std::string Company::describe() const {
  std::string text;
  for (const auto& [id, member] : members_) {
    text += std::to_string(id) + (member.waits ? " waits" : "") + (member.holds ? " holds" : "") +
            (member.near ? " near" : "") +
            (member.entry ? ' ' + member.entry->second : std::string()) + '\n';
  }
  for (const auto& [number, name] : listed_) text += "listed " + name + '\n';
  return text;
}

std::optional<Company::Id> Company::owner_of(const std::string& name) const {
  const auto entry = entry_of(name);
  const auto at = entry ? line_.find(*entry) : line_.end();
  if (at == line_.end()) return std::nullopt;
  return at->second;
}

}  // namespace latchkey::queue
