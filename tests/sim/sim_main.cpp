#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "base/mutant.hpp"
#include "sim/mutants.hpp"
#include "sim/plan.hpp"
#include "sim/run.hpp"
#include "sim/shrink.hpp"

/// `latchkey_sim`: plays seeds until the time is up or something is wrong.
namespace latchkey::sim {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

struct Options {
  double seconds = 60;
  std::optional<std::uint64_t> first;  ///< Seed.
  std::uint64_t seeds = 0;             ///< 0: as many as there is time for.
  unsigned threads = std::max(1U, std::thread::hardware_concurrency());
  bool plain = false;
  bool unswitched = false;
  bool twice = false;
  bool shrink = false;
  bool mutants = false;
  std::string mutant;
};

/// In so many seeds luck meets everything that it can.
constexpr std::uint64_t kEnough = 500;

/// Nothing is promised after a loss of data.
bool is_for_luck(testing::Fault fault) {
  return fault != testing::Fault::kWipe && fault != testing::Fault::kRestore;
}

/// What all seeds together have shown.
struct Sum {
  std::uint64_t seeds = 0;
  std::uint64_t events = 0;
  std::uint64_t holds = 0;
  std::uint64_t stale_writes = 0;
  std::array<std::uint64_t, testing::kFaults> faults{};
  std::array<std::uint64_t, kInvariants> checks{};
  Sightings sightings;

  void add(const Outcome& outcome) {
    ++seeds;
    events += outcome.events;
    holds += outcome.holds;
    stale_writes += outcome.stale_writes;
    sightings.add(outcome.sightings);
    for (std::size_t i = 0; i < faults.size(); ++i) faults.at(i) += outcome.faults.at(i);
    for (std::size_t i = 0; i < checks.size(); ++i) checks.at(i) += outcome.checks.at(i);
  }
  [[nodiscard]] std::uint64_t injected() const {
    std::uint64_t all = 0;
    for (const std::uint64_t count : faults) all += count;
    return all;
  }
  [[nodiscard]] std::uint64_t checked() const {
    std::uint64_t all = 0;
    for (const std::uint64_t count : checks) all += count;
    return all;
  }
  /// What should have come about and has not: a fault or a rule that is missing.
  [[nodiscard]] std::string missed() const {
    std::string all;
    for (const Hazard& hazard : hazards()) {
      const bool is_met = hazard.reach != Reach::kLuck || sightings.of(hazard.number) > 0;
      if (!is_met) all += fmt::format(" H{:02}", hazard.number);
    }
    for (std::size_t i = 0; i < faults.size(); ++i) {
      const auto fault = static_cast<testing::Fault>(i);
      if (is_for_luck(fault) && faults.at(i) == 0) all += fmt::format(" \"{}\"", name(fault));
    }
    for (std::size_t i = 0; i < checks.size(); ++i) {
      if (checks.at(i) > 0) continue;
      all += fmt::format(" \"{}\"", name(static_cast<Invariant>(i)));
    }
    return all;
  }
};

/// Plays seeds on several threads, each a world of its own.
class Search {
 public:
  explicit Search(const Options& options)
      : options_(options), first_(options.first.value_or(1)), next_(first_) {}

  int run() {
    std::vector<std::thread> threads;
    running_ = options_.threads;
    for (unsigned i = 0; i < options_.threads; ++i) threads.emplace_back([this] { work(); });
    for (std::unique_lock lock(mutex_); running_ > 0;) {
      ended_.wait_for(lock, 200ms, [this] { return running_ == 0; });
      show_progress();
    }
    for (std::thread& thread : threads) thread.join();
    show_summary();
    const std::string missed = sum_.missed();
    const bool misses = sum_.seeds >= kEnough && !missed.empty();
    if (misses) fmt::print("MISSED in {} seeds:{}\n", sum_.seeds, missed);
    return failures_.empty() && !misses ? 0 : 1;
  }

