// Real faults: clients as processes against real servers, both of which are killed, stopped, cut
// off and denied their disk, and a verdict over what every client wrote down.
//
//     latchkey_faults [--minutes N | --seconds N [--rounds N]] [--seed S] [--service NAME]
//     [--workers N] [--server-fault NAME] [--no-fence] [--keep]
//
// Ends with 1 if a promise was broken, and says where the histories are, or if a long run did not
// come to a fault. See docs/testing.md.
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <future>
#include <iomanip>
#include <iostream>
#include <optional>
#include <sstream>
#include <stdexcept>

#include "round.hpp"

namespace latchkey::faults {
namespace {

using namespace std::chrono_literals;

constexpr const char* kUsage =
    "usage: latchkey_faults [OPTIONS]\n"
    "  --minutes N     how long in all, about (default 3)\n"
    "  --seconds N     instead: one round for each service, with faults for so long\n"
    "  --rounds N      with --seconds: so many rounds for each\n"
    "  --seed S        what the faults are drawn from (default: the time); each round adds one\n"
    "  --service NAME  ensemble, embedded or standalone only (default: one after the other)\n"
    "  --workers N     client processes (default 4)\n"
    "  --server-fault NAME  no other fault of servers: cut-follower, disk-slow, ...\n"
    "  --no-fence      the store behind the locks takes old tokens: violations are to be expected\n"
    "  --keep          keep the histories even if all is well\n";

struct Options {
  int minutes = 3;
  std::optional<int> seconds;
  int rounds = 1;
  std::uint64_t seed = static_cast<std::uint64_t>(
      std::chrono::system_clock::now().time_since_epoch() / std::chrono::seconds(1));
  std::vector<ServiceKind> services = {ServiceKind::kEnsemble, ServiceKind::kEmbedded,
                                       ServiceKind::kStandalone};
  std::size_t workers = 4;
  std::optional<ServerFault> only;
  FencedStore::Check fence = FencedStore::Check::kOn;
  bool keep = false;
};

ServerFault fault_named(const std::string& text) {
  if (const auto fault = server_fault_named(text)) return *fault;
  std::string known;
  for (const ServiceKind kind : Options().services) {
    for (const ServerFault fault : server_faults(kind)) {
      if (known.find(name(fault)) == std::string::npos) known += ' ' + std::string(name(fault));
    }
  }
  throw std::invalid_argument("no fault of servers \"" + text + "\":" + known);
}

ServiceKind service_named(const std::string& text) {
  for (const ServiceKind kind : Options().services) {
    if (name(kind) == text) return kind;
  }
  throw std::invalid_argument("no service \"" + text + "\": ensemble, embedded or standalone");
}

Options parse(const std::vector<std::string>& words) {
  Options options;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--keep") {
      options.keep = true;
      continue;
    }
    if (words[i] == "--no-fence") {
      options.fence = FencedStore::Check::kOff;
      continue;
    }
    if (i + 1 == words.size()) throw std::invalid_argument(words[i] + " needs a value");
    const std::string& option = words[i];
    const std::string& value = words[++i];
    if (option == "--minutes") {
      options.minutes = std::stoi(value);
    } else if (option == "--seconds") {
      options.seconds = std::stoi(value);
    } else if (option == "--rounds") {
      options.rounds = std::stoi(value);
    } else if (option == "--seed") {
      options.seed = std::stoull(value);
    } else if (option == "--service") {
      options.services = {service_named(value)};
    } else if (option == "--server-fault") {
      options.only = fault_named(value);
    } else if (option == "--workers") {
      options.workers = std::stoul(value);
    } else {
      throw std::invalid_argument("no option " + option);
    }
  }
  if (options.minutes < 1 || options.seconds.value_or(1) < 1 || options.rounds < 1 ||
      options.workers < 1) {
    throw std::invalid_argument("numbers start at 1");
  }
  for (const ServiceKind kind : options.services) {
    const std::vector<ServerFault> able = server_faults(kind);
    if (!options.only || std::find(able.begin(), able.end(), *options.only) != able.end()) continue;
    throw std::invalid_argument(std::string(name(*options.only)) + " is no fault of the service " +
                                std::string(name(kind)) + "; choose another with --service");
  }
  return options;
}

/// With faults for so long every one of a service's is dealt several times.
constexpr auto kLong = 4min;

/// How many rounds each service has, one after the other, and for how long each has faults.
struct Schedule {
  std::size_t rounds = 0;
  std::chrono::seconds length{0};
};

Schedule schedule(const Options& options) {
  const std::size_t kinds = options.services.size();
  if (options.seconds)
    return {static_cast<std::size_t>(options.rounds), std::chrono::seconds(*options.seconds)};
  // A round takes a minute, some of it without faults: servers start, clients settle.
  constexpr auto kAround = 20s;
  const auto minutes = static_cast<std::size_t>(options.minutes);
  const std::size_t turns = std::max<std::size_t>(1, minutes / kinds);
  const auto each = std::chrono::seconds(60 * minutes / (turns * kinds));
  return {turns, std::max<std::chrono::seconds>(each - kAround, 10s)};
}

template <class Counts>
std::string list(const Counts& counts) {
  std::string text;
  for (const auto& [what, count] : counts) {
    text += (text.empty() ? "" : ", ") + what + ' ' + std::to_string(count);
  }
  return text.empty() ? "none" : text;
}

/// A sum over the rounds of one service.
struct Total {
  int rounds = 0;
  std::chrono::seconds length{0};
  Tally tally;
  std::map<std::string, int> faults;
  std::size_t violations = 0;
};

