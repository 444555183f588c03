#include "sim/lookout.hpp"

#include <algorithm>

namespace latchkey::sim {

using testing::Fault;

Lookout::Lookout(testing::World& world, const Plan& plan) : world_(world), plan_(plan) {
  for (const Site& site : plan.sites) {
    if (site.sort == Sort::kSemaphore) {
      directories_[site.path + "/locks"].sort = site.sort;
      Directory& leases = directories_[site.path + "/leases"];
      leases.sort = site.sort;
      leases.seats = site.size;
    } else if (site.sort != Sort::kMulti && site.sort != Sort::kName) {
      directories_[site.path].sort = site.sort;
    }
  }
  world_.watch(*this);
}

// ---- Clients ----------------------------------------------------------------------------------

void Lookout::granted(const Hold& hold) {
  ++holding_[hold.process];
  for (const std::string& node : hold.nodes) held_[node] = hold.process;
  if (hold.is_shared) {
    if (!readers_.empty()) sightings_.saw(18);
    readers_.push_back(hold);
  }
  const auto found = directories_.find(plan_.sites[hold.site].path);
  if (found == directories_.end()) return;
  Directory& directory = found->second;
  if (std::exchange(directory.holder_vanished, false)) sightings_.saw(73);
  if (hold.token.hold() == 0 || hold.nodes.empty()) return;
  const auto stranger = [&](const auto& each) { return each.second.path != hold.nodes.front(); };
  if (std::ranges::any_of(directory.queue, stranger)) sightings_.saw(70);
}

void Lookout::lets_go(const Hold& hold, testing::SimHost& host, bool is_lost, Ending ending) {
  --holding_[hold.process];
  for (const std::string& node : hold.nodes) held_.erase(node);
  std::erase_if(readers_, [&](const Hold& reader) { return reader.token == hold.token; });
  if (is_lost && world_.leader().is_up() &&
      world_.leader().tree().sessions().contains(host.machine().session_id())) {
    sightings_.saw(9);
  }
  if (!is_lost && host.is_connected()) return;
  sightings_.saw(ending == Ending::kRelease ? 23 : 52);
}

void Lookout::reads_on(const Hold& hold) {
  --holding_[hold.process];
  for (const std::string& node : hold.nodes) held_.erase(node);
  const Queue& queue = directories_.at(plan_.sites[hold.site].path).queue;
  const bool writer_waits = std::ranges::any_of(queue, [&](const auto& each) {
    return !each.second.is_reader && each.second.path != hold.nodes.front();
  });
  if (writer_waits) sightings_.saw(44);
}

void Lookout::gave_up(testing::SimHost& host, Code code) {
  if (code != Code::kTimedOut && code != Code::kCancelled) return;
  const std::int64_t session = host.machine().session_id();
  if (!host.is_connected()) sightings_.saw(51);
  const bool has_doubt = std::ranges::any_of(
      doubts_, [&](const auto& each) { return each.second.session == session; });
  if (has_doubt) sightings_.saw(6);
  bool is_first = false;
  bool is_behind = false;
  for (const auto& [path, directory] : directories_) {
    for (auto each = directory.queue.begin(); each != directory.queue.end(); ++each) {
      const Entry& entry = each->second;
      if (entry.owner != session || held_.contains(entry.path)) continue;
      (each == directory.queue.begin() ? is_first : is_behind) = true;
    }
  }
  if (is_behind) sightings_.saw(29);
  if (is_first) sightings_.saw(50);
}

void Lookout::leaves(testing::SimHost& host) {
  if (host.is_in_callback()) sightings_.saw(59);
  if (!host.is_connected()) sightings_.saw(25);
  const auto line = lines_.find(host.link());
  if (line != lines_.end() && !line->second.asked.empty()) sightings_.saw(58);
}

void Lookout::shown_leader(testing::SimHost& host) {
  const auto line = lines_.find(host.link());
  if (line != lines_.end() && is_lagging(line->second.server)) sightings_.saw(76);
}

// ---- Faults -----------------------------------------------------------------------------------

bool Lookout::holds(std::uint32_t process) const {
  const auto found = holding_.find(process);
  return found != holding_.end() && found->second > 0;
}

void Lookout::on_fault(Fault fault, const testing::Process* process) {
  const bool is_server = process != nullptr && process->name().starts_with("server");
  switch (fault) {
    case Fault::kSuspend:
    case Fault::kClockJump:
      if (holds(process->id())) sightings_.saw(14);
      return;
    case Fault::kWallJump:
      if (is_server) return sightings_.saw(86);
      if (holds(process->id())) sightings_.saw(14);
      return;
    case Fault::kPauseServer:
    case Fault::kDiskStall: return sightings_.saw(85);
    case Fault::kDiskFull:
    case Fault::kSyncError: disk_fault_ = fault; return;
    case Fault::kKill: holding_[process->id()] = 0; return;
    default: return;
  }
}

void Lookout::on_failed(const Error&) { sightings_.saw(disk_fault_ == Fault::kDiskFull ? 83 : 84); }

void Lookout::on_recovered(const testing::Recovery& recovery) {
  if (recovery.torn) sightings_.saw(77);
  if (recovery.from_snapshot) sightings_.saw(79);
  if (recovery.unanswered > 0) sightings_.saw(80);
  if (recovery.down > plan_.timeout) sightings_.saw(81);
  if (recovery.forgotten > 0) sightings_.saw(82);
}

}  // namespace latchkey::sim