 private:
  [[nodiscard]] double elapsed() const {
    return std::chrono::duration<double>(Clock::now() - start_).count();
  }

  [[nodiscard]] Plan draw(std::uint64_t seed) const {
    if (options_.plain) return draw_plain_plan(seed);
    return options_.unswitched ? draw_unswitched_plan(seed) : draw_plan(seed);
  }

  void work() {
    while (failed_ < 3) {
      const std::uint64_t seed = next_++;
      const bool enough =
          options_.seeds != 0 ? seed >= first_ + options_.seeds : elapsed() >= options_.seconds;
      if (enough) break;
      const Plan plan = draw(seed);
      Outcome outcome = play(plan);
      if (options_.twice && !outcome.violation) {
        const Outcome again = play(plan);
        if (again.trace != outcome.trace) {
          outcome.violation = Violation{Invariant::kReplay, "two runs of one seed differ", {}};
        }
      }
      const std::lock_guard lock(mutex_);
      sum_.add(outcome);
      if (outcome.violation) {
        ++failed_;
        failures_.push_back(outcome);
      }
    }
    const std::lock_guard lock(mutex_);
    --running_;
    ended_.notify_one();
  }

  void show_progress() const {
    std::fprintf(stderr,
                 "\r%6.0f s  %llu seeds (%.1f/s)  %llu holds  %llu faults  %llu checks  "
                 "%zu of %zu hazards ",
                 elapsed(), static_cast<unsigned long long>(sum_.seeds),
                 static_cast<double>(sum_.seeds) / std::max(0.001, elapsed()),
                 static_cast<unsigned long long>(sum_.holds),
                 static_cast<unsigned long long>(sum_.injected()),
                 static_cast<unsigned long long>(sum_.checked()), sum_.sightings.reached(),
                 Sightings::reachable());
  }

  void show_hazards() const {
    fmt::print("hazards reached: {} of {}\n", sum_.sightings.reached(), Sightings::reachable());
    for (const Hazard& hazard : hazards()) {
      if (hazard.reach != Reach::kLuck) continue;
      const std::uint64_t count = sum_.sightings.of(hazard.number);
      fmt::print("  H{:02}  {:<10}  {}\n", hazard.number,
                 count > 0 ? std::to_string(count) : "NEVER", hazard.what);
    }
  }

  void show_summary() {
    fmt::print("\n{} seeds in {:.0f} s, {} events, {} holds, {} writes refused by the fence\n",
               sum_.seeds, elapsed(), sum_.events, sum_.holds, sum_.stale_writes);
    fmt::print("faults injected: {}\n", sum_.injected());
    for (std::size_t i = 0; i < sum_.faults.size(); ++i) {
      const auto fault = static_cast<testing::Fault>(i);
      if (is_for_luck(fault)) fmt::print("  {:<16} {}\n", name(fault), sum_.faults.at(i));
    }
    fmt::print("invariants checked: {}\n", sum_.checked());
    for (std::size_t i = 0; i < sum_.checks.size(); ++i) {
      fmt::print("  {:<16} {}\n", name(static_cast<Invariant>(i)), sum_.checks.at(i));
    }
    show_hazards();
    for (const Outcome& outcome : failures_) {
      const Plan plan = draw(outcome.seed);
      fmt::print("\nVIOLATED {}\n  {}\n  again: {}\n", describe(outcome), describe(plan),
                 command_for(plan));
      if (!options_.shrink) continue;
      const Plan small = shrink(plan, outcome.violation->invariant);
      fmt::print("  smallest: {}, {} ms\n  {}\n", describe(small), small.length / 1ms,
                 describe(play(small)));
    }
    if (failures_.empty()) fmt::print("no violation\n");
  }

