#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checker.hpp"
#include "crew.hpp"
#include "network.hpp"
#include "progress.hpp"
#include "service.hpp"
#include "soak.hpp"
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
  bool spares = false;              ///< No server is ended, so that it grows old.
  bool last = true;                 ///< In the end everybody leaves.
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

/// What lives on from round to round: a service, its clients, and what each process had at rest.
/// In the order of destruction, clients go first.
struct Stage {
  std::unique_ptr<Service> service = nullptr;
  std::unique_ptr<Crew> crew = nullptr;
  Soak soak = {};
};

/// One round of faults from two sides at once; then everything is healed, everybody is served once
/// more, nothing is left behind, no process has more than before the first fault, and there is the
/// verdict over the histories. An empty stage is set up first. One with a violation is of no use.
///
///     Stage stage;
///     Progress progress(options.folder / "faults");
///     RoundReport report = run_round(options, network, stage, progress);
///
/// Thread safety: one at a time; `progress` may be looked at meanwhile.
[[nodiscard]] RoundReport run_round(const RoundOptions& options, const Network& network,
                                    Stage& stage, Progress& progress);

}  // namespace latchkey::faults
