#include "sim/nemesis.hpp"

#include <algorithm>
#include <array>

#include "queue/counter.hpp"

namespace latchkey::sim {
namespace {

using namespace std::chrono_literals;
using testing::Crash;
using testing::Fault;
using testing::Silence;
using testing::Way;
using wire::Op;

/// What a lock sends, so that each of them gets lost now and then.
constexpr std::array kTargets = {Op::kCreate,       Op::kCreate2, Op::kCreateContainer,
                                 Op::kGetChildren2, Op::kDelete,  Op::kExists,
                                 Op::kGetData,      Op::kSync,    Op::kMulti,
                                 Op::kSetWatches,   Op::kSetData, Op::kRemoveWatches};

}  // namespace

Nemesis::Nemesis(const Stage& stage, Clients& clients)
    : stage_(stage),
      world_(stage.world),
      judge_(stage.judge),
      plan_(stage.plan),
      clients_(clients) {
  const bool meddles =
      std::ranges::find(plan_.rare_faults, Fault::kMeddle) != plan_.rare_faults.end();
  if (meddles || plan_.resizes) operator_.emplace(stage_);
}

void Nemesis::start_rarities() {
  if (plan_.rare_faults.empty()) return;
  after(plan_.rare_calm.least, plan_.rare_calm.most, [this] {
    strike_rarely();
    start_rarities();
  });
}

void Nemesis::start() {
  // Each tells its leader of its clients at a time of its own.
  for (std::size_t i = 0; i < world_.followers(); ++i) {
    world_.follower(i).process().jump(draw(0us, plan_.world.service.tick));
  }
  for (std::size_t i = 0; plan_.drifts && i < world_.servers(); ++i) {
    world_.set_clock_rate(world_.server(i).process(), draw_drift(world_.random()));
  }
  start_rarities();
  go_on();
}

void Nemesis::go_on() {
  if (plan_.faults.empty()) return;
  after(plan_.calm.least, plan_.calm.most, [this] {
    strike();
    go_on();
  });
}

void Nemesis::stop() {
  stopped_ = true;
  world_.heal_everything();
  judge_.healed();
  for (std::size_t i = 0; i < world_.servers(); ++i) {
    world_.limit_timeouts(i, plan_.world.service.max_session_timeout);
  }
  if (operator_) operator_->tidy_up();
}

void Nemesis::after(Duration least, Duration most, std::function<void()> task) {
  world_.script(draw(least, most), [this, task = std::move(task)] {
    if (!stopped_) task();
  });
}

Client* Nemesis::any_client() {
  std::vector<Client*> alive;
  for (const auto& client : clients_) {
    if (client->is_alive()) alive.push_back(client.get());
  }
  return alive.empty() ? nullptr : alive[world_.random().below(alive.size())];
}

/// Servers get limits of their own, for long or for a moment, and the client has to attach again.
/// Its greeting is lost now and then, and now and then no server is within its reach right after.
void Nemesis::regrant(Client& client) {
  using std::chrono::milliseconds;
  const auto often = [this] { return world_.random().below(2) == 0; };
  const auto limit_all = [this](milliseconds most) {
    for (std::size_t i = 0; i < world_.servers(); ++i) world_.limit_timeouts(i, most);
  };
  const auto most = std::chrono::floor<milliseconds>(draw(plan_.least_timeout(), plan_.timeout));
  if (often()) {
    world_.limit_timeouts(world_.random().below(world_.servers()), most);
  } else {
    limit_all(most);
    after(1ms, 100ms, [this, limit_all] { limit_all(plan_.world.service.max_session_timeout); });
  }
  if (world_.random().below(8) == 0) return bring_down(Crash::kProcess, plan_.timeout);
  if (often()) world_.drop_next(client.process(), Way::kReply, Op::kCreateSession);
  world_.cut(client.host());
  if (often()) return;
  after(0us, 20ms, [this, &process = client.process()] {
    for (std::size_t i = 0; i < world_.servers(); ++i) {
      world_.partition(process, i, Silence::kBoth);
    }
    after(1ms, 2 * plan_.timeout, [this, &process] {
      for (std::size_t i = 0; i < world_.servers(); ++i) world_.heal(process, i);
    });
  });
}

void Nemesis::strike() {
  const Fault fault = plan_.faults[world_.random().below(plan_.faults.size())];
  Client* const client = any_client();
  if (plan_.regrants && client != nullptr && world_.random().below(2) == 0) return regrant(*client);
  switch (fault) {
    case Fault::kCut:
    case Fault::kPartition:
    case Fault::kRefuse:
    case Fault::kSlow:
    case Fault::kDropRequest:
    case Fault::kDropReply:
    case Fault::kHold:
      if (client != nullptr) strike_network(fault, *client);
      return;
    case Fault::kPause:
    case Fault::kSuspend:
    case Fault::kClockRate:
    case Fault::kClockJump:
    case Fault::kExpire:
    case Fault::kKill:
      if (client != nullptr) strike_client(fault, *client);
      return;
    case Fault::kDiskFull:
    case Fault::kSyncError:
    case Fault::kDiskStall: return strike_disk(fault);
    default: return strike_server(fault);
  }
}

void Nemesis::strike_network(Fault fault, Client& client) {
  testing::Process& process = client.process();
  const std::size_t server = world_.random().below(world_.servers());
  const Op op = kTargets[world_.random().below(kTargets.size())];
  switch (fault) {
    case Fault::kCut: return world_.cut(client.host());
    case Fault::kPartition: {
      constexpr std::array kWays = {Silence::kRequests, Silence::kReplies, Silence::kBoth};
      world_.partition(process, server, kWays[world_.random().below(kWays.size())]);
      return after(1ms, 2 * plan_.timeout,
                   [this, &process, server] { world_.heal(process, server); });
    }
    case Fault::kRefuse:
      world_.refuse(process, server, testing::Refusal::kOn);
      return after(1ms, plan_.timeout, [this, &process, server] {
        world_.refuse(process, server, testing::Refusal::kOff);
      });
    case Fault::kSlow:
      world_.slow_down(process, server, draw(1ms, plan_.timeout / 4));
      return after(10ms, plan_.timeout,
                   [this, &process, server] { world_.slow_down(process, server, 0s); });
    case Fault::kDropRequest: return world_.drop_next(process, Way::kRequest, op);
    case Fault::kDropReply: return world_.drop_next(process, Way::kReply, op);
    default: {
      const Way way = world_.random().below(2) == 0 ? Way::kRequest : Way::kReply;
      return world_.hold_next(process, way, op, draw(1ms, plan_.timeout));
    }
  }
}

void Nemesis::strike_client(Fault fault, Client& client) {
  testing::Process& process = client.process();
  const Duration span = draw(1ms, 2 * plan_.timeout);
  switch (fault) {
    case Fault::kPause:
      judge_.hindered(process, world_.now() + span);
      return world_.pause(process, span);
    case Fault::kSuspend:
      judge_.hindered(process, world_.now() + span);
      judge_.mistrust(process, world_.now() + span);
      return world_.suspend(process, span);
    case Fault::kClockRate: {
      const bool is_slow = world_.random().below(2) == 0;
      is_slow ? judge_.mistrust(process) : judge_.hurries(process);
      return world_.set_clock_rate(process, is_slow ? 0.8 : 1.25);
    }
    case Fault::kClockJump:
      judge_.hurries(process, world_.now());
      judge_.hindered(process, world_.now() + 1ms);
      return world_.jump_clock(process, draw(1ms, plan_.timeout));
    case Fault::kExpire: return expire(client.session_id());
    default: return replace(client);
  }
}

void Nemesis::expire(std::int64_t session) {
  // The log has it once it is durable, and the judge has to know by then.
  if (world_.expire(session)) judge_.mistrust(session);
}

void Nemesis::replace(Client& client) {
  client.bury();
  world_.kill(client.process(),
              world_.random().below(2) == 0 ? testing::Tell::kYes : testing::Tell::kNo);
  after(1ms, plan_.timeout, [this] {
    clients_.push_back(std::make_unique<Client>(stage_, clients_.size()));
    clients_.back()->start();
  });
}

void Nemesis::strike_server(Fault fault) {
  if (fault == Fault::kCrash || fault == Fault::kPowerLoss) {
    const std::size_t server =
        fault == Fault::kPowerLoss ? 0 : world_.random().below(world_.servers());
    if (server == 0) {
      return bring_down(fault == Fault::kCrash ? Crash::kProcess : Crash::kPower, plan_.timeout);
    }
    world_.crash(server, Crash::kProcess);
    return after(1ms, plan_.timeout, [this, server] { world_.restart(server); });
  }
  if (world_.followers() == 0) return;
  const std::size_t follower = world_.random().below(world_.followers());
  if (fault == Fault::kLag && world_.random().below(2) == 0) return lag_all();
  if (fault == Fault::kLag) {
    world_.lag(follower, 1 + world_.random().below(50));
    return after(1ms, 2 * plan_.timeout, [this, follower] { world_.lag(follower, 0); });
  }
  world_.part_from_leader(follower);
  after(1ms, 2 * plan_.timeout, [this, follower] { world_.rejoin_leader(follower); });
}

/// Whoever has lost the answer to a create looks for its node where it is not known yet (H02).
void Nemesis::lag_all() {
  for (std::size_t i = 0; i < world_.followers(); ++i)
    world_.lag(i, 20 + world_.random().below(50));
  if (Client* const client = any_client()) {
    world_.drop_next(client->process(), Way::kReply, std::vector{Op::kCreate2, Op::kMulti});
  }
  after(1ms, 2 * plan_.timeout, [this] {
    for (std::size_t i = 0; i < world_.followers(); ++i) world_.lag(i, 0);
  });
}

void Nemesis::bring_down(Crash how, Duration most) {
  if (!world_.leader().is_up()) return;
  world_.crash(0, how);
  after(1ms, most, [this] { world_.restart(0); });
}

void Nemesis::strike_rarely() {
  const Fault fault = plan_.rare_faults[world_.random().below(plan_.rare_faults.size())];
  const std::size_t server = world_.random().below(world_.servers());
  switch (fault) {
    case Fault::kMeddle: return operator_->meddle();
    case Fault::kLeave:
      if (Client* const client = any_client()) client->leave();
      return;
    case Fault::kDropReply:
      // The one thing a lock asks for that is not among the targets.
      if (Client* const client = any_client()) {
        world_.drop_next(client->process(), Way::kReply, Op::kGetChildren);
      }
      return;
    case Fault::kCrash: return bring_down(Crash::kProcess, 3 * plan_.timeout);
    case Fault::kPauseServer:
      return world_.pause(world_.server(server).process(), draw(1ms, 2 * plan_.timeout));
    case Fault::kWallJump: {
      constexpr std::chrono::hours kYear(24 * 365);
      Client* const client = world_.random().below(2) == 0 ? any_client() : nullptr;
      testing::Process& process = client ? client->process() : world_.server(server).process();
      return world_.jump_wall_clock(process, world_.random().below(2) == 0 ? kYear : -kYear);
    }
    case Fault::kAge: return age();
    case Fault::kTimeouts:
      world_.limit_timeouts(0, plan_.timeout * (world_.random().below(2) == 0 ? 1 : 4) / 2);
      return bring_down(Crash::kProcess, plan_.timeout);
    default:
      if (!world_.leader().is_up()) return;
      // That a deposed leader knows after this time is what the lease relies on:
      // docs/guarantees.md.
      return world_.depose(world_.random().below(world_.followers()), draw(1ms, plan_.timeout / 4));
  }
}

void Nemesis::age() {
  const Site& site = plan_.sites[world_.random().below(plan_.sites.size())];
  const std::string directory = site.sort == Sort::kSemaphore ? site.path + "/leases" : site.path;
  world_.age(directory, queue::kSpentFrom - static_cast<std::int32_t>(world_.random().below(20)));
  bring_down(Crash::kProcess, plan_.timeout);
}

void Nemesis::strike_disk(Fault fault) {
  if (!world_.leader().is_up()) return;
  if (fault == Fault::kDiskStall) return world_.stall_disk(draw(1ms, plan_.timeout));
  if (fault == Fault::kDiskFull) {
    world_.fill_disk();
  } else {
    world_.fail_sync();
  }
  after(10ms, plan_.timeout, [this] {
    world_.make_room();
    if (!world_.leader().is_up()) world_.restart(0);
  });
}

}  // namespace latchkey::sim
