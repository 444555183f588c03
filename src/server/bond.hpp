#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace latchkey::server {

/// What is known of the process at the other end of a connection.
struct Evidence {
  pid_t pid = 0;  ///< Who connected; 0: not over a Unix socket, or not to be seen from here.
  std::optional<std::uint64_t> start_ticks;  ///< When whoever has that number began.
  bool is_watched = false;  ///< We hear of the end of the very process of which that was read: the
                            ///< watch began before, or had nothing to tell afterwards.
};

/// Does the session end with that process? Only if its client asked for it (`asked` is the protocol
/// version of its handshake, see base::process_mark()), and if there is no doubt who it is: whoever
/// connected has the number that the client says and began when it says, and the watch is on no
/// other. A number that was used again, a socket that was handed on, a proxy, another namespace:
/// the time-out rules.
///
///     if (is_bound(request.protocol_version, evidence)) end_session_with(process);
[[nodiscard]] bool is_bound(std::int32_t asked, const Evidence& evidence);

}  // namespace latchkey::server
