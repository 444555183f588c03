#pragma once

#include <cstdint>
#include <string>
#include <vector>

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
};

[[nodiscard]] Plan draw_plan(std::uint64_t seed);

/// On one line, for people.
[[nodiscard]] std::string describe(const Plan& plan);

}  // namespace latchkey::sim
