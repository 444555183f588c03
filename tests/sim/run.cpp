#include "sim/run.hpp"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "sim/client.hpp"
#include "sim/nemesis.hpp"
#include "sim/twins.hpp"

namespace latchkey::sim {
namespace {

using namespace std::chrono_literals;

/// After healing: sessions that were cut off run out, delays are waited out, everybody in turn gets
/// every lock.
constexpr Duration kPatience = 10min;

/// While it lives, an assertion that fails in this thread names the seed.
class Named {
 public:
  explicit Named(const Plan& plan) {
    std::snprintf(text_, sizeof text_, "in seed %llu: %s\n",
                  static_cast<unsigned long long>(plan.seed), command_for(plan).c_str());
    static const auto installed = std::signal(SIGABRT, [](int) {
      if (write(STDERR_FILENO, text_, strnlen(text_, sizeof text_)) < 0) return;
    });
    static_cast<void>(installed);
  }
  ~Named() { text_[0] = '\0'; }
  Named(const Named&) = delete;
  Named& operator=(const Named&) = delete;

 private:
  static thread_local inline char text_[100] = {};
};

class Play {
 public:
  explicit Play(const Plan& plan)
      : plan_(plan), world_(plan.world), judge_(world_, plan), lookout_(world_, plan) {}

  Outcome run() {
    for (std::size_t i = 0; i < plan_.clients; ++i) {
      clients_.push_back(std::make_unique<Client>(stage_, i));
      clients_.back()->start();
    }
    if (plan_.twins) twins_.emplace(world_);
    Nemesis nemesis(stage_, clients_);
    nemesis.start();
    for (const Instant end = world_.now() + plan_.length; world_.now() < end;) {
      if (world_.run_until([&] { return is_violated(); },
                           std::min<Duration>(1s, end - world_.now())))
        break;
      judge_.check_followers();
    }
    nemesis.stop();
    if (twins_) twins_->stop();
    if (!is_violated()) calm_down(nemesis);
    // The clients' handles go first: they belong to this world.
    const Outcome outcome = sum_up();
    clients_.clear();
    return outcome;
  }

 private:
  [[nodiscard]] bool is_violated() const { return judge_.violation().has_value(); }

  void calm_down(const Nemesis& nemesis) {
    for (const auto& client : clients_) client->wind_down();
    const auto is_done = [&] {
      if (!nemesis.is_done()) return is_violated();
      return is_violated() ||
             std::ranges::all_of(clients_, [](const auto& client) { return client->is_done(); });
    };
    const auto settles = [&] {
      for (const Instant end = world_.now() + kPatience; world_.now() < end;) {
        if (world_.run_until(is_done, 1s)) return true;
        judge_.check_heads();
        judge_.check_followers();
      }
      return false;
    };
    std::string who;
    if (!settles()) {
      for (const auto& client : clients_) {
        if (!client->is_done()) who += " " + client->waits_for() + ";";
      }
    }
    judge_.check_liveness(who);
    if (is_violated()) return;
    // Whoever was killed silently runs out, debts are paid, watches go.
    world_.run_for(3 * plan_.timeout + 5s);
    if (is_violated()) return;
    if (judge_.open_asks() != 0) {
      return judge_.fail(Invariant::kOneOutcome, "a request was never answered");
    }
    judge_.check_quiet();
    judge_.check_replay();
  }

  [[nodiscard]] Outcome sum_up() {
    Outcome outcome;
    outcome.seed = plan_.seed;
    outcome.trace = world_.trace();
    outcome.events = world_.events();
    outcome.holds = judge_.holds();
    outcome.stale_writes = judge_.stale_writes();
    outcome.twins = twins_ ? twins_->made() : 0;
    for (std::size_t i = 0; i < testing::kFaults; ++i) {
      outcome.faults.at(i) = world_.count(static_cast<testing::Fault>(i));
    }
    outcome.checks = judge_.checks();
    outcome.sightings = lookout_.sightings();
    outcome.violation = judge_.violation();
    return outcome;
  }

  const Plan& plan_;
  testing::World world_;
  Judge judge_;
  Lookout lookout_;
  const Stage stage_{world_, judge_, lookout_, plan_};
  std::optional<Twins> twins_;
  std::vector<std::unique_ptr<Client>> clients_;
};

}  // namespace

Outcome play(const Plan& plan) {
  const Named named(plan);
  return Play(plan).run();
}

std::string describe(const Outcome& outcome) {
  if (!outcome.violation) return "seed " + std::to_string(outcome.seed) + ": nothing is wrong";
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(
      outcome.violation->at.time_since_epoch());
  return "seed " + std::to_string(outcome.seed) + ": " +
         std::string(name(outcome.violation->invariant)) + ": " + outcome.violation->what +
         ", at " + std::to_string(ms.count()) + " ms, after " + std::to_string(outcome.events) +
         " events and " + std::to_string(outcome.holds) + " holds";
}

}  // namespace latchkey::sim