void print(ServiceKind kind, const Total& total, const std::vector<std::string>& unmet) {
  const Tally& tally = total.tally;
  std::cout << name(kind) << ": " << total.rounds << " rounds, " << total.length.count()
            << " s of faults, " << tally.processes << " processes, those of each round, "
            << total.violations << " violations\n"
            << "  acquisitions " << tally.acquisitions() << ": " << list(tally.granted) << '\n'
            << "  refused or given up: " << list(tally.failed) << '\n'
            << "  lost holds " << tally.lost << ", proofs of belief " << tally.proofs
            << ", fenced writes " << tally.writes << ", refused by the fence " << tally.refused
            << ", counted in the ledger " << tally.counted << '\n'
            << "  faults: " << list(total.faults) << '\n';
  if (unmet.empty()) return;
  std::cout << "  NOT struck:";
  for (const std::string& fault : unmet) std::cout << ' ' << fault;
  std::cout << '\n';
}

class Run {
 public:
  Run(Options options, const Network& network)
      : options_(std::move(options)),
        network_(network),
        folder_(std::filesystem::temp_directory_path() /
                ("latchkey-faults-" + std::to_string(::getpid()))) {}

  int run() {
    const Schedule plan = schedule(options_);
    std::cout << "real faults: " << plan.rounds << " rounds for each service, of "
              << plan.length.count() << " s, seed " << options_.seed << '\n';
    if (!network_.why_not().empty()) std::cout << "not done here: " << network_.why_not() << '\n';
    for (const ServiceKind kind : options_.services) play(kind, plan);
    std::cout << '\n';
    std::size_t violations = 0;
    bool misses = false;
    for (const auto& [kind, total] : totals_) {
      const auto unmet = not_struck(kind, network_.means(), options_.only, total.faults);
      print(kind, total, unmet);
      violations += total.violations;
      misses = misses || (total.length >= kLong && !unmet.empty());
    }
    if (misses) std::cout << "a run of this length has to strike with every fault\n";
    if (violations == 0) {
      std::cout << "no violation\n";
      if (!options_.keep) std::filesystem::remove_all(folder_);
    }
    if (violations != 0 || options_.keep) std::cout << "histories: " << folder_.string() << '\n';
    return violations == 0 && !misses ? 0 : 1;
  }

 private:
  /// On one stage, unless something is wrong with it. In the second half the servers grow old.
  void play(ServiceKind kind, const Schedule& plan) {
    Stage stage;
    for (std::size_t i = 0; i < plan.rounds; ++i) {
      RoundOptions round;
      round.kind = kind;
      round.length = plan.length;
      round.spares = i >= (plan.rounds + 1) / 2;
      round.last = i + 1 == plan.rounds;
      if (!play(round, stage)) stage = {};
    }
  }

  /// Whether all was well.
  bool play(RoundOptions& round, Stage& stage) {
    const std::size_t number = rounds_++;
    round.workers = options_.workers;
    round.seed = options_.seed + number;
    round.only = options_.only;
    round.fence = options_.fence;
    round.folder = folder_ / (std::to_string(number) + '-' + std::string(name(round.kind)));
    round.worker = LATCHKEY_FAULT_WORKER;
    round.server = {LATCHKEY_COMMAND, LATCHKEY_DISK_SHIM};
    std::filesystem::create_directories(round.folder / "histories");

    Progress progress(round.folder / "faults");
    auto running =
        std::async(std::launch::async, [&] { return run_round(round, network_, stage, progress); });
    GrantCounter grants(round.folder / "histories");
    while (running.wait_for(5s) != std::future_status::ready) {
      tell(round, grants.count(), progress);
    }
    const RoundReport report = running.get();
    for (const Violation& violation : report.violations) {
      std::cout << "\nVIOLATION in round " << number << " (" << name(round.kind) << ", seed "
                << round.seed << ")\n"
                << violation;
    }
    std::cout << "round " << number << " (" << name(round.kind)
              << "), at rest: " << to_text(stage.soak) << std::endl;
    if (report.violations.empty() && !options_.keep) std::filesystem::remove_all(round.folder);
    add(round, report);
    return report.violations.empty();
  }

  void tell(const RoundOptions& round, std::uint64_t grants, const Progress& progress) const {
    const auto elapsed =
        std::chrono::duration_cast<std::chrono::seconds>(BootClock::now() - begun_);
    std::cout << std::setw(5) << elapsed.count() << " s  " << name(round.kind) << ": " << grants
              << " acquisitions; now: " << progress.present()
              << "; so far: " << list(progress.faults()) << std::endl;
  }

  void add(const RoundOptions& round, const RoundReport& report) {
    Total& total = totals_[round.kind];
    ++total.rounds;
    total.length += round.length;
    total.tally.add(report.tally);
    for (const auto& [fault, count] : report.faults) total.faults[fault] += count;
    total.violations += report.violations.size();
  }

  const Options options_;
  const Network& network_;
  const std::filesystem::path folder_;
  const Instant begun_ = BootClock::now();
  std::size_t rounds_ = 0;
  std::map<ServiceKind, Total> totals_;
};

}  // namespace
}  // namespace latchkey::faults

int main(int argc, char** argv) {
  using namespace latchkey::faults;
  try {
    const Options options = parse({argv + 1, argv + argc});
    const Network network = Network::enter();
    return Run(options, network).run();
  } catch (const std::invalid_argument& error) {
    std::cerr << "latchkey_faults: " << error.what() << '\n' << kUsage;
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "latchkey_faults: " << error.what() << '\n';
    return 1;
  }
}
