#include "scenario/explorer.hpp"

#include <iterator>
#include <string>
#include <unordered_set>
#include <utility>

namespace latchkey::mini {
namespace {

/// What may happen next, to whom, at what price.
struct Step {
  const char* name;
  int who;
  void (*happen)(World& world, int who);
  int Troubles::*price = nullptr;
  /// It happens sooner or later by itself; a world with none of these left is at rest.
  bool by_itself = false;
};

template <void (World::*kWhat)(int)>
void to(World& world, int who) {
  (world.*kWhat)(who);
}

/// What the network, the servers and the clocks may do to one client.
void add_client_steps(const World& world, int id, std::vector<Step>& steps) {
  const Client& client = world.clients()[static_cast<std::size_t>(id)];
  const auto natural = [&](const char* name, auto happen) {
    steps.push_back({name, id, happen, nullptr, true});
  };
  if (client.crashed) {
    if (!client.ghosts.empty() && client.session_open) natural("land", to<&World::land>);
    if (world.can_expire(id)) natural("expire", to<&World::expire>);
    return;
  }
  if (client.session_known_over) return;
  if (!client.inbox.empty()) natural("receive", to<&World::receive>);
  if (!client.sent.empty() && client.connected) natural("serve", to<&World::serve>);
  if (!client.timers.empty()) natural("resume", to<&World::resume>);
  if (!client.lingering.empty()) natural("send lingering", to<&World::send_lingering>);
  if (client.connected && client.position < world.log_size()) {
    natural("catch up", to<&World::catch_up>);
  }
  if (!client.connected) {
    if (!client.ghosts.empty()) natural("land", to<&World::land>);
    natural("attach", [](World& w, int who) { w.attach(who, World::Attach::kNewest); });
    if (client.lags && client.session_open && client.last_seen < world.log_size()) {
      natural("attach to a laggard",
              [](World& w, int who) { w.attach(who, World::Attach::kOldestAllowed); });
    }
  }
  if (client.connected) steps.push_back({"cut", id, to<&World::cut>, &Troubles::cuts});
  if (client.lease_fresh) {
    steps.push_back({"lease over", id, to<&World::lease_over>, &Troubles::lease_ends});
  }
  // Optional: the session of a client that was silent for a while may still survive.
  if (world.can_expire(id)) steps.push_back({"expire", id, to<&World::expire>});
  steps.push_back({"crash", id, to<&World::crash>, &Troubles::crashes});
}

void add_slot_steps(const World& world, int id, std::vector<Step>& steps) {
  const Slot& slot = world.slots()[static_cast<std::size_t>(id)];
  const Client& client = world.clients()[static_cast<std::size_t>(slot.client)];
  if (client.crashed || slot.done) return;
  if (!slot.started) {
    if (!client.session_known_over) {
      steps.push_back({"start slot", id, to<&World::start>, nullptr, true});
    }
    return;
  }
  if (slot.holding && !slot.downgrading) {
    steps.push_back({"release slot", id, to<&World::release>});
    if (!slot.shares) {
      steps.push_back({"downgrade slot", id, to<&World::downgrade>, &Troubles::downgrades});
    }
    steps.push_back({"heartbeat", slot.client, to<&World::heartbeat>, &Troubles::heartbeats});
  }
  if (!slot.cancelled || slot.downgrading) {
    steps.push_back({"cancel slot", id, [](World& w, int who) { w.cancel(who, Code::kTimedOut); },
                     &Troubles::cancels});
  }
}

std::string nth_entry(const World& world, int index) {
  return std::next(world.leader().entries.begin(), index)->first;
}

/// When no trouble can strike a client any more and all its slots are under way, what it receives
/// commutes with everything else that may happen, so only the order in which it comes first is
/// tried. That is also the order in which a wrong grant comes earliest.
bool is_predictable(const World& world, int id, const Troubles& left) {
  const Client& client = world.clients()[static_cast<std::size_t>(id)];
  if (client.inbox.empty() || client.crashed || !client.lease_fresh) return false;
  if (left.cuts + left.cancels + left.lease_ends + left.crashes + left.heartbeats +
          left.downgrades >
      0)
    return false;
  for (const Slot& slot : world.slots()) {
    if (slot.client == id && (!slot.started || slot.holding)) return false;
  }
  return true;
}

std::vector<Step> steps_of(const World& world, const Troubles& left) {
  std::vector<Step> steps;
  for (std::size_t i = 0; i < world.clients().size(); ++i) {
    if (is_predictable(world, static_cast<int>(i), left)) {
      return {{"receive", static_cast<int>(i), to<&World::receive>, nullptr, true}};
    }
  }
  for (std::size_t i = 0; i < world.clients().size(); ++i) {
    add_client_steps(world, static_cast<int>(i), steps);
  }
  for (std::size_t i = 0; i < world.slots().size(); ++i) {
    add_slot_steps(world, static_cast<int>(i), steps);
  }
  for (std::size_t i = 0; i < world.leader().entries.size(); ++i) {
    const int index = static_cast<int>(i);
    steps.push_back({"operator deletes entry", index,
                     [](World& w, int which) { w.delete_entry(nth_entry(w, which)); },
                     &Troubles::deletions});
    steps.push_back({"operator touches entry", index,
                     [](World& w, int which) { w.touch_entry(nth_entry(w, which)); },
                     &Troubles::touches});
  }
  if (world.leader().entries.empty() && world.leader().has_directory()) {
    steps.push_back(
        {"reaper", 0, [](World& w, int) { w.remove_level(kDirectory); }, &Troubles::removals});
  }
  if (world.leader().has_directory()) {
    steps.push_back(
        {"user writes", 0, [](World& w, int) { w.write_data("mine"); }, &Troubles::writes});
  }
  std::erase_if(steps, [&](const Step& step) { return step.price && left.*step.price == 0; });
  return steps;
}

std::size_t budget_of(const Troubles& left) {
  std::size_t sum = 0;
  for (const int count :
       {left.cuts, left.cancels, left.lease_ends, left.crashes, left.deletions, left.touches,
        left.removals, left.heartbeats, left.downgrades, left.writes}) {
    sum = sum * 8 + static_cast<std::size_t>(count);
  }
  return sum;
}

/// One state on the road from the start to where the search is now.
struct Frame {
  World world;
  Troubles left;
  std::vector<Step> steps;
  std::size_t next = 0;
  std::string came_by;
};

}  // namespace

void Explorer::run(std::size_t most_states) {
  std::unordered_set<std::size_t> seen;
  std::vector<Frame> road;
  const auto enter = [&](World world, const Troubles& left, const std::string& came_by) {
    world.check();
    const std::size_t mark = world.key() ^ (budget_of(left) * 0x9e3779b97f4a7c15ULL);
    if (world.violations().empty() && !seen.insert(mark).second) return;
    std::vector<Step> steps = steps_of(world, left);
    bool at_rest = true;
    for (const Step& step : steps) at_rest = at_rest && !step.by_itself;
    if (at_rest) world.check_at_rest();
    road.push_back({std::move(world), left, std::move(steps), 0, came_by});
    if (road.back().world.violations().empty()) return;
    for (const Frame& frame : road) failure_ += frame.came_by + "\n";
    for (const std::string& what : road.back().world.violations()) failure_ += "=> " + what + "\n";
  };

  enter(world_, troubles_, "begin");
  while (!road.empty() && failure_.empty()) {
    Frame& frame = road.back();
    if (frame.next == frame.steps.size()) {
      road.pop_back();
      continue;
    }
    if (seen.size() >= most_states) {
      complete_ = false;
      break;
    }
    const Step& step = frame.steps[frame.next++];
    Troubles left = frame.left;
    if (step.price) --(left.*step.price);
    const bool last = frame.next == frame.steps.size();
    World world = last ? std::move(frame.world) : frame.world;
    const std::string came_by = step.name + (" " + std::to_string(step.who));
    step.happen(world, step.who);
    enter(std::move(world), left, came_by);
  }
  states_ = seen.size();
}

void settle(World& world) {
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t i = 0; i < world.clients().size(); ++i) {
      const int client = static_cast<int>(i);
      if (!world.clients()[i].sent.empty()) {
        world.serve(client);
        moved = true;
      }
      if (!world.clients()[i].inbox.empty()) {
        world.receive(client);
        moved = true;
      }
      if (!moved && !world.clients()[i].lingering.empty()) {
        world.send_lingering(client);
        moved = true;
      }
    }
  }
}

}  // namespace latchkey::mini
