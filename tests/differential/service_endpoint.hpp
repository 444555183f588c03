#pragma once

#include <cstdint>
#include <memory>

#include "differential/endpoint.hpp"

namespace latchkey::differential {

/// When the journal of the embedded server says that a record is durable.
enum class Journal : std::uint8_t {
  kImmediate,
  /// After some more requests, in groups of any size, or when somebody waits for it.
  kDelayed,
};

/// Our server's machine without sockets or disk. `seed` decides how the journal lags.
[[nodiscard]] std::unique_ptr<Endpoint> service_endpoint(Journal journal, std::uint64_t seed);

/// The whole of our server, in memory, behind a socket.
[[nodiscard]] std::unique_ptr<Endpoint> server_endpoint();

}  // namespace latchkey::differential
