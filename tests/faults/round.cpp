#include "round.hpp"

#include <exception>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "latchkey/session.hpp"
#include "pause.hpp"
#include "support/eventually.hpp"
#include "terms.hpp"

namespace latchkey::faults {

namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using Side = Progress::Side;

/// Threads for callbacks end by themselves when nobody has called for five seconds. Later there is
/// time to wait until they are gone; those that the first reading has could hide a leak.
constexpr auto kIdle = 6s;

/// The sum of a figure of `mntr` over all servers; nothing if one of them does not tell.
std::optional<std::int64_t> figure(const Service& service, const std::string& key) {
  std::istringstream answer(service.word("mntr"));
  std::int64_t sum = 0;
  std::size_t told = 0;
  for (std::string line; std::getline(answer, line);) {
    if (!line.starts_with(key + '\t')) continue;
    sum += std::stoll(line.substr(key.size() + 1));
    ++told;
  }
  if (told != service.addresses().size()) return std::nullopt;
  return sum;
}

[[noreturn]] void fail(const Error& error) { throw std::runtime_error(error.message()); }

template <class T>
T demand(Result<T> result) {
  if (!result) fail(result.error());
  return std::move(*result);
}

class Round {
 public:
  Round(const RoundOptions& options, const Network& network, Stage& stage, Progress& progress)
      : options_(options),
        network_(network),
        stage_(stage),
        progress_(progress),
        random_(options.seed) {
    std::filesystem::create_directories(options_.folder / "histories");
  }

  RoundReport run() {
    try {
      play();
    } catch (const std::exception& error) {
      complain("harness", error.what());
    }
    const std::vector<Event> events = read_histories(options_.folder / "histories");
    for (Violation& violation : check(events, rules_)) report_.violations.push_back(violation);
    report_.tally = tally(events);
    report_.faults = progress_.faults();
    return std::move(report_);
  }

 private:
  void play() {
    for (const Contended& lock : kAll) rules_.locks[lock.name] = {lock.capacity, lock.order};
    if (!stage_.service) set_up();
    work(options_.folder, [&] {
      strike_both(*stage_.service, *stage_.crew);
      const std::string gap =
          missing(options_.kind, network_.means(), options_.only, progress_.faults());
      if (!gap.empty()) complain("harness", gap);
    });
    rules_.workers = stage_.crew->names();
    rules_.ledger = read_ledger(*stage_.service);
    // With the sessions still open: what they owe is not taken away by their end.
    expect_quiet(stage_.crew->names().size());
    expect_no_growth();
    if (!options_.last) return;
    for (const std::string& trouble : stage_.crew->leave()) complain("process", trouble);
    expect_quiet(0);
  }

  /// Everybody has every lock once, and nobody is struck: what they have then is what they need.
  void set_up() {
    stage_.service = make_service(options_.kind, options_.server);
    stage_.service->start();
    make_ledger(*stage_.service);
    stage_.crew = std::make_unique<Crew>(CrewOptions{.program = options_.worker,
                                                     .addresses = stage_.service->addresses(),
                                                     .timeout = options_.timeout,
                                                     .size = options_.workers,
                                                     .seed = random_.next()},
                                         network_);
    work(options_.folder / "before", [] {});
    expect_quiet(options_.workers);
    pause_for(kIdle);
    expect_no_growth();
  }

  /// Everybody contends as long as `meanwhile` takes, and then rests.
  template <class Meanwhile>
  void work(const std::filesystem::path& folder, const Meanwhile& meanwhile) {
    const std::filesystem::path histories = folder / "histories";
    std::filesystem::create_directories(histories);
    const StoreService store(folder / "store", histories / "store", options_.fence);
    stage_.crew->work(folder);
    meanwhile();
    for (const std::string& trouble : stage_.crew->settle()) complain("liveness", trouble);
  }

  void complain(std::string rule, std::string what) {
    report_.violations.push_back({std::move(rule), std::move(what), {}});
  }

  [[nodiscard]] static Session open(const Service& service) {
    return demand(Session::open(service.connect_string(), {}, deadline_in(60s)));
  }

  static void make_ledger(const Service& service) {
    Session session = open(service);
    demand(session.create(kLedger, "0", {}, deadline_in(60s)));
  }

  [[nodiscard]] static std::int64_t read_ledger(const Service& service) {
    Session session = open(service);
    if (auto synced = session.sync(kLedger, deadline_in(60s)); !synced) fail(synced.error());
    return std::stoll(demand(session.get(kLedger, deadline_in(60s))).data);
  }

  [[nodiscard]] std::vector<ServerFault> faults_of_servers() const {
    if (options_.only) return {*options_.only};
    return options_.spares ? sparing_faults(options_.kind) : server_faults(options_.kind);
  }

