#include <map>
#include <utility>
#include <vector>

#include "latchkey/testing.hpp"
#include "testing/world.hpp"

namespace latchkey::testing {
namespace {

WorldOptions world_options(const SimulationOptions& options) {
  WorldOptions world;
  world.seed = options.seed;
  world.followers = options.followers;
  world.latency = {options.latency_least, options.latency_most};
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
  }
  return {};
}

}  // namespace

struct Simulation::Inside {
  explicit Inside(const SimulationOptions& options) : world(world_options(options)) {}

  Process& process(const std::string& name) {
    Process*& found = processes[name];
    if (found == nullptr || !found->is_alive()) found = &world.start_process(name);
    return *found;
  }

  World world;
  std::map<std::string, Process*> processes;
};

Simulation::Simulation(const SimulationOptions& options)
    : inside_(std::make_unique<Inside>(options)) {}

Simulation::~Simulation() = default;

Session Simulation::open(const std::string& process, SessionOptions options) {
  return inside_->world.open(inside_->process(process), std::move(options));
}

void Simulation::run_for(Duration span) { inside_->world.run_for(span); }

bool Simulation::run_until(const std::function<bool()>& done, Duration limit) {
  return inside_->world.run_until(done, limit);
}

void Simulation::post(const std::string& process, Duration in, std::function<void()> task) {
  inside_->world.post(inside_->process(process), in, std::move(task));
}

void Simulation::cut(const Session& session) {
  inside_->world.cut(inside_->world.host_of(session));
}

void Simulation::isolate(const std::string& process) {
  for (std::size_t server = 0; server < inside_->world.servers(); ++server) {
    inside_->world.partition(inside_->process(process), server, Silence::kBoth);
  }
}

void Simulation::heal(const std::string& process) {
  for (std::size_t server = 0; server < inside_->world.servers(); ++server) {
    inside_->world.heal(inside_->process(process), server);
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

void Simulation::kill(const std::string& process) {
  inside_->world.kill(inside_->process(process), Tell::kNo);
}

void Simulation::expire(const Session& session) { inside_->world.expire(session.id()); }

void Simulation::stop_servers() {
  for (std::size_t server = inside_->world.servers(); server-- > 0;) {
    inside_->world.crash(server, Crash::kProcess);
  }
}

void Simulation::start_servers() {
  for (std::size_t server = 0; server < inside_->world.servers(); ++server) {
    inside_->world.restart(server);
  }
}

void Simulation::lag(std::size_t changes) {
  for (std::size_t i = 0; i < inside_->world.followers(); ++i) inside_->world.lag(i, changes);
}

std::uint64_t Simulation::trace() const noexcept { return inside_->world.trace(); }

}  // namespace latchkey::testing
