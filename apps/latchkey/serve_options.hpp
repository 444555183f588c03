#pragma once

#include <string>
#include <string_view>

#include <CLI/App.hpp>

#include "latchkey/server.hpp"

namespace latchkey::app {

/// What `latchkey serve` was told, as it is typed.
struct ServeOptions {
  ServerOptions server;
  bool memory = false;
  bool cut_damage = false;
  ServerTls tls;
  bool require_client_certificate = false;
  std::string config_file;
};

/// Every option, and the configuration file that may say them instead. `options` has to outlive the
/// command.
void add_serve_options(CLI::App& command, ServeOptions& options);

/// What the server is told. Sockets of systemd, the default address and the log are for the caller.
[[nodiscard]] ServerOptions server_options(const ServeOptions& asked);

/// What is missing of a server's TLS, in words of the command line; empty if nothing is.
[[nodiscard]] std::string missing_of_tls(const ServerOptions& options);

/// A message of the server's with its options as they are typed.
///
///     as_typed("max_frame (0) is too small");  // "--max-frame (0) is too small"
[[nodiscard]] std::string as_typed(std::string message);

}  // namespace latchkey::app
