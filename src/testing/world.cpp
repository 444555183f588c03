#include "testing/world.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/assert.hpp"

namespace latchkey::testing {

std::string_view name(Fault fault) {
  switch (fault) {
    case Fault::kCut: return "cut";
    case Fault::kPartition: return "partition";
    case Fault::kRefuse: return "refuse";
    case Fault::kSlow: return "slow";
    case Fault::kDropRequest: return "drop_request";
    case Fault::kDropReply: return "drop_reply";
    case Fault::kHold: return "hold";
    case Fault::kPause: return "pause";
    case Fault::kSuspend: return "suspend";
    case Fault::kClockRate: return "clock_rate";
    case Fault::kClockJump: return "clock_jump";
    case Fault::kExpire: return "expire";
    case Fault::kKill: return "kill";
    case Fault::kCrash: return "crash";
    case Fault::kPowerLoss: return "power_loss";
    case Fault::kWipe: return "wipe";
    case Fault::kDiskFull: return "disk_full";
    case Fault::kSyncError: return "sync_error";
    case Fault::kDiskStall: return "disk_stall";
    case Fault::kLag: return "lag";
    case Fault::kPartFollower: return "part_follower";
    case Fault::kDepose: return "depose";
    case Fault::kPauseServer: return "pause_server";
    case Fault::kWallJump: return "wall_jump";
    case Fault::kAge: return "age";
    case Fault::kTimeouts: return "timeouts";
    case Fault::kLeave: return "leave";
    case Fault::kMeddle: return "meddle";
    case Fault::kRestore: return "restore";
  }
  return "?";
}

World::World(WorldOptions options)
    : options_(std::move(options)),
      timeline_(options_.seed),
      network_(timeline_, options_, observers_) {
  network_.struck = [this](Fault fault, const Process& process) { counted(fault, &process); };
  leader_ =
      std::make_unique<Leader>(start_process("server0"), timeline_, network_, options_, observers_);
  leader_->struck = [this](Fault fault) { counted(fault); };
  for (std::size_t i = 1; i <= options_.followers; ++i) {
    Process& process = start_process("server" + std::to_string(i));
    followers_.push_back(
        std::make_unique<Follower>(i, process, *leader_, timeline_, network_, options_));
    followers_.back()->struck = [this](Fault fault) { counted(fault); };
    leader_->add_follower(*followers_.back());
  }
  leader_->start();
  timeline_.after_event = [this] {
    for (Observer* observer : observers_) observer->after_event();
    if ((timeline_.events() & 0xFFU) == 0) tend_hosts();
  };
}

World::~World() {
  timeline_.after_event = nullptr;
  observers_.clear();
  timeline_.close();
  for (const auto& host : hosts_) host->retire();
}

void World::tend_hosts() {
  std::erase_if(hosts_, [](const std::shared_ptr<SimHost>& host) {
    return host.use_count() == 1 && host->machine().is_over() && host->callbacks_waiting() == 0;
  });
}

// Time.

void World::run_for(Duration span) {
  const Instant end = timeline_.now() + span;
  while (timeline_.next() <= end) timeline_.step();
  timeline_.pass_to(end);
}

bool World::run_until(base::FunctionRef<bool()> done, Duration limit) {
  const Instant end = timeline_.now() + limit;
  while (!done()) {
    if (timeline_.next() > end) {
      timeline_.pass_to(end);
      return done();
    }
    timeline_.step();
  }
  return true;
}

// Clients.

Process& World::start_process(std::string name) {
  const auto id = static_cast<std::uint32_t>(processes_.size() + 1);
  return *processes_.emplace_back(std::make_unique<Process>(timeline_, id, std::move(name)));
}

Session World::open(Process& process, SessionOptions options, std::vector<std::size_t> servers) {
  LATCHKEY_ASSERT(process.is_alive());
  std::vector<Server*> targets;
  for (const std::size_t index : servers) targets.push_back(&server(index));
  for (std::size_t index = 0; targets.size() < this->servers() && servers.empty(); ++index) {
    targets.push_back(&server(index));
  }
  auto host = std::make_shared<SimHost>(timeline_, network_, process, std::move(targets),
                                        std::move(options), options_);
  host->number = ++last_host_;
  hosts_.push_back(host);
  return Session(host->start());
}

SimHost& World::host_of(const Session& session) { return dynamic_cast<SimHost&>(*session.host()); }

void World::kill(Process& process, Tell servers_hear) {
  counted(Fault::kKill, &process);
  for (const auto& host : hosts_) {
    if (&host->process() == &process) host->die(servers_hear);
  }
  process.die();
}

// Servers.

Server& World::server(std::size_t index) {
  if (index == 0) return *leader_;
  return *followers_.at(index - 1);
}

void World::crash(std::size_t server, Crash how) {
  if (!this->server(server).process().is_alive()) return;
  counted(how == Crash::kPower ? Fault::kPowerLoss : Fault::kCrash);
  if (server == 0) return leader_->crash(how);
  followers_.at(server - 1)->crash(how == Crash::kPower ? Tell::kNo : Tell::kYes);
}

void World::restart(std::size_t server) {
  if (server > 0) return followers_.at(server - 1)->start();
  if (!leader_->is_up()) leader_->start();
}

void World::wipe() {
  counted(Fault::kWipe);
  leader_->crash(Crash::kProcess);
  leader_->wipe();
  leader_->start();
}

bool World::expire(std::int64_t session) {
  const bool known = leader_->expire(session);
  if (known) counted(Fault::kExpire);
  return known;
}

void World::age(const std::string& directory, std::int32_t creates) {
  leader_->age(directory, creates);
}

void World::limit_timeouts(std::size_t server, std::chrono::milliseconds most) {
  if (most < options_.service.max_session_timeout) counted(Fault::kTimeouts);
  if (server == 0) return leader_->limit_timeouts(most);
  followers_.at(server - 1)->limit_timeouts(most);
}

void World::depose(std::size_t follower, Duration linger) {
  counted(followers_.at(follower)->succeed() ? Fault::kDepose : Fault::kCrash);
  leader_->crash(Crash::kProcess);
  leader_->start();
  timeline_.in(linger, nullptr, Happens::kScript,
               [this, follower] { followers_.at(follower)->give_way(); });
}

void World::restore(const std::map<std::string, std::string>& files) {
  counted(Fault::kRestore);
  leader_->crash(Crash::kProcess);
  leader_->restore(files);
  leader_->start();
}

void World::counted(Fault fault, const Process* process) {
  ++counts_.at(static_cast<std::size_t>(fault));
  for (Observer* observer : observers_) observer->on_fault(fault, process);
}

void World::fill_disk() { leader_->fill_disk(); }

void World::make_room() { leader_->make_room(); }

void World::fail_sync() { leader_->fail_next_sync(); }

void World::stall_disk(Duration span) { leader_->stall_disk(span); }

void World::lag(std::size_t follower, std::size_t records) {
  followers_.at(follower)->set_lag(records);
}

void World::part_from_leader(std::size_t follower) {
  if (followers_.at(follower)->part()) counted(Fault::kPartFollower);
}

void World::rejoin_leader(std::size_t follower) { followers_.at(follower)->rejoin(); }

// The network.

void World::cut(SimHost& host) {
  if (host.link() == 0) return;
  counted(Fault::kCut, &host.process());
  network_.cut(host.link());
}

void World::partition(Process& process, std::size_t server, Silence silence) {
  network_.set_silence(process, this->server(server), silence != Silence::kReplies,
                       silence != Silence::kRequests);
}

void World::heal(Process& process, std::size_t server) {
  network_.set_silence(process, this->server(server), false, false);
}

void World::refuse(Process& process, std::size_t server, Refusal refusal) {
  network_.set_refusal(process, this->server(server), refusal);
}

void World::slow_down(Process& process, std::size_t server, Duration by) {
  network_.set_delay(process, this->server(server), by);
}

void World::drop_next(Process& process, Way way, std::vector<wire::Op> ops) {
  network_.drop_next(process, way, std::move(ops));
}

void World::hold_next(Process& process, Way way, wire::Op op, Duration span) {
  network_.hold_next(process, way, op, span);
}

// Processes.

void World::pause(Process& process, Duration span) {
  bool is_server = false;
  for (std::size_t index = 0; index < servers(); ++index) {
    is_server = is_server || &server(index).process() == &process;
  }
  counted(is_server ? Fault::kPauseServer : Fault::kPause, &process);
  timeline_.pause(process, span);
  if (&process != &leader_->process()) return;
  for (const auto& follower : followers_) follower->leader_paused();
}

void World::suspend(Process& process, Duration span) {
  counted(Fault::kSuspend, &process);
  process.stop_clock();
  timeline_.at(timeline_.now() + span, nullptr, Happens::kResume, [this, &process] {
    process.start_clock();
    clock_changed(process);
  });
  timeline_.pause(process, span);
}

void World::set_clock_rate(Process& process, double rate) {
  constexpr double kAllowed = 0.005;  // A lease stands two that differ by a hundredth.
  if (std::abs(rate - 1.0) > kAllowed) counted(Fault::kClockRate, &process);
  process.set_rate(rate);
  clock_changed(process);
}

void World::jump_clock(Process& process, Duration by) {
  counted(Fault::kClockJump, &process);
  process.jump(by);
  clock_changed(process);
}

void World::jump_wall_clock(Process& process, std::chrono::milliseconds by) {
  process.jump_wall(by);
  counted(Fault::kWallJump, &process);
}

void World::clock_changed(Process& process) {
  if (&process == &leader_->process()) leader_->clock_changed();
  for (const auto& host : hosts_) {
    if (&host->process() == &process) host->clock_changed();
  }
}

void World::heal_everything() {
  network_.heal_everything();
  leader_->heal_disk();
  for (const auto& process : processes_) {
    if (process->paused_until > timeline_.now()) timeline_.wake(*process);
    process->start_clock();
    if (process->rate() != 1.0) process->set_rate(1.0);
    clock_changed(*process);
  }
  for (const auto& follower : followers_) {
    follower->set_lag(0);
    follower->rejoin();
    follower->give_way();
  }
  if (!leader_->is_up()) leader_->start();
  for (const auto& follower : followers_) follower->start();
}

void World::unwatch(Observer& observer) { std::erase(observers_, &observer); }

}  // namespace latchkey::testing
