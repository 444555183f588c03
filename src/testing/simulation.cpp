#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "latchkey/testing.hpp"
#include "testing/world.hpp"

namespace latchkey::testing {
namespace {

WorldOptions world_options(const SimulationOptions& options) {
  WorldOptions world;
  world.seed = options.seed;
  world.followers = options.followers;
  world.latency = {options.latency_least, options.latency_most};
  // Here no time passes between two calls, so that every loop would look like one in a hurry, and
  // faults for a create or a delete would find neither.
  world.linger = session::Linger::kNo;
  return world;
}

/// The forms in which an operation goes over the wire.
std::vector<wire::Op> ops(Operation operation) {
  using wire::Op;
  switch (operation) {
    case Operation::kCreate: return {Op::kCreate, Op::kCreate2, Op::kCreateContainer};
    case Operation::kRemove: return {Op::kDelete};
    case Operation::kSet: return {Op::kSetData};
    case Operation::kGet: return {Op::kGetData};
    case Operation::kExists: return {Op::kExists};
    case Operation::kChildren: return {Op::kGetChildren, Op::kGetChildren2};
    case Operation::kSync: return {Op::kSync};
    case Operation::kMulti: return {Op::kMulti};
    case Operation::kRemoveWatches: return {Op::kRemoveWatches};
  }
  return {};
}

Silence silence(Direction direction) {
  switch (direction) {
    case Direction::kToServers: return Silence::kRequests;
    case Direction::kFromServers: return Silence::kReplies;
    case Direction::kBoth: return Silence::kBoth;
  }
  return Silence::kBoth;
}

thread_local bool thread_has_a_simulation = false;

}  // namespace

struct Simulation::Inside {
  /// What was said about a name, for every process that will ever have it.
  struct Lot {
    Process* process = nullptr;
    std::optional<Direction> isolated;
    Duration slower{};
  };

  explicit Inside(const SimulationOptions& options) : world(world_options(options)) {}

  Process& start(const std::string& name) {
    Lot& lot = lots[name];
    if (lot.process != nullptr && lot.process->is_alive()) return *lot.process;
    lot.process = &world.start_process(name);
    for (std::size_t server = 0; server < world.servers(); ++server) {
      if (lot.isolated) world.partition(*lot.process, server, silence(*lot.isolated));
      if (lot.slower != Duration{}) world.slow_down(*lot.process, server, lot.slower);
    }
    return *lot.process;
  }

  /// For faults: of a process that is there or was.
  Lot& lot(const std::string& name) {
    const bool process_was_opened = lots.contains(name);
    LATCHKEY_ASSERT(process_was_opened);
    return lots[name];
  }
  Process& process(const std::string& name) { return *lot(name).process; }

  World world;
  std::map<std::string, Lot> lots;
};

Simulation::Simulation(const SimulationOptions& options) {
  LATCHKEY_ASSERT(!thread_has_a_simulation);
  thread_has_a_simulation = true;
  inside_ = std::make_unique<Inside>(options);
}

Simulation::~Simulation() { thread_has_a_simulation = false; }

Session Simulation::open(const std::string& process, SessionOptions options) {
  return inside_->world.open(inside_->start(process), std::move(options));
}

void Simulation::run_for(Duration span) {
  const bool inside_a_callback = inside_->world.timeline().is_in_event();
  LATCHKEY_ASSERT(!inside_a_callback);
  inside_->world.run_for(span);
}

bool Simulation::run_until(const std::function<bool()>& done, Duration limit) {
  const bool inside_a_callback = inside_->world.timeline().is_in_event();
  LATCHKEY_ASSERT(!inside_a_callback);
  return inside_->world.run_until(done, limit);
}

void Simulation::post(const std::string& process, Duration in, std::function<void()> task) {
  inside_->world.post(inside_->start(process), in, std::move(task));
}

void Simulation::cut(const Session& session) {
  inside_->world.cut(inside_->world.host_of(session));
}

void Simulation::isolate(const std::string& process, Direction direction) {
  Inside::Lot& lot = inside_->lot(process);
  lot.isolated = direction;
  for (std::size_t server = 0; server < inside_->world.servers(); ++server) {
    inside_->world.partition(*lot.process, server, silence(direction));
  }
}

void Simulation::heal(const std::string& process) {
  Inside::Lot& lot = inside_->lot(process);
  lot.isolated.reset();
  for (std::size_t server = 0; server < inside_->world.servers(); ++server) {
    inside_->world.heal(*lot.process, server);
  }
}

void Simulation::slow_down(const std::string& process, Duration by) {
  Inside::Lot& lot = inside_->lot(process);
  lot.slower = by;
  for (std::size_t server = 0; server < inside_->world.servers(); ++server) {
    inside_->world.slow_down(*lot.process, server, by);
  }
}

void Simulation::lose_request(const std::string& process, Operation operation) {
  inside_->world.drop_next(inside_->process(process), Way::kRequest, ops(operation));
}

void Simulation::lose_answer(const std::string& process, Operation operation) {
  inside_->world.drop_next(inside_->process(process), Way::kReply, ops(operation));
}

void Simulation::pause(const std::string& process, Duration span) {
  inside_->world.pause(inside_->process(process), span);
}

void Simulation::suspend(const std::string& process, Duration span) {
  inside_->world.suspend(inside_->process(process), span);
}

void Simulation::set_clock_rate(const std::string& process, double rate) {
  inside_->world.set_clock_rate(inside_->process(process), rate);
}

void Simulation::kill(const std::string& process) {
  inside_->world.kill(inside_->process(process), Tell::kNo);
}

bool Simulation::expire(const Session& session) { return inside_->world.expire(session.id()); }

void Simulation::stop_server(std::size_t number) {
  const bool server_exists = number < inside_->world.servers();
  LATCHKEY_ASSERT(server_exists);
  inside_->world.crash(number, Crash::kProcess);
}

void Simulation::start_server(std::size_t number) {
  const bool server_exists = number < inside_->world.servers();
  LATCHKEY_ASSERT(server_exists);
  inside_->world.restart(number);
}

void Simulation::stop_servers() {
  for (std::size_t server = inside_->world.servers(); server-- > 0;) stop_server(server);
}

void Simulation::start_servers() {
  for (std::size_t server = 0; server < inside_->world.servers(); ++server) start_server(server);
}

void Simulation::part_from_leader(std::size_t follower) {
  const bool follower_exists = follower > 0 && follower < inside_->world.servers();
  LATCHKEY_ASSERT(follower_exists);
  inside_->world.part_from_leader(follower - 1);
}

void Simulation::rejoin_leader(std::size_t follower) {
  const bool follower_exists = follower > 0 && follower < inside_->world.servers();
  LATCHKEY_ASSERT(follower_exists);
  inside_->world.rejoin_leader(follower - 1);
}

void Simulation::lag(std::size_t changes) {
  for (std::size_t i = 0; i < inside_->world.followers(); ++i) inside_->world.lag(i, changes);
}

std::uint64_t Simulation::trace() const noexcept { return inside_->world.trace(); }

}  // namespace latchkey::testing
