#include "queue/picture.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "queue/admission.hpp"
#include "queue/delay_note.hpp"
#include "queue/node_name.hpp"
#include "queue/owner.hpp"
#include "queue/permits.hpp"
#include "queue/warnings.hpp"

namespace latchkey::queue {
namespace {

using Standing = QueueEntry::Standing;

/// A contender, and what was read of it.
struct Contestant {
  Place place;
  Child child;
};

std::string last_part(const std::string& node) { return node.substr(node.rfind('/') + 1); }

std::string_view dialect_name(Dialect dialect) {
  switch (dialect) {
    case Dialect::kCurator: return "curator";
    case Dialect::kNamed: return "named";
    case Dialect::kKazoo: return "kazoo";
    case Dialect::kGo: return "go";
    case Dialect::kZooKeeper: return "zookeeper";
    case Dialect::kPegasus: return "pegasus";
    case Dialect::kRust: return "rust";
    case Dialect::kTutorial: return "tutorial";
    case Dialect::kExtra: return "extra";
  }
  return "unknown";
}

Queue new_queue(std::string directory) {
  Queue queue;
  queue.directory = std::move(directory);
  queue.exists = true;
  return queue;
}

QueueEntry make_entry(Child child) {
  QueueEntry entry;
  entry.node = std::move(child.node);
  if (child.stat) {
    entry.token = Token(child.stat->czxid);
    entry.session = child.stat->ephemeral_owner;
    entry.created_ms = child.stat->ctime_ms;
  }
  entry.release_requested = is_asked_to_let_go(child.data);
  if (auto owner = parse_owner(child.data)) {
    entry.host = std::move(owner->host);
    entry.pid = owner->pid;
    entry.program = std::move(owner->program);
    entry.since = std::move(owner->since);
    entry.reason = std::move(owner->reason);
  }
  entry.data = std::move(child.data);
  return entry;
}

void add_contestant(Queue& queue, Contestant contestant, Standing standing, int position) {
  QueueEntry entry = make_entry(std::move(contestant.child));
  entry.standing = standing;
  entry.position = position;
  entry.shared = contestant.place.share == Share::kShared;
  entry.dialect = dialect_name(contestant.place.dialect);
  entry.lock_name = std::move(contestant.place.lock_name);
  queue.entries.push_back(std::move(entry));
}

/// Takes the contenders out, in order of arrival; what is left is nobody's, in order of name.
std::vector<Contestant> take_contestants(std::vector<Child>& children) {
  std::vector<Contestant> contestants;
  std::vector<Child> foreign;
  for (Child& child : children) {
    if (auto place = parse_place(last_part(child.node))) {
      contestants.push_back({std::move(*place), std::move(child)});
    } else {
      foreign.push_back(std::move(child));
    }
  }
  std::sort(contestants.begin(), contestants.end(), [](const Contestant& a, const Contestant& b) {
    return std::tie(a.place.number, a.place.name) < std::tie(b.place.number, b.place.name);
  });
  std::sort(foreign.begin(), foreign.end(),
            [](const Child& a, const Child& b) { return a.node < b.node; });
  children = std::move(foreign);
  return contestants;
}

std::vector<Place> places_of(const std::vector<Contestant>& contestants) {
  std::vector<Place> places;
  for (const Contestant& contestant : contestants) places.push_back(contestant.place);
  return places;
}

/// Who may hold. Nobody may behind an exclusive place of the same name, so the question need not be
/// asked of everyone: that would be work in the square of the queue's length.
class Holders {
 public:
  explicit Holders(std::span<const Place> places) : places_(places) {
    for (const Place& place : places) {
      if (place.share == Share::kShared) continue;
      const auto [first, fresh] = first_exclusive_.try_emplace(place.lock_name, place.number);
      if (!fresh) first->second = std::min(first->second, place.number);
    }
  }

  [[nodiscard]] bool holds(const Place& place) const {
    const auto first = first_exclusive_.find(place.lock_name);
    if (first != first_exclusive_.end() && place.number > first->second) return false;
    return admit(places_, place).holds();
  }

