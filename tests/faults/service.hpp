#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.hpp"
#include "strike.hpp"

namespace latchkey::faults {

/// Servers that are done harm: an Apache ensemble, one Apache server, or `latchkey serve`.
///
///     auto service = make_service(ServiceKind::kEnsemble, programs);
///     service->start();
///     if (auto trouble = service->strike(ServerFault::kKillLeader, 500ms, random);
///     !trouble.empty())
///
/// Thread safety: one thread at a time, except addresses() and word(): any thread.
class Service {
 public:
  virtual ~Service() = default;

  /// Throws std::runtime_error, with the end of the log, if it does not come up.
  virtual void start() = 0;

  /// Does it, waits for its length, undoes it and returns when the service is whole again. What it
  /// returns is a promise that was not kept, or nothing.
  [[nodiscard]] virtual std::string strike(ServerFault fault, std::chrono::milliseconds length,
                                           base::Random& random) = 0;

  /// Of each server, as "127.0.0.1:2181".
  [[nodiscard]] virtual std::vector<std::string> addresses() const = 0;

  /// Of each server, while all of them run.
  [[nodiscard]] virtual std::vector<pid_t> processes() = 0;

  /// The answers of all servers to a four-letter word, one below the other.
  [[nodiscard]] std::string word(std::string_view word) const;
  /// For a client that may talk to any of them.
  [[nodiscard]] std::string connect_string() const;
};

/// What is needed to start our own server.
struct ServerProgram {
  std::string command;    ///< The latchkey program.
  std::string disk_shim;  ///< See disk_shim.cpp.
};

[[nodiscard]] std::unique_ptr<Service> make_service(ServiceKind kind, const ServerProgram& program);

}  // namespace latchkey::faults