  /// Servers and clients are struck at the same time, each side by itself.
  void strike_both(Service& service, Crew& crew) {
    const Deadline end = deadline_in(options_.length);
    std::exception_ptr failed;
    std::thread servers([&, seed = random_.next()] {
      try {
        base::Random random(seed);
        Deck<ServerFault> deck(faults_of_servers(), random);
        strike_until(end, Side::kServers, deck, random,
                     [&](ServerFault fault, milliseconds length) {
                       const std::string trouble = service.strike(fault, length, random);
                       if (!trouble.empty()) broken_ = trouble;
                       return trouble.empty();
                     });
      } catch (...) {
        failed = std::current_exception();
      }
    });
    std::exception_ptr failed_here;
    try {
      base::Random random(random_.next());
      Deck<ClientFault> deck(client_faults(network_.means()), random);
      strike_until(end, Side::kClients, deck, random, [&](ClientFault fault, milliseconds length) {
        return crew.strike(fault, length, random);
      });
    } catch (...) {
      failed_here = std::current_exception();
    }
    servers.join();
    if (!broken_.empty()) complain("server", broken_);
    for (const std::exception_ptr& error : {failed, failed_here}) {
      if (error) std::rethrow_exception(error);
    }
  }

  template <class Fault, class Strike>
  void strike_until(Deadline end, Side side, Deck<Fault>& deck, base::Random& random,
                    const Strike& strike) {
    // A service that is struck all the time serves nobody, and then there is nothing to see.
    const std::uint64_t calm_ms = side == Side::kServers ? 3'000 : 1'000;
    while (!end.has_passed(BootClock::now())) {
      pause_for(milliseconds(random.below(calm_ms)));
      const Fault fault = deck.next();
      progress_.begin(side, name(fault));
      const bool struck = strike(fault, length_of(fault, options_.timeout, random));
      progress_.end(side, struck);
    }
  }

  /// No entry and no watch is left, and no session that nobody has open, sooner or later: who was
  /// killed keeps its own until its session has expired.
  void expect_quiet(std::size_t sessions) {
    const Service& service = *stage_.service;
    const auto most = [&](const char* key, std::size_t count) {
      return test_support::eventually(
          [&] {
            const auto now = figure(service, key);
            return now && *now <= static_cast<std::int64_t>(count);
          },
          deadline_in(60s));
    };
    if (!most("zk_ephemerals_count", 0)) {
      complain("orphans",
               "entries are left although nobody holds or waits:\n" + service.word("dump"));
    }
    if (!most("zk_watch_count", 0)) {
      complain("watches", "watches are left although nobody waits:\n" + service.word("wchp"));
    }
    // Each server of an ensemble knows the sessions of all.
    if (!most("zk_global_sessions", sessions * service.addresses().size())) {
      complain("sessions", "there are more than the " + std::to_string(sessions) +
                               " that are open:\n" + service.word("dump"));
    }
  }

  void expect_no_growth() {
    const bool apache = options_.kind != ServiceKind::kEmbedded;
    expect_no_growth("server", stage_.service->processes(), apache ? kApaches : kServers);
    const std::vector<std::string> names = stage_.crew->names();
    const std::vector<pid_t> processes = stage_.crew->processes();
    for (std::size_t i = 0; i < names.size(); ++i) {
      expect_no_growth(names[i], {processes[i]}, kClients);
    }
  }

  /// What is being closed is gone sooner or later.
  void expect_no_growth(const std::string& who, const std::vector<pid_t>& processes,
                        const Allowance& allowance) {
    std::vector<Usage>& readings = stage_.soak[who];
    std::string found;
    const auto at_rest = [&, before = readings] {
      readings = before;
      readings.push_back(usage_of(processes));
      found = grown(readings, allowance);
      return found.empty();
    };
    if (!test_support::eventually(at_rest, deadline_in(30s))) complain("leak", who + ": " + found);
  }

  const RoundOptions& options_;
  const Network& network_;
  Stage& stage_;
  Progress& progress_;
  base::Random random_;
  Rules rules_;
  RoundReport report_;
  std::string broken_;  ///< Written by the servers' thread, read when it has ended.
};

}  // namespace

std::uint64_t Tally::acquisitions() const {
  std::uint64_t sum = 0;
  for (const auto& [lock, count] : granted) sum += count;
  return sum;
}

void Tally::add(const Tally& other) {
  for (const auto& [lock, count] : other.granted) granted[lock] += count;
  for (const auto& [code, count] : other.failed) failed[code] += count;
  proofs += other.proofs;
  lost += other.lost;
  writes += other.writes;
  refused += other.refused;
  counted += other.counted;
  processes += other.processes;
}

Tally tally(std::span<const Event> events) {
  Tally result;
  std::set<std::string> processes;
  for (const Event& event : events) {
    processes.insert(event.who);
    switch (event.what) {
      case What::kGranted: ++result.granted[event.lock]; break;
      case What::kFailed: ++result.failed[event.text]; break;
      case What::kHolds: ++result.proofs; break;
      case What::kLost: ++result.lost; break;
      case What::kWrote: ++result.writes; break;
      case What::kRefused: ++result.refused; break;
      case What::kCounted: ++result.counted; break;
      default: break;
    }
  }
  result.processes = processes.size();
  return result;
}

RoundReport run_round(const RoundOptions& options, const Network& network, Stage& stage,
                      Progress& progress) {
  return Round(options, network, stage, progress).run();
}

}  // namespace latchkey::faults
