#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "latchkey/server.hpp"
#include "tree/service.hpp"

namespace latchkey::server {

/// How many batches had how many entries, and how long each took to become durable.
struct CommitStatistics {
  /// Upper bounds of the classes; the last class has none.
  static constexpr std::array<std::size_t, 8> kBounds = {1, 2, 5, 10, 25, 100, 500, 2'500};

  std::array<std::uint64_t, kBounds.size() + 1> classes{};
  std::uint64_t batches = 0;
  std::uint64_t entries = 0;
  tree::Latency sync;

  void add(std::size_t size, Duration span);
};

/// Whose process it is, and where it was started.
struct Surroundings {
  std::string user = "<NA>";
  std::string home = "<NA>";
  std::string folder;
};

/// Everything that words and metrics tell of, at one moment. Thread safety: the server's strand
/// only.
struct Status {
  const tree::Service& service;
  const ServerOptions& options;
  const CommitStatistics& commits;
  const Surroundings& around;
  tree::Moment moment;
  Instant started;
  std::vector<std::string> addresses;
  std::uint16_t port = 0;
  std::uint64_t turns = 0;  ///< Of the loop, after each of which answers leave.
  std::size_t connections = 0;
  std::uint64_t accepted = 0;
  std::uint64_t turned_away = 0;         ///< Over a limit.
  std::uint64_t folds = 0;               ///< Snapshots made.
  std::uint64_t fold_errors = 0;         ///< Snapshots that could not be made.
  bool journal_damaged = false;          ///< A fold could not read back what is stored.
  std::int64_t stalled_ms = 0;           ///< Time that was added to every session's deadline.
  std::size_t bound_sessions = 0;        ///< Sessions that will end with their process.
  std::size_t watched_processes = 0;     ///< Those processes.
  std::uint64_t bonds_refused = 0;       ///< Sessions that will not, there being too many of those.
  std::uint64_t ended_with_process = 0;  ///< Sessions that ended because their process had.
};

}  // namespace latchkey::server
