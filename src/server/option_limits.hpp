#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "latchkey/server.hpp"

/// Which numbers make sense in ServerOptions: what `latchkey serve` and Server::start() refuse
/// with. Thread safety: immutable.
namespace latchkey::server {

/// A count of anything, bytes too. More than that is a mistake, most likely a negative number.
inline constexpr std::size_t kMostOfAnything = 1'000'000'000'000'000;
/// Above it, one request alone would be all that may be on its way to the disk.
inline constexpr std::size_t kMostFrame = std::size_t{64} << 20U;

struct CountLimit {
  std::string_view name;
  std::size_t ServerOptions::*count;
  std::size_t least = 1;
  std::size_t most = kMostOfAnything;
};

inline constexpr std::array<CountLimit, 14> kCountLimits = {{
    {"max_connections", &ServerOptions::max_connections},
    {"max_connections_per_address", &ServerOptions::max_connections_per_address},
    {"max_frame", &ServerOptions::max_frame, 1'024, kMostFrame},
    {"max_sessions", &ServerOptions::max_sessions},
    {"max_sessions_per_address", &ServerOptions::max_sessions_per_address},
    // Four are the system's.
    {"max_nodes", &ServerOptions::max_nodes, 5},
    {"max_bytes", &ServerOptions::max_bytes, 1'024},
    {"max_ephemeral_bytes_per_session", &ServerOptions::max_ephemeral_bytes_per_session, 1'024},
    {"max_requests_per_connection", &ServerOptions::max_requests_per_connection},
    {"max_watches", &ServerOptions::max_watches},
    {"max_watches_per_connection", &ServerOptions::max_watches_per_connection},
    {"max_watch_bytes", &ServerOptions::max_watch_bytes, 1'024},
    {"max_output_per_connection", &ServerOptions::max_output_per_connection, 65'536},
    {"max_buffered", &ServerOptions::max_buffered, 65'536},
}};

struct TimeLimit {
  std::string_view name;
  std::chrono::milliseconds ServerOptions::*time;
  std::chrono::milliseconds least{1};
  std::chrono::milliseconds most{INT32_MAX};  ///< As the protocol writes times.
};

inline constexpr std::array<TimeLimit, 6> kTimeLimits = {{
    {"tick", &ServerOptions::tick},
    {"min_session_timeout", &ServerOptions::min_session_timeout},
    {"max_session_timeout", &ServerOptions::max_session_timeout},
    {"reap_interval", &ServerOptions::reap_interval},
    {"handshake_timeout", &ServerOptions::handshake_timeout},
    {"idle_stop", &ServerOptions::idle_stop, std::chrono::milliseconds(0)},
}};

/// Does every number make sense, alone and beside the others? Errors: kInvalidOption, with the
/// option, its value and what would do.
[[nodiscard]] Result<void> check_limits(const ServerOptions& options);

}  // namespace latchkey::server
