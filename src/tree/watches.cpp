#include "tree/watches.hpp"

#include <bit>
#include <limits>
#include <optional>

#include "base/assert.hpp"
#include "base/last_slash.hpp"

namespace latchkey::tree {
namespace {

enum Row : std::size_t { kDataRow, kChildrenRow, kRecursiveRow };

// Two ears for each row, in the order of the rows.
constexpr std::uint8_t kDataOnce = 1;
constexpr std::uint8_t kDataLasting = 2;
constexpr std::uint8_t kChildrenOnce = 4;
constexpr std::uint8_t kChildrenLasting = 8;
constexpr std::uint8_t kDataBelow = 16;
constexpr std::uint8_t kChildrenBelow = 32;

constexpr std::uint8_t kOnce = kDataOnce | kChildrenOnce;
constexpr std::uint8_t kDataEars = kDataOnce | kDataLasting | kDataBelow;
constexpr std::uint8_t kChildrenEars = kChildrenOnce | kChildrenLasting | kChildrenBelow;
constexpr std::uint8_t kAllEars = kDataEars | kChildrenEars;

constexpr std::uint8_t ears_in(std::size_t row) { return static_cast<std::uint8_t>(3U << 2 * row); }

constexpr std::uint32_t kNoSeat = std::numeric_limits<std::uint32_t>::max();

std::optional<std::string_view> watched_parent_of(std::string_view path) {
  const std::size_t slash = base::last_slash(path);
  if (slash == std::string_view::npos || path.size() == 1) return std::nullopt;
  return path.substr(0, slash == 0 ? 1 : slash);
}

}  // namespace

Watches::Ears Watches::ears_of(Kind kind) {
  switch (kind) {
    case Kind::kData: return kDataOnce;
    case Kind::kChildren: return kChildrenOnce;
    case Kind::kPersistent: return kDataLasting | kChildrenLasting;
    case Kind::kRecursive: return kDataBelow | kChildrenBelow;
  }
  return 0;
}

Watches::Ears Watches::ears_of(wire::WatcherType type) {
  switch (type) {
    case wire::WatcherType::kChildren: return kChildrenEars;
    case wire::WatcherType::kData: return kDataEars;
    case wire::WatcherType::kAny: return kAllEars;
  }
  return 0;
}

void Watches::add(Kind kind, PeerId peer, std::string_view path) {
  auto found = places_.find(path);
  if (found == places_.end()) {
    found = places_.try_emplace(std::string(path)).first;
    bytes_ += path.size();
  }
  Place& place = found->second;
  place.path = &found->first;
  Watcher& watcher = peers_[peer];
  watcher.id = peer;
  const auto [entry, fresh_place] =
      watcher.places.try_emplace(&place, Seats{kNoSeat, kNoSeat, kNoSeat});
  if (fresh_place) {
    watcher.bytes += path.size();
    bytes_of_peers_ += path.size();
  }
  Seats& seats = entry->second;

  const Ears ears = ears_of(kind);
  for (std::size_t row = 0; row < kRows; ++row) {
    if ((ears & ears_in(row)) == 0) continue;
    std::vector<Watch>& watches = place.rows[row];
    if (seats[row] == kNoSeat) {
      seats[row] = static_cast<std::uint32_t>(watches.size());
      watches.push_back({&watcher, 0});
    }
    Watch& watch = watches[seats[row]];
    const Ears fresh = ears & ears_in(row) & static_cast<Ears>(~watch.ears);
    set_ears(place, watch, watch.ears | fresh);
    const auto count = static_cast<std::size_t>(std::popcount(fresh));
    watcher.size += count;
    size_ += count;
    if (row == kRecursiveRow) recursive_ += count;
  }
}

Watches::Addition Watches::would_add(Kind kind, PeerId peer, std::string_view path) const {
  const Ears ears = ears_of(kind);
  const Ears missing = ears & static_cast<Ears>(~ears_at(peer, path));
  Addition more;
  more.watches = static_cast<std::size_t>(std::popcount(missing));
  if (missing != ears) return more;
  const auto place = places_.find(path);
  if (place == places_.end()) more.bytes = path.size();
  const auto watcher = peers_.find(peer);
  const bool watches_it = place != places_.end() && watcher != peers_.end() &&
                          watcher->second.places.contains(&place->second);
  if (!watches_it) more.peer_bytes = path.size();
  return more;
}

bool Watches::has(wire::WatcherType type, PeerId peer, std::string_view path) const {
  return (ears_at(peer, path) & ears_of(type)) != 0;
}

Watches::Ears Watches::ears_at(PeerId peer, std::string_view path) const {
  const auto place = places_.find(path);
  const auto watcher = peers_.find(peer);
  if (place == places_.end() || watcher == peers_.end()) return 0;
  const auto seats = watcher->second.places.find(&place->second);
  if (seats == watcher->second.places.end()) return 0;
  Ears ears = 0;
  for (std::size_t row = 0; row < kRows; ++row) {
    if (seats->second[row] != kNoSeat) ears |= place->second.rows[row][seats->second[row]].ears;
  }
  return ears;
}

bool Watches::remove(wire::WatcherType type, PeerId peer, std::string_view path) {
  Place* const place = find_place(path);
  const auto watcher = peers_.find(peer);
  if (place == nullptr || watcher == peers_.end()) return false;
  return watcher->second.places.contains(place) && take(watcher->second, *place, ears_of(type));
}

void Watches::drop(PeerId peer) {
  // A watcher goes with the last of its places.
  for (auto found = peers_.find(peer); found != peers_.end(); found = peers_.find(peer)) {
    take(found->second, *find_place(*found->second.places.begin()->first->path), kAllEars);
  }
}

void Watches::visit_data(base::FunctionRef<void(PeerId, std::string_view)> visitor) const {
  for (const auto& [path, place] : places_) {
    for (const std::vector<Watch>& row : place.rows) {
      for (const Watch& watch : row) {
        if ((watch.ears & kDataEars) != 0) visitor(watch.watcher->id, path);
      }
    }
  }
}

void Watches::created(std::string_view path, std::vector<Notice>& notices) {
  ring_node({++rounds_, wire::EventType::kCreated, path, notices}, kDataEars);
  ring_parent(path, notices);
}

void Watches::deleted(std::string_view path, std::vector<Notice>& notices) {
  ring_node({++rounds_, wire::EventType::kDeleted, path, notices}, kAllEars);
  ring_parent(path, notices);
}

void Watches::changed(std::string_view path, std::vector<Notice>& notices) {
  ring_node({++rounds_, wire::EventType::kDataChanged, path, notices}, kDataEars);
}

std::size_t Watches::hearers(std::string_view path) const {
  if (places_.empty()) return 0;
  std::size_t count = 0;
  if (const auto place = places_.find(path); place != places_.end()) {
    for (const std::vector<Watch>& row : place->second.rows) count += row.size();
  }
  if (const auto parent = watched_parent_of(path)) {
    const auto place = places_.find(*parent);
    if (place != places_.end()) count += place->second.rows[kChildrenRow].size();
  }
  if (recursive_ == 0) return count;
  visit_above(path, [&](const Place& place) { count += place.rows[kRecursiveRow].size(); });
  return count;
}

std::size_t Watches::count(PeerId peer) const {
  const auto watcher = peers_.find(peer);
  return watcher == peers_.end() ? 0 : watcher->second.size;
}

std::size_t Watches::bytes(PeerId peer) const {
  const auto watcher = peers_.find(peer);
  return watcher == peers_.end() ? 0 : watcher->second.bytes;
}

Watches::Place* Watches::find_place(std::string_view path) {
  const auto found = places_.find(path);
  return found == places_.end() ? nullptr : &found->second;
}

void Watches::set_ears(Place& place, Watch& watch, Ears ears) {
  const bool listened = (watch.ears & kDataEars) != 0;
  const bool listens = (ears & kDataEars) != 0;
  watch.ears = ears;
  if (listens && !listened) {
    ++data_.watches;
    if (place.data++ == 0) ++data_.paths;
    if (watch.watcher->data++ == 0) ++data_.peers;
  } else if (listened && !listens) {
    --data_.watches;
    if (--place.data == 0) --data_.paths;
    if (--watch.watcher->data == 0) --data_.peers;
  }
}

bool Watches::silence(Place& place, std::size_t row, std::size_t seat, Ears ears) {
  std::vector<Watch>& watches = place.rows[row];
  Watch& watch = watches[seat];
  const Ears lost = watch.ears & ears;
  if (lost == 0) return false;
  Watcher& watcher = *watch.watcher;
  const auto count = static_cast<std::size_t>(std::popcount(lost));
  watcher.size -= count;
  size_ -= count;
  if (row == kRecursiveRow) recursive_ -= count;
  set_ears(place, watch, watch.ears ^ lost);
  if (watch.ears != 0) return true;

  // The last in the row takes the free seat.
  watch = watches.back();
  watches.pop_back();
  if (seat < watches.size()) {
    watch.watcher->places.find(&place)->second[row] = static_cast<std::uint32_t>(seat);
  }
  const auto seats = watcher.places.find(&place);
  LATCHKEY_ASSERT(seats != watcher.places.end());
  seats->second[row] = kNoSeat;
  if (seats->second != Seats{kNoSeat, kNoSeat, kNoSeat}) return true;
  watcher.places.erase(seats);
  watcher.bytes -= place.path->size();
  bytes_of_peers_ -= place.path->size();
  if (watcher.places.empty()) peers_.erase(watcher.id);
  return true;
}

bool Watches::take(Watcher& watcher, Place& place, Ears ears) {
  // A copy: the watcher may go with its last seat.
  const Seats seats = watcher.places.at(&place);
  bool taken = false;
  for (std::size_t row = 0; row < kRows; ++row) {
    if (seats[row] != kNoSeat && silence(place, row, seats[row], ears)) taken = true;
  }
  forget_if_empty(place);
  return taken;
}

void Watches::forget_if_empty(Place& place) {
  for (const std::vector<Watch>& row : place.rows) {
    if (!row.empty()) return;
  }
  bytes_ -= place.path->size();
  places_.erase(places_.find(*place.path));
}

void Watches::Round::tell(Watcher& watcher) const {
  if (watcher.told == number) return;
  watcher.told = number;
  notices.push_back({watcher.id, type, std::string(path)});
}

void Watches::ring(const Round& round, Place& place, std::size_t row) {
  std::vector<Watch>& watches = place.rows[row];
  for (const Watch& watch : watches) round.tell(*watch.watcher);
  // From the back, so that whoever takes a free seat has been looked at.
  for (std::size_t seat = watches.size(); seat-- > 0;) silence(place, row, seat, kOnce);
}

void Watches::ring_node(const Round& round, Ears ears) {
  if (Place* const place = find_place(round.path)) {
    for (const std::size_t row : {kDataRow, kChildrenRow}) {
      if ((ears & ears_in(row)) != 0) ring(round, *place, row);
    }
    for (const Watch& watch : place->rows[kRecursiveRow]) {
      if ((watch.ears & ears) != 0) round.tell(*watch.watcher);
    }
    forget_if_empty(*place);
  }
  if (recursive_ == 0) return;
  visit_above(round.path, [&](const Place& place) {
    for (const Watch& watch : place.rows[kRecursiveRow]) {
      if ((watch.ears & ears) != 0) round.tell(*watch.watcher);
    }
  });
}

void Watches::visit_above(std::string_view path,
                          base::FunctionRef<void(const Place&)> visitor) const {
  const auto look_at = [&](std::size_t size, std::uint64_t hash) {
    const auto place = places_.find(Hashed{path.substr(0, size), hash});
    if (place != places_.end()) visitor(place->second);
  };
  if (path.size() < 2) return;
  std::uint64_t hash = Hash::next(Hash::kNothing, path.front());
  look_at(1, hash);  // The root.
  for (std::size_t i = 1; i < path.size(); ++i) {
    if (path[i] == '/') look_at(i, hash);
    hash = Hash::next(hash, path[i]);
  }
}

void Watches::ring_parent(std::string_view path, std::vector<Notice>& notices) {
  const auto parent = watched_parent_of(path);
  if (!parent) return;
  Place* const place = find_place(*parent);
  if (place == nullptr) return;
  ring({++rounds_, wire::EventType::kChildrenChanged, *parent, notices}, *place, kChildrenRow);
  forget_if_empty(*place);
}

}  // namespace latchkey::tree
