#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "latchkey/result.hpp"

namespace latchkey::session {

/// One server to try: a host and port, or the path of a Unix socket.
struct Endpoint {
  std::string host;        ///< A name or address, without brackets; empty for a Unix socket.
  std::uint16_t port = 0;  ///< 0 for a Unix socket.
  std::string socket_path;

  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

/// "zk1:2181", "[::1]:2181", "unix:/run/zk.sock".
[[nodiscard]] std::string to_string(const Endpoint& endpoint);

struct ConnectString {
  std::vector<Endpoint> endpoints;
  std::string chroot;  ///< Empty, or a valid path other than "/".
};

/// Reads "host:port,host:port/chroot". Ports default to 2181. A `unix:` entry takes everything up
/// to the next comma as its path, so a chroot beside it has to be set as an option.
[[nodiscard]] Result<ConnectString> parse_connect_string(std::string_view text);

}  // namespace latchkey::session
