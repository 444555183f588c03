#include "sim/directed.hpp"

#include <string>
#include <utility>

#include "latchkey/mutex.hpp"
#include "testing/world.hpp"
#include "wire/messages.hpp"

namespace latchkey::sim {
namespace {

using namespace std::chrono_literals;
using testing::Way;

/// Remembers the path of the last create that was put on the wire.
struct Eavesdropper final : testing::Observer {
  void on_sent(const testing::Message& message) override {
    if (message.way != Way::kRequest || message.op != wire::Op::kCreate2) return;
    wire::Reader reader(message.body);
    reader(path);
  }
  std::string path;
};

/// The schedule did not come about.
Violation stuck(std::string what) { return {Invariant::kLiveness, std::move(what), {}}; }

std::optional<Violation> play_one_lost_create(std::uint64_t seed) {
  testing::World world({.seed = seed, .followers = 2});
  testing::Process& owner = world.start_process("owner");
  Session session = world.open(owner, {}, {1, 2});
  const Mutex mutex(session, "/locks/a");
  {
    auto lease = mutex.lock(deadline_in(5s));  // So that the directory is there.
    if (!lease) return stuck("the first hold failed: " + lease.error().message());
  }
  world.run_for(100ms);
  world.lag(0, 20);
  world.lag(1, 20);
  world.drop_next(owner, Way::kReply, wire::Op::kCreate2);
  auto lease = mutex.lock(deadline_in(60s));
  if (!lease) return stuck("the lock was not granted: " + lease.error().message());
  const std::size_t entries = world.leader().tree().nodes().find("/locks/a")->children.size();
  if (entries != 1) {
    return Violation{Invariant::kNoOrphan,
                     "there are " + std::to_string(entries) + " entries of one contender",
                     world.now()};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Violation> play_stolen_guid() {
  testing::World world({.seed = 4});
  Eavesdropper ear;
  world.watch(ear);
  testing::Process& owner = world.start_process("owner");
  Session ours = world.open(owner);
  Session theirs = world.open(world.start_process("stranger"));
  const Mutex mutex(ours, "/locks/a");
  {
    auto lease = mutex.lock(deadline_in(5s));  // So that the directory is there.
    if (!lease) return stuck("the first hold failed: " + lease.error().message());
  }
  world.partition(owner, 0, testing::Silence::kBoth);
  std::optional<Result<Lease>> answer;
  mutex.lock_async(deadline_in(60s)).then([&](Result<Lease> lease) { answer = std::move(lease); });
  CreateOptions options;
  options.lifetime = Lifetime::kEphemeral;
  options.naming = Naming::kSequential;
  const auto stolen = theirs.create(ear.path, "", options, deadline_in(5s));
  if (!stolen) return stuck("the stranger could not create: " + stolen.error().message());

  world.cut(world.host_of(ours));
  world.heal(owner, 0);
  world.run_for(20s);
  world.unwatch(ear);
  if (answer) {
    return Violation{Invariant::kServerOrder,
                     "the lock was granted with a stranger's node before us: " + stolen->path,
                     world.now()};
  }
  if (!theirs.remove(Path(stolen->path), deadline_in(5s))) return stuck("the stranger stays");
  world.run_until([&] { return answer.has_value(); }, 30s);
  if (!answer || !*answer) return stuck("the stranger is gone, and nobody holds");
  return std::nullopt;
}

std::optional<Violation> play_robbed_writer() {
  Plan plan;
  plan.sites = {{Sort::kMutex, "/locks/a"}};
  testing::World world(plan.world);
  Judge judge(world, plan);
  testing::Process& robbed = world.start_process("robbed");
  Session first = world.open(robbed);
  Session second = world.open(world.start_process("next"));
  const Path ledger(std::string(kLedger) + "0");
  if (!second.create(ledger, "0", {}, deadline_in(5s))) return stuck("there is no ledger");
  const auto write = [&](Session& session, const Lease& lease) {
    Multi multi{{Set{ledger, std::to_string(lease.token().zxid())}}};
    if (!lease.guard(multi)) return false;
    std::optional<bool> written;
    session.async(std::move(multi), deadline_in(60s),
                  [&](const auto& result) { written = result && result->committed; });
    world.run_until([&] { return written.has_value(); }, 30s);
    return written == true;
  };

  auto old = Mutex(first, "/locks/a").lock(deadline_in(5s));
  if (!old) return stuck("the first hold failed: " + old.error().message());
  world.hold_next(robbed, Way::kReply, wire::Op::kNotification, 1s);
  if (!second.remove(Path(old->node()), deadline_in(5s))) return stuck("nothing was removed");
  auto lease = Mutex(second, "/locks/a").lock(deadline_in(5s));
  if (!lease || !write(second, *lease)) return stuck("the next one could not write");
  if (old->state() == LeaseState::kLost) return stuck("who was robbed heard of it too soon");
  const bool wrote = write(first, *old);
  if (wrote && !judge.violation()) return stuck("who was robbed could write");
  return judge.violation();
}

std::optional<Violation> play_lost_create() {
  // Where it attaches again is luck.
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    if (auto what = play_one_lost_create(seed)) return what;
  }
  return std::nullopt;
}

}  // namespace latchkey::sim