 private:
  std::span<const Place> places_;
  std::map<std::string, std::int32_t, std::less<>> first_exclusive_;
};

std::vector<Place> parse_all(std::span<const std::string> children) {
  std::vector<Place> places;
  for (const std::string& child : children) {
    if (auto place = parse_place(child)) places.push_back(std::move(*place));
  }
  return places;
}

void add_foreign(Queue& queue, std::vector<Child> children) {
  for (Child& child : children) queue.entries.push_back(make_entry(std::move(child)));
}

/// What there is to say about one directory.
void add_warnings(Queue& queue, const std::vector<Contestant>& contestants,
                  const std::vector<Child>& foreign) {
  std::vector<std::string> lasting;
  std::vector<std::string> strangers;
  for (const Contestant& contestant : contestants) {
    const auto& stat = contestant.child.stat;
    if (stat && stat->ephemeral_owner == 0) lasting.push_back(contestant.child.node);
  }
  for (const Child& child : foreign) strangers.push_back(last_part(child.node));
  auto found = warnings(places_of(contestants), strangers, lasting);
  std::move(found.begin(), found.end(), std::back_inserter(queue.warnings));
}

bool is_delayed(const Child& child, const std::optional<std::string>& mark) {
  return mark && child.stat && !holds_if_first(child.data, child.stat->czxid, *mark);
}

/// The transaction of the leases that were made and not granted yet, 0 if there are none. Whoever
/// takes permits makes its leases first, and stays the first in front until they count: so it can
/// only be the newest ones, of the session that is first in front, and not while all have room.
std::int64_t waiting_leases(const std::vector<Contestant>& leases,
                            const std::vector<Contestant>& front, std::optional<int> size) {
  if (leases.empty() || front.empty()) return 0;
  if (size && leases.size() <= static_cast<std::size_t>(*size)) return 0;
  const std::optional<Stat>& first = front.front().child.stat;
  const std::optional<Stat>& newest = leases.back().child.stat;
  const bool same = first && newest && first->ephemeral_owner == newest->ephemeral_owner;
  return same ? newest->czxid : 0;
}

}  // namespace

Queue picture(std::string directory, std::vector<Child> children,
              const std::optional<std::string>& mark) {
  Queue queue = new_queue(std::move(directory));
  std::vector<Contestant> contestants = take_contestants(children);
  add_warnings(queue, contestants, children);
  const std::vector<Place> places = places_of(contestants);
  const Holders holders(places);
  std::map<std::string, int, std::less<>> positions;
  for (std::size_t i = 0; i < contestants.size(); ++i) {
    const bool holds = holders.holds(places[i]) && !is_delayed(contestants[i].child, mark);
    const Standing standing = holds ? Standing::kHolds : Standing::kWaits;
    const int position = ++positions[places[i].lock_name];
    add_contestant(queue, std::move(contestants[i]), standing, position);
  }
  add_foreign(queue, std::move(children));
  return queue;
}

bool is_semaphore(std::span<const std::string> children) {
  bool found = false;
  for (const std::string& child : children) {
    if (child == "locks" || child == "leases") found = true;
    if (parse_place(child)) return false;
  }
  return found;
}

Queue semaphore_picture(std::string path, std::vector<Child> leases, std::vector<Child> front,
                        std::vector<Child> others, const std::optional<std::string>& mark) {
  Queue queue = new_queue(std::move(path));
  std::vector<Contestant> taken = take_contestants(leases);
  std::vector<Contestant> waiting = take_contestants(front);
  add_warnings(queue, taken, leases);
  add_warnings(queue, waiting, front);
  queue.size = mark ? parse_size(*mark) : std::nullopt;
  const std::int64_t not_granted = waiting_leases(taken, waiting, queue.size);
  int position = 0;
  for (Contestant& lease : taken) {
    const bool waits =
        not_granted != 0 && lease.child.stat && lease.child.stat->czxid == not_granted;
    add_contestant(queue, std::move(lease), waits ? Standing::kWaits : Standing::kHolds,
                   ++position);
  }
  for (Contestant& entry : waiting) {
    add_contestant(queue, std::move(entry), Standing::kWaits, ++position);
  }
  add_foreign(queue, std::move(leases));
  add_foreign(queue, std::move(front));
  add_foreign(queue, std::move(others));
  return queue;
}

std::vector<std::string> sole_holders(std::span<const std::string> children) {
  const std::vector<Place> places = parse_all(children);
  const Holders holders(places);
  std::vector<std::string> names;
  for (const Place& place : places) {
    if (place.share == Share::kExclusive && holders.holds(place)) names.push_back(place.name);
  }
  return names;
}

std::optional<std::string> first_in_line(std::span<const std::string> children) {
  std::vector<Place> places = parse_all(children);
  std::erase_if(places, [](const Place& place) { return !place.lock_name.empty(); });
  const auto first =
      std::min_element(places.begin(), places.end(),
                       [](const Place& a, const Place& b) { return a.number < b.number; });
  if (first == places.end() || !admit(places, *first).holds()) return {};
  return first->name;
}

}  // namespace latchkey::queue

namespace latchkey::inline v0 {

std::vector<const QueueEntry*> Queue::holders() const {
  std::vector<const QueueEntry*> found;
  for (const QueueEntry& entry : entries) {
    if (entry.standing == QueueEntry::Standing::kHolds) found.push_back(&entry);
  }
  return found;
}

}  // namespace latchkey::inline v0
