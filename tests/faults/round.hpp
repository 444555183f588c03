#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checker.hpp"
#include "network.hpp"
#include "progress.hpp"
#include "service.hpp"
#include "store.hpp"
#include "strike.hpp"

namespace latchkey::faults {

struct RoundOptions {
  ServiceKind kind = ServiceKind::kEnsemble;
  std::chrono::seconds length{15};  ///< How long there are faults.
  std::chrono::milliseconds timeout{2'000};
  std::size_t workers = 4;
  std::uint64_t seed = 0;
  std::optional<ServerFault> only;  ///< No other fault of a server.
  FencedStore::Check fence = FencedStore::Check::kOn;
  std::filesystem::path folder;  ///< Exists and is empty; histories go to `histories` in it.
  std::string worker;            ///< The program of worker.cpp.
  ServerProgram server;
};

/// What the histories amount to.
struct Tally {
  std::map<std::string, std::uint64_t> granted;  ///< By lock.
  std::map<std::string, std::uint64_t> failed;   ///< By code.
  std::uint64_t proofs = 0;
  std::uint64_t lost = 0;
  std::uint64_t writes = 0;
  std::uint64_t refused = 0;
  std::uint64_t counted = 0;
  std::uint64_t processes = 0;

  [[nodiscard]] std::uint64_t acquisitions() const;
  void add(const Tally& other);
};

[[nodiscard]] Tally tally(std::span<const Event> events);

struct RoundReport {
  Tally tally;
  std::map<std::string, int> faults;
  std::vector<Violation> violations;
};

/// One service and its clients from the start to the end: faults from two sides at once, everything
/// healed, everybody served once more, nothing left behind, and the verdict over the histories.
///
///     Progress progress(options.folder / "faults");
///     RoundReport report = run_round(options, network, progress);
///
/// Thread safety: one at a time; `progress` may be looked at meanwhile.
[[nodiscard]] RoundReport run_round(const RoundOptions& options, const Network& network,
                                    Progress& progress);

}  // namespace latchkey::faults
