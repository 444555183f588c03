#include "sim/judge.hpp"

// Whether a client and its server have the same watches.
namespace latchkey::sim {

std::size_t Judge::watches_there(testing::SimHost& host) {
  const std::size_t server = conversations_[host.link()].server;
  if (server > 0) return world_.follower(server - 1).tree().watches().count(host.link());
  std::size_t count = 0;
  for (const auto& [id, peer] : world_.leader().service().peers()) {
    if (peer->session != host.machine().session_id()) continue;
    count += world_.leader().tree().watches().count(id);
  }
  return count;
}

void Judge::check_watches() {
  for (const auto& host : world_.hosts()) {
    const session::Machine& machine = host->machine();
    const Witness::Watches* const set = witness_.watches_of(host->link());
    if (set == nullptr || machine.is_ending() || !is_at_rest(*host)) continue;
    checked(Invariant::kWatches);
    const std::string& who = host->process().name();
    if (const std::size_t there = watches_there(*host); there != set->size()) {
      fail(Invariant::kWatches, "the server has " + std::to_string(there) + " watches of " + who +
                                    ", which has set " + std::to_string(set->size()));
    }
    std::size_t least = 0;
    std::size_t most = 0;
    for (const auto& [watch, asked] : *set) {
      // Its own node, about to go, takes the server's watch along.
      if (!machine.is_owed(watch.first)) ++least;
      most += asked;
    }
    const std::size_t here = machine.watch_count();
    if (here >= least && here <= most) continue;
    fail(Invariant::kWatches, who + " waits for " + std::to_string(here) + " events, and has set " +
                                  std::to_string(set->size()) + " watches with " +
                                  std::to_string(most) + " requests");
  }
}

}  // namespace latchkey::sim
