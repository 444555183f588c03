#include "queue/company.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "base/mutant.hpp"

namespace latchkey::queue {
namespace {

/// So many hand-overs between threads take at least as long as a round trip behind a write.
constexpr std::size_t kNear = 32;

/// More than this are not kept for those who come back.
constexpr std::size_t kMostLeft = 64;

}  // namespace

bool Company::enters(Id id) {
  Member& member = members_[id];
  forget_place(id, member);
  // Behind a holder alone it is due as soon as it has a place: then it may as well look at once.
  member = {.waits = members_.size() - 1 > holders_};
  return member.waits;
}

void Company::is_at(Id id, const Place& place, const std::string& replaced) {
  const auto found = members_.find(id);
  if (found == members_.end()) return;
  forget_place(id, found->second);
  const bool is_next = std::int64_t{place.number} == std::int64_t{last_} + 1 ||
                       base::mutated(base::Mutant::kGapIgnored);
  if (take_known(replaced) && is_next) {
    listed_.emplace(place.number, place.name);
    last_ = place.number;
  }
  found->second.entry = Entry{place.number, place.name};
  consider(line_.emplace(place.number, id).first);
}

void Company::goes_alone(Id id) {
  const auto found = members_.find(id);
  if (found != members_.end()) found->second.waits = false;
}

void Company::holds(Id id) {
  const auto found = members_.find(id);
  if (found == members_.end() || !found->second.entry) return;
  if (!std::exchange(found->second.holds, true)) ++holders_;
  // Whoever was ahead is gone, if that list was of this queue and not of one made anew since; or it
  // is ours, given up before the list came, and perhaps not yet deleted.
  if (const auto own = listed_.find(*found->second.entry); own != listed_.end()) {
    for (auto at = listed_.begin(); at != own; at = listed_.erase(at)) keep_left(at->second);
  }
  consider(std::next(line_.find({found->second.entry->first, id})));
}

void Company::leaves(Id id) {
  const auto found = members_.find(id);
  if (found == members_.end()) return;
  forget_place(id, found->second);
  members_.erase(found);
}

void Company::forget_place(Id id, Member& member) {
  if (std::exchange(member.holds, false)) --holders_;
  if (!member.entry) return;
  if (listed_.erase(*member.entry) > 0) keep_left(member.entry->second);
  const auto next = line_.erase(line_.find({member.entry->first, id}));
  member.entry.reset();
  consider(next);
}

void Company::keep_left(const std::string& name) {
  if (left_.size() == kMostLeft) left_.erase(left_.begin());
  left_.push_back(name);
}

bool Company::take_known(const std::string& replaced) {
  if (replaced.empty()) return false;
  if (std::erase(left_, replaced) > 0) return true;
  // The list came after it was given up, and before its delete.
  const auto entry = parse(replaced);
  return entry && listed_.erase(*entry) > 0;
}

void Company::consider(Line::const_iterator at) {
  if (at == line_.end()) return;
  Member& member = members_.at(at->second);
  if (!member.waits) return;
  if (at != line_.begin() && !members_.at(std::prev(at)->second).holds) return;
  member.waits = false;
  due_.push_back(at->second);
}

std::optional<Company::Entry> Company::parse(const std::string& child) const {
  const auto place = parse_place(child, extra_tags_);
  if (!place) return std::nullopt;
  return Entry{place->number, child};
}

void Company::listed(const std::vector<std::string>& children) {
  listed_.clear();
  left_.clear();
  last_ = 0;
  // It is good for those whose entries are in it, and whoever comes later has none in there.
  if (members_.size() < 2) return;
  // That it is no queue at all is for each of them to see.
  if (std::find(children.begin(), children.end(), kLeases) != children.end()) return;
  for (const std::string& child : children) {
    auto entry = parse(child);
    if (!entry) continue;
    last_ = std::max(last_, entry->first);
    listed_.insert(*std::move(entry));
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
  const auto at = line_.find({found->second.entry->first, id});
  if (at == line_.begin()) return std::nullopt;
  return members_.at(std::prev(at)->second).entry->second;
}

std::string Company::entry_of(Id id) const {
  const auto found = members_.find(id);
  return found != members_.end() && found->second.entry ? found->second.entry->second : "";
}

std::string Company::describe() const {
  std::string text;
  for (const auto& [id, member] : members_) {
    text += std::to_string(id) + (member.waits ? " waits" : "") + (member.holds ? " holds" : "") +
            (member.near ? " near" : "") +
            (member.entry ? ' ' + member.entry->second : std::string()) + '\n';
  }
  for (const auto& [number, name] : listed_) text += "listed " + name + '\n';
  for (const std::string& name : left_) text += "left " + name + '\n';
  if (!left_.empty() || !listed_.empty()) text += "last " + std::to_string(last_) + '\n';
  return text;
}

std::optional<Company::Id> Company::owner_of(const std::string& name) const {
  const auto entry = parse(name);
  if (!entry) return std::nullopt;
  // More than one of a number only where the counter has ended (H35).
  for (auto at = line_.lower_bound({entry->first, 0}); at != line_.end(); ++at) {
    if (at->first != entry->first) break;
    if (members_.at(at->second).entry->second == name) return at->second;
  }
  return std::nullopt;
}

}  // namespace latchkey::queue
