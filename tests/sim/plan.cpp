#include "sim/plan.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/random.hpp"

namespace latchkey::sim {
namespace {

using namespace std::chrono_literals;
using testing::Fault;

constexpr std::array<std::string_view, 9> kSorts = {
    "mutex", "hand-over", "delayed", "rw", "rw-herd", "semaphore", "multi", "name", "election"};

class Draw {
 public:
  explicit Draw(std::uint64_t seed, std::uint64_t stream = 1)
      : random_(seed * 0x9E37'79B9'7F4A'7C15U + stream) {}

  std::uint64_t below(std::uint64_t bound) { return random_.below(bound); }
  bool chance(std::uint32_t percent) { return below(100) < percent; }
  template <class T, std::size_t kSize>
  T any(const std::array<T, kSize>& choices) {
    return choices[below(kSize)];
  }

 private:
  base::Random random_;
};

std::vector<Site> draw_sites(Draw& draw) {
  std::vector<Site> sites = {{Sort::kMutex, "/locks/a"}};
  if (draw.chance(40)) sites.push_back({Sort::kMutex, "/locks/b"});
  if (sites.size() == 2 && draw.chance(60)) sites.push_back({Sort::kMulti, "/locks/a"});
  if (draw.chance(30)) sites.push_back({Sort::kRw, "/locks/rw"});
  if (draw.chance(15)) sites.push_back({Sort::kRwHerd, "/locks/herd"});
  if (draw.chance(30)) {
    sites.push_back({Sort::kSemaphore, "/locks/pool", static_cast<int>(1 + draw.below(4))});
  }
  if (draw.chance(20)) sites.push_back({Sort::kName, "/names/job"});
  if (draw.chance(20)) sites.push_back({Sort::kHandOver, "/locks/shared"});
  if (draw.chance(15)) sites.push_back({Sort::kDelayed, "/locks/careful"});
  if (draw.chance(20)) sites.push_back({Sort::kElection, "/locks/leader"});
  return sites;
}

std::vector<Fault> draw_faults(Draw& draw, const Plan& plan) {
  std::vector<Fault> faults;
  const auto consider = [&](std::initializer_list<Fault> kinds, std::uint32_t percent) {
    for (const Fault kind : kinds) {
      if (draw.chance(percent)) faults.push_back(kind);
    }
  };
  consider({Fault::kCut, Fault::kDropRequest, Fault::kDropReply}, 70);
  consider({Fault::kPartition, Fault::kRefuse, Fault::kSlow, Fault::kHold, Fault::kPause}, 50);
  consider({Fault::kExpire, Fault::kKill, Fault::kDiskStall}, 40);
  consider({Fault::kSuspend, Fault::kClockRate, Fault::kClockJump}, 15);
  consider({Fault::kCrash}, 40);
  if (plan.world.store == testing::Store::kDisk) {
    consider({Fault::kPowerLoss, Fault::kDiskFull, Fault::kSyncError}, 40);
  }
  if (plan.world.followers > 0) consider({Fault::kLag, Fault::kPartFollower}, 70);
  return faults;
}

void draw_rarities(Plan& plan) {
  Draw draw(plan.seed, 2);
  const auto consider = [&](Fault fault, std::uint32_t percent) {
    if (draw.chance(percent)) plan.rare_faults.push_back(fault);
  };
  // Half of the seeds are left as they were.
  if (draw.chance(50)) return;
  consider(Fault::kMeddle, 60);
  consider(Fault::kLeave, 40);
  consider(Fault::kDropReply, 50);
  consider(Fault::kCrash, 30);
  consider(Fault::kPauseServer, 30);
  consider(Fault::kWallJump, 30);
  consider(Fault::kAge, 25);
  consider(Fault::kTimeouts, 20);
  if (plan.world.followers > 0) consider(Fault::kDepose, 40);
  plan.rare_calm = {10ms, draw.any<Duration, 3>({500ms, 2s, 10s})};
  plan.resizes = draw.chance(50);
  plan.observes = draw.chance(50);
  plan.sick_permille = draw.any<std::uint32_t, 3>({0, 0, 200});
  // Longer than a sector, so that a crash tears records (H77).
  if (draw.chance(30)) plan.reason = std::string(1'500, 'x');
  if (draw.chance(50)) {
    plan.world.segment_bytes = 4'096;
    plan.world.fold_bytes = 8'192;
  }
}

/// How time passes in an ensemble: near the edges of what the lease allows for (P5).
void draw_times(Plan& plan) {
  Draw draw(plan.seed, 3);
  plan.drifts = draw.chance(30);
  if (plan.world.followers == 0 || draw.chance(30)) return;
  const std::chrono::milliseconds least = plan.least_timeout();
  // Two ticks are the least time-out that is granted; a third of one is two heartbeats.
  plan.world.service.tick = draw.chance(50) ? least / 2 : least * 32 / 100;
  plan.world.service.min_session_timeout = 2 * plan.world.service.tick;
  plan.world.sync_limit = draw.any<Duration, 3>({2s, 5s, 20s});
}

/// Bounds so tight that they are met. Several permits are taken by one long request.
void draw_sizes(Plan& plan) {
  Draw draw(plan.seed, 5);
  if (draw.chance(60)) plan.max_requests = 2 + draw.below(4);
  const bool has_long_requests =
      !plan.reason.empty() ||
      std::ranges::find(plan.sites, Sort::kSemaphore, &Site::sort) != plan.sites.end();
  if (draw.chance(60) && !has_long_requests) plan.max_request_bytes = 600;
}

/// Servers with limits of their own, from a few ticks to the whole time-out.
void draw_grants(Plan& plan) {
  Draw draw(plan.seed, 9);
  plan.regrants = true;
  plan.world.followers = 1 + draw.below(2);
  plan.world.service.tick = 100ms;
  plan.timeout = 4s;
  plan.world.service.min_session_timeout = plan.timeout / draw.any<int, 3>({2, 3, 4});
  // Only who holds for long can believe for too long.
  plan.long_hold_permille = 300;
  plan.calm = {1ms, 1s};
  if (plan.faults.empty()) plan.faults.push_back(Fault::kCut);
}

/// Rare paths inside the code. The seeds that were in lists before do not end with a nine, or later
/// with a two, with an eight behind an odd digit or with a one behind an even one, so they mean
/// what they did.
void draw_switches(Plan& plan) {
  if (plan.seed % 20 == 18) {
    plan.farewells = true;
    plan.clients += 3;  // It takes four of different sessions to see one.
  }
  if (plan.seed % 20 == 1) draw_grants(plan);
  const std::uint64_t end = plan.seed % 10;
  if (end != 2 && end != 9) return;
  draw_sizes(plan);
  plan.relists = Draw(plan.seed, 6).chance(50);
  if (end != 2) return;
  if (Draw(plan.seed, 7).chance(50)) plan.hurry_permille = 400;
  plan.twins = Draw(plan.seed, 8).chance(50);
}

}  // namespace

std::chrono::milliseconds Plan::least_timeout() const {
  if (regrants) return world.service.min_session_timeout;
  const bool is_halved = std::ranges::find(rare_faults, Fault::kTimeouts) != rare_faults.end();
  return is_halved ? timeout / 2 : timeout;
}

Plan draw_plan(std::uint64_t seed) {
  Plan plan = draw_unswitched_plan(seed);
  draw_switches(plan);
  plan.is_unswitched = false;
  return plan;
}

Plan draw_unswitched_plan(std::uint64_t seed) {
  Plan plan = draw_plain_plan(seed);
  draw_rarities(plan);
  draw_times(plan);
  plan.guards = Draw(seed, 4).chance(20);
  plan.is_plain = false;
  plan.is_unswitched = true;
  return plan;
}

Plan draw_plain_plan(std::uint64_t seed) {
  Draw draw(seed);
  Plan plan;
  plan.seed = seed;
  plan.is_plain = true;
  plan.world.seed = seed;
  plan.world.followers = draw.any<std::size_t, 4>({0, 0, 1, 2});
  plan.world.store = draw.chance(50) ? testing::Store::kDisk : testing::Store::kMemory;
  if (draw.chance(30)) plan.world.latency.most = 20ms;
  if (draw.chance(20)) plan.world.commit.most = 50ms;
  if (draw.chance(20)) plan.world.link.most = 30ms;
  if (draw.chance(30)) plan.world.callback.most = 5ms;
  plan.world.service.min_session_timeout = 1s;
  plan.world.service.tick = draw.any<std::chrono::milliseconds, 3>({100ms, 250ms, 500ms});
  // Containers come and go under the contenders (H40).
  plan.world.service.reap_interval = draw.chance(50) ? 1s : 60s;
  plan.sites = draw_sites(draw);
  plan.clients = 2 + draw.below(4);
  plan.contenders = 1 + draw.below(3);
  plan.timeout = draw.any<std::chrono::milliseconds, 3>({2'000ms, 4'000ms, 10'000ms});
  plan.think = {0us, draw.any<Duration, 3>({100us, 5ms, 200ms})};
  plan.hold = {0us, draw.any<Duration, 3>({100us, 2ms, 50ms})};
  plan.patience = {draw.any<Duration, 2>({1ms, 500ms}), draw.any<Duration, 3>({50ms, 5s, 60s})};
  if (plan.patience.most < plan.patience.least) plan.patience.most = 2 * plan.patience.least;
  plan.long_hold_permille = draw.any<std::uint32_t, 3>({0, 10, 300});
  plan.try_permille = draw.any<std::uint32_t, 3>({0, 50, 300});
  plan.cancel_permille = draw.any<std::uint32_t, 3>({0, 50, 300});
  plan.length = 20s + draw.below(40) * 1s;
  plan.calm = {1ms, draw.any<Duration, 3>({200ms, 1s, 5s})};
  plan.faults = draw_faults(draw, plan);
  return plan;
}

double draw_drift(base::Random& luck) {
  constexpr double kMost = 0.004;
  return luck.below(2) == 0 ? 1.0 - kMost : 1.0 + kMost;
}

std::string command_for(const Plan& plan) {
  return std::string("./dev sim ") + (plan.is_plain ? "--plain " : "") +
         (plan.is_unswitched ? "--unswitched " : "") + "--seed " + std::to_string(plan.seed) +
         " --seeds 1";
}

std::string describe(const Plan& plan) {
  std::string text = "seed " + std::to_string(plan.seed) + ": " + std::to_string(plan.clients) +
                     " clients of " + std::to_string(plan.contenders) + ", " +
                     std::to_string(plan.world.followers) + " followers, " +
                     (plan.world.store == testing::Store::kDisk ? "disk" : "memory") +
                     ", time-out " + std::to_string(plan.timeout.count()) + " ms; locks:";
  for (const Site& site : plan.sites) {
    text += ' ';
    text += kSorts[static_cast<std::size_t>(site.sort)];
  }
  text += "; faults:";
  for (const Fault fault : plan.faults) {
    text += ' ';
    text += name(fault);
  }
  const SessionOptions usual;
  if (plan.max_requests != usual.max_requests) text += "; few requests at a time";
  if (plan.max_request_bytes != usual.max_request_bytes) text += "; short requests";
  if (plan.relists) text += "; mutexes list on every wake";
  if (plan.farewells) text += "; farewells";
  if (plan.regrants) text += "; grants of every size";
  if (plan.hurry_permille > 0) text += "; early time-outs";
  if (plan.twins) text += "; twins";
  if (!plan.rare_faults.empty()) text += "; rarely:";
  for (const Fault fault : plan.rare_faults) {
    text += ' ';
    text += name(fault);
  }
  return text;
}

}  // namespace latchkey::sim
