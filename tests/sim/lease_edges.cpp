#include <memory>
#include <utility>

#include "latchkey/mutex.hpp"
#include "sim/directed.hpp"
#include "sim/judge.hpp"

// A holder whose follower tells the leader of it as late as can be, and is cut off right after the
// holder's newest proof: here the lease is as short as it must be, and no shorter.
namespace latchkey::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kTimeout = 4'000ms;
/// What the follower's clock is ahead, so that a touch reaches the leader right before a tick ends.
constexpr Duration kAhead = 2ms;

/// What keeps the follower from hearing of the holder.
enum class Gap : std::uint8_t {
  kNone,   ///< Nothing but the pause between two heartbeats.
  kPause,  ///< The holder stands still.
  kHold,   ///< A request is held up, and all behind it.
};

struct Edge {
  std::chrono::milliseconds tick;
  Gap gap = Gap::kNone;
  bool drifts = false;
  int touches = 1;   ///< That could have come since the last one, and did not.
  int parity = 0;    ///< Of the last touch, in half ticks.
  Duration early{};  ///< How long before the next touch the proof is made.
};

Plan edge_plan(const Edge& edge) {
  Plan plan;
  plan.world.followers = 1;
  plan.world.latency = {100us, 100us};
  plan.world.link = {100us, 100us};
  plan.world.commit = {100us, 100us};
  plan.world.callback = {1us, 1us};
  plan.world.split_permille = 0;
  plan.world.sync_limit = 60s;
  plan.world.service.tick = edge.tick;
  plan.world.service.min_session_timeout = 2 * edge.tick;
  plan.sites = {{Sort::kMutex, "/locks/a"}};
  plan.timeout = kTimeout;
  return plan;
}

class Scenario {
 public:
  explicit Scenario(const Edge& edge)
      : edge_(edge),
        plan_(edge_plan(edge)),
        world_(plan_.world),
        judge_(world_, plan_),
        ann_(world_.start_process("ann")),
        bob_(world_.start_process("bob")) {}

  std::optional<Violation> play() {
    world_.follower(0).process().jump(kAhead);
    SessionOptions options;
    options.timeout = kTimeout;
    Session hers = world_.open(ann_, options, {1});
    const Session his = world_.open(bob_, options, {0});
    take(hers, ann_, 0);
    if (!world_.run_until([&] { return judge_.holds() == 1; }, 5s)) return nothing("ann holds");
    take(his, bob_, 1);
    strike(hers);
    if (!world_.run_until([&] { return judge_.holds() == 2; }, 60s)) return nothing("bob holds");
    std::optional<Violation> violation = judge_.violation();
    leases_.clear();
    return violation;
  }

 private:
  [[nodiscard]] static std::optional<Violation> nothing(const std::string& what) {
    return Violation{Invariant::kLiveness, "it never comes that " + what, {}};
  }
  void take(const Session& session, testing::Process& process, std::size_t number) {
    Mutex(session, "/locks/a")
        .lock_async(deadline_in(100s))
        .then([this, &session, &process, number](Result<Lease> lease) {
          if (!lease) return;
          leases_.push_back(std::make_shared<Lease>(std::move(*lease)));
          const auto held = leases_.back();
          const auto believes = [held] {
            return held->state() == LeaseState::kHeld || held->state() == LeaseState::kSuspect;
          };
          judge_.granted({number,
                          &process,
                          session.id(),
                          {Share{}},
                          held->token(),
                          held->nodes(),
                          false,
                          believes,
                          held->lost()});
        });
  }
  void prove(Session& session) {
    session.async(Set{Path("/locks/a"), "alive"}, deadline_in(30s), [](const auto&) {});
  }
  void run_to(Instant moment) { world_.run_for(moment - world_.now()); }

  void strike(Session& session) {
    const Duration interval = edge_.tick / 2;
    world_.run_for(2 * kTimeout);
    const auto half_ticks = world_.now().time_since_epoch() / interval / 2 * 2 + 4 + edge_.parity;
    const Instant touch = Instant(interval * half_ticks) - kAhead;
    const Instant proof = touch + edge_.touches * interval - 3ms - edge_.early;
    const Duration hold = kTimeout * 3 / 10;
    run_to(touch - 1ms);
    // Not earlier: the leader's ticks are to end when they did.
    if (edge_.drifts) {
      world_.set_clock_rate(ann_, 0.996);
      world_.set_clock_rate(world_.leader().process(), 1.004);
    }
    prove(session);
    run_to(touch - 500us);
    if (edge_.gap == Gap::kPause) world_.pause(ann_, (edge_.touches - 1) * interval + 4ms);
    if (edge_.gap == Gap::kHold) {
      run_to(proof + 1ms - hold);
      world_.hold_next(ann_, testing::Way::kRequest, wire::Op::kSetData, hold);
      prove(session);
    }
    run_to(proof);
    prove(session);
    run_to(proof + 2ms);
    world_.part_from_leader(0);
  }

  const Edge edge_;
  const Plan plan_;
  testing::World world_;
  Judge judge_;
  testing::Process& ann_;
  testing::Process& bob_;
  std::vector<std::shared_ptr<Lease>> leases_;
};

}  // namespace

std::optional<Violation> play_lease_edges() {
  for (const std::chrono::milliseconds tick : {kTimeout / 2, kTimeout * 32 / 100}) {
    for (const Gap gap : {Gap::kNone, Gap::kPause, Gap::kHold}) {
      for (int variant = 0; variant < 8; ++variant) {
        for (const Duration early : {Duration(0), Duration(5ms), Duration(50ms), Duration(150ms)}) {
          const Edge edge{tick, gap, variant % 2 == 1, 1 + variant / 2 % 2, variant / 4, early};
          if (auto violation = Scenario(edge).play()) return violation;
        }
      }
    }
  }
  return std::nullopt;
}

}  // namespace latchkey::sim
