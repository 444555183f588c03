#pragma once

#include <sys/types.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tree/expiry.hpp"

namespace latchkey::server {

/// A process, and no other: the next one with that number begins later.
struct Process {
  pid_t pid = 0;
  std::uint64_t start_ticks = 0;
  friend auto operator<=>(const Process&, const Process&) = default;
};

/// Which sessions end with which process: a session with one at most, a process with any number, so
/// that one watch on the process is enough for all of them.
///
///     bonds.add(session, process);
///     if (const auto idle = bonds.remove(session)) stop_watching(*idle);
///     for (tree::SessionId session : bonds.end(process)) expire(session);
///
/// Thread safety: one thread at a time.
class Bonds {
 public:
  /// The session must not be bound.
  void add(tree::SessionId session, const Process& process);

  /// The session ends with nobody from now on. Its process, if it had no other session: nobody need
  /// hear of its end any more.
  [[nodiscard]] std::optional<Process> remove(tree::SessionId session);

  /// Nothing: the session ends with nobody.
  [[nodiscard]] std::optional<Process> process_of(tree::SessionId session) const;

  /// The process has ended: its sessions, which are not bound any more.
  [[nodiscard]] std::vector<tree::SessionId> end(const Process& process);

  [[nodiscard]] std::size_t sessions() const { return process_of_.size(); }
  [[nodiscard]] std::size_t processes() const { return sessions_of_.size(); }

 private:
  std::unordered_map<tree::SessionId, Process> process_of_;
  std::map<Process, std::unordered_set<tree::SessionId>> sessions_of_;
};

}  // namespace latchkey::server