  const Options options_;
  const std::uint64_t first_;
  const Clock::time_point start_ = Clock::now();
  std::atomic<std::uint64_t> next_;
  std::atomic<int> failed_ = 0;
  std::mutex mutex_;
  std::condition_variable ended_;
  unsigned running_ = 0;
  Sum sum_;
  std::vector<Outcome> failures_;
};

#ifdef LATCHKEY_MUTANTS
void show_smallest(const Quarry& quarry, const Catch& caught) {
  base::mutant = quarry.mutant;
  const Plan small = shrink(hunting_plan(quarry, caught.seed), caught.violation.invariant);
  fmt::print("  smallest: {}, {} ms\n  {}\n", describe(small), small.length / 1ms,
             describe(play(small)));
  base::mutant = base::Mutant::kNone;
}

/// Whether seeds show it as well as its schedule does, for people: luck may take long.
void show_luck(Quarry quarry, const Options& options) {
  constexpr auto kPatience = 5s;
  quarry.schedule = nullptr;
  quarry.is_rare = true;
  std::uint64_t seeds = 0;
  const auto end = Clock::now() + kPatience;
  const auto caught = hunt(quarry, options.first.value_or(quarry.seed),
                           [&](std::uint64_t) { return Clock::now() < end && ++seeds > 0; });
  fmt::print("        {}\n",
             caught ? describe(*caught) : "and by none of " + std::to_string(seeds) + " seeds");
}

/// Makes one classic mistake after the other and looks for what shows it.
int hunt_mutants(const Options& options) {
  std::size_t hunted = 0;
  std::size_t alive = 0;
  for (const Quarry& quarry : quarries()) {
    const std::string_view name = base::kMutantNames.at(static_cast<std::size_t>(quarry.mutant));
    if (!options.mutant.empty() && options.mutant != name) continue;
    ++hunted;
    const auto start = Clock::now();
    const auto elapsed = [&] {
      return std::chrono::duration<double>(Clock::now() - start).count();
    };
    const auto caught = hunt(quarry, options.first.value_or(quarry.seed),
                             [&](std::uint64_t) { return elapsed() < options.seconds; });
    const bool is_caught = caught && caught->is_expected && !caught->innocent;
    if (!is_caught) ++alive;
    fmt::print("{}  {:<20} {:5.1f} s  {}\n", is_caught ? "caught" : "ALIVE ", name, elapsed(),
               caught ? describe(*caught) : "nothing seen");
    if (quarry.schedule != nullptr) show_luck(quarry, options);
    if (caught && options.shrink && caught->seed != 0) show_smallest(quarry, *caught);
    std::fflush(stdout);
  }
  fmt::print("{} mutants, {} alive\n", hunted, alive);
  return alive == 0 && hunted > 0 ? 0 : 1;
}
#endif

}  // namespace
}  // namespace latchkey::sim

int main(int argc, char** argv) {
  latchkey::sim::Options options;
  CLI::App app("Plays Latchkey under simulated bad luck");
  app.add_option("--seconds", options.seconds, "How long to search")->option_text("N [60]");
  app.add_option("--seed", options.first, "The first seed")->option_text("S [1]");
  app.add_option("--seeds", options.seeds, "How many, instead of a time")->option_text("N");
  app.add_option("--threads", options.threads, "How many worlds at a time")->option_text("N");
  app.add_flag("--plain", options.plain, "Without rarities, as the older regressions were found");
  app.add_flag("--unswitched", options.unswitched, "Without rare paths inside the code");
  app.add_flag("--twice", options.twice, "Play every seed twice; the two must not differ");
  app.add_flag("--shrink", options.shrink, "Make a failing plan as small as possible");
#ifdef LATCHKEY_MUTANTS
  app.add_flag("--mutants", options.mutants,
               "Make classic mistakes on purpose; --seconds is for each of them");
  app.add_option("--mutant", options.mutant, "Only this one of them")->option_text("NAME");
#endif
  CLI11_PARSE(app, argc, argv);
#ifdef LATCHKEY_MUTANTS
  if (options.mutants || !options.mutant.empty()) return latchkey::sim::hunt_mutants(options);
#endif
  return latchkey::sim::Search(options).run();
}
