#include <algorithm>

#include "sim/judge.hpp"

// Who sleeps though it is its turn.
namespace latchkey::sim {
namespace {

using namespace std::chrono_literals;

/// Ten digits, which order as text as they do as numbers.
std::string_view number_of(std::string_view path) {
  constexpr std::size_t kDigits = 10;
  return path.substr(path.size() - std::min(path.size(), kDigits));
}

}  // namespace

bool Judge::is_idle(testing::SimHost& host) {
  testing::Process& process = host.process();
  // Without a proof it has to wait for the next one. Its own word is not enough for that: on a
  // connection that is well there is one, unless its clock was tampered with.
  const bool is_proven =
      host.machine().lease().lasts(process.now()) ||
      (steadiness_.is_well(host.link(), world_.now()) && !has_wrong_clock(process));
  if (!is_proven) return false;
  if (!process.is_alive() || process.paused_until > world_.now()) return false;
  return host.callbacks_waiting() == 0 && is_at_rest(host);
}

bool Judge::is_at_rest(testing::SimHost& host) {
  if (!world_.is_quiet(host)) return false;
  const Conversation& talk = conversations_[host.link()];
  return talk.is_greeted && talk.unanswered.empty() && !witness_.owes(host.link());
}

std::vector<const Judge::Place*> Judge::admissible(const Resource& resource) {
  std::vector<const Place*> all;
  for (const Place& place : resource.queue) all.push_back(&place);
  // A writer that reads on keeps its number, and its node is new.
  std::ranges::sort(all, {}, [](const Place* place) { return number_of(place->second.path); });
  const auto stop =
      std::ranges::find(all, false, [](const Place* p) { return p->second.is_shared; });
  all.erase(stop == all.begin() && !all.empty() ? stop + 1 : stop, all.end());
  return all;
}

bool Judge::is_asleep(const Resource& resource, const Place& place) {
  const auto& [zxid, entry] = place;
  const auto has = [&, number = zxid](const Resource& other) {
    return &other != &resource && other.ever.contains(number);
  };
  // Who wants several locks may wait in another queue, even if another hand has removed its entry
  // there: it finds out when its turn comes.
  if (std::ranges::any_of(resources_, has)) return false;
  for (const auto& [id, hold] : holds_) {
    if (std::ranges::find(hold.nodes, entry.path) != hold.nodes.end()) return false;
    // An election does not name its node.
    if (hold.nodes.empty() && hold.token.zxid() == zxid) return false;
  }
  return std::ranges::any_of(world_.hosts(), [&, owner = entry.owner](const auto& host) {
    return host->machine().session_id() == owner && is_idle(*host);
  });
}

bool Judge::may_sleep(const Resource& resource) {
  switch (resource.sort) {
    case Sort::kMutex:
    case Sort::kRw:
    case Sort::kRwHerd:
    case Sort::kElection: return false;
    // Who is first waits for permits, and nobody here knows for how many: certainly not if all that
    // anybody ever asks for are free.
    case Sort::kSemaphore:
      return !resource.leases.empty() ||
             (!resource.sizes.empty() && resource.sizes.back().second < resource.seats);
    default: return true;
  }
}

void Judge::check_sleepers() {
  for (Resource& resource : resources_) {
    if (may_sleep(resource)) {
      resource.asleep.clear();
      continue;
    }
    std::map<std::int64_t, Instant> asleep;
    for (const Place* const place : admissible(resource)) {
      checked(Invariant::kAwake);
      if (!is_asleep(resource, *place)) continue;
      const auto before = resource.asleep.find(place->first);
      const Instant since = before == resource.asleep.end() ? world_.now() : before->second;
      asleep.emplace(place->first, since);
      // Less than between two heartbeats, which would seem to be under way because of it.
      if (world_.now() - since < plan_.timeout / 12) continue;
      fail(Invariant::kAwake, "it is the turn of " + place->second.path +
                                  ", which sleeps, and nothing that could wake it is on its way");
    }
    resource.asleep = std::move(asleep);
  }
}

std::string Judge::whose(std::int64_t session) const {
  for (const auto& host : world_.hosts()) {
    if (host->machine().session_id() != session) continue;
    return host->process().name() + (host->is_connected() ? ", connected" : ", not connected");
  }
  return "nobody that is left";
}

bool Judge::waits_elsewhere(const Resource& resource, std::int64_t zxid) {
  return std::ranges::any_of(resources_, [&](const Resource& other) {
    if (&other == &resource || !other.queue.contains(zxid)) return false;
    return !other.holds.empty() || admissible(other).front()->first != zxid;
  });
}

void Judge::check_heads() {
  // Time for a dead process to run out.
  const Duration bound = 2 * plan_.timeout + 5s;
  for (Resource& resource : resources_) {
    const auto first = admissible(resource);
    const std::int64_t head = first.empty() ? 0 : first.front()->first;
    // Nobody is granted anything without a leader: that is for check_liveness().
    const bool is_excused =
        !world_.leader().is_up() || !resource.holds.empty() || waits_elsewhere(resource, head);
    if (head != resource.head || is_excused) {
      resource.head = head;
      resource.head_since = world_.now();
      continue;
    }
    if (head == 0) continue;
    checked(Invariant::kAwake);
    if (world_.now() - resource.head_since > bound) {
      const Entry& entry = first.front()->second;
      return fail(Invariant::kAwake, entry.path + ", of " + whose(entry.owner) +
                                         ", is first and sleeps, without any fault");
    }
  }
}

}  // namespace latchkey::sim
