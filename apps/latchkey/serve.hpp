#pragma once

#include <CLI/App.hpp>

#include "latchkey/server.hpp"

namespace latchkey::app {

struct ServeOptions {
  ServerOptions server;
  bool memory = false;
  bool cut_damage = false;
  // As they are typed.
  std::int64_t tick_ms = 2'000;
  std::int64_t min_session_timeout_ms = 4'000;
  std::int64_t max_session_timeout_ms = 40'000;
  std::int64_t reap_interval_ms = 60'000;
  std::int64_t handshake_timeout_ms = 10'000;
  ServerTls tls;
  bool require_client_certificate = false;
  std::string config_file;
};

/// Adds `latchkey serve` with its options to the command line. `options` has to outlive the app.
CLI::App* add_serve(CLI::App& app, ServeOptions& options);

/// Runs the server until SIGTERM or SIGINT, or until it fails. Returns the exit code: 0 after a
/// clean shutdown, 1 if it could not start or had to stop, 64 for options that contradict each
/// other.
int run_serve(const ServeOptions& options);

}  // namespace latchkey::app
