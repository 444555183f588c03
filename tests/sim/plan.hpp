#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "latchkey/session.hpp"
#include "testing/world_options.hpp"

namespace latchkey::sim {

/// What kind of lock stands at a path.
enum class Sort : std::uint8_t {
  kMutex,
  kHandOver,
  kDelayed,
  kRw,
  kRwHerd,  ///< With WatchPolicy::kDirectory.
  kSemaphore,
  kMulti,  ///< Over the paths of the first mutexes of the plan.
  kName,
  kElection,
};

/// Of every Sort::kDelayed.
inline constexpr std::chrono::milliseconds kLockDelay{300};

/// Where holders of a site write under guard, if they do: the zxid of their token.
inline constexpr const char* kLedger = "/ledger-";

struct Site {
  Sort sort = Sort::kMutex;
  std::string path;
  int size = 1;  ///< Of a semaphore.
};

/// One run, as the seed draws it: which locks, how many clients, how patient they are, which faults
/// there are and how often. Every seed leaves some faults out, so that rare combinations of the
/// others come to the fore (swarm testing).
struct Plan {
  std::uint64_t seed = 1;
  bool is_plain = false;       ///< Drawn by draw_plain_plan().
  bool is_unswitched = false;  ///< Drawn by draw_unswitched_plan().
  testing::WorldOptions world;
  std::vector<Site> sites;
  std::size_t clients = 3;
  std::size_t contenders = 2;  ///< Of each client, on one session.
  std::chrono::milliseconds timeout{10'000};
  testing::Span think{};
  testing::Span hold{};
  testing::Span patience{};              ///< Until a lock's deadline.
  std::uint32_t long_hold_permille = 0;  ///< Of holds that outlast a session's time-out.
  std::uint32_t try_permille = 0;
  std::uint32_t cancel_permille = 0;
  Duration length{};     ///< Of the part with faults.
  testing::Span calm{};  ///< Between two faults.
  std::vector<testing::Fault> faults;

  // Rarities. They have a generator of their own, so that the rest of a plan is what it was before
  // there were any: see draw_plain_plan().
  std::vector<testing::Fault> rare_faults;
  testing::Span rare_calm{};         ///< Between two of them.
  bool resizes = false;              ///< Semaphores have a stored size, which changes.
  bool observes = false;             ///< Whoever runs for leadership watches who leads as well.
  std::uint32_t sick_permille = 0;   ///< Of health checks of a leader.
  bool drifts = false;               ///< Clocks run at different rates, as much as is allowed for.
  bool guards = false;               ///< Holders write under Lease::guard() as well.
  std::string reason = {};           ///< What mutexes say about themselves; if long, records are.
  bool relists = false;              ///< Whoever waits for a mutex lists again on every wake.
  bool farewells = false;            ///< Mutexes look for a farewell behind anybody (P9).
  std::uint32_t hurry_permille = 0;  ///< Of requests that end within a few round trips.
  bool twins = false;                ///< Some creates are carried out twice: see Twins.
  bool regrants = false;             ///< Servers grant different time-outs, and greetings get lost.
  // Of each session.
  std::size_t max_requests = SessionOptions{}.max_requests;
  std::size_t max_request_bytes = SessionOptions{}.max_request_bytes;

  /// The smallest that a server of this plan grants.
  [[nodiscard]] std::chrono::milliseconds least_timeout() const;
};

[[nodiscard]] Plan draw_plan(std::uint64_t seed);
/// The same without rare paths inside the code: what seeds that end with a nine meant before.
[[nodiscard]] Plan draw_unswitched_plan(std::uint64_t seed);
/// The same without rarities as well: what seeds meant when the older regressions were found.
[[nodiscard]] Plan draw_plain_plan(std::uint64_t seed);

/// A rate of a clock within what the lease allows for: two of them differ by less than a hundredth.
[[nodiscard]] double draw_drift(base::Random& luck);

/// The command that plays the seed again.
[[nodiscard]] std::string command_for(const Plan& plan);

/// On one line, for people.
[[nodiscard]] std::string describe(const Plan& plan);

}  // namespace latchkey::sim
