#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "integration/session_fixture.hpp"
#include "support/seeded_data.hpp"
#include "support/tls_files.hpp"

namespace latchkey::test_support {

/// A server of a test's own, for what the shared ones must not go through: Apache ZooKeeper, or
/// `latchkey serve`. It does not run yet.
///
///     const auto server = own_server(GetParam());
///     server->start();
///     Session session = open_session(server->connect_string());
///     server->wipe();
///
/// Thread safety: one thread at a time.
class OwnServer {
 public:
  virtual ~OwnServer() = default;

  /// Returns when it serves. Throws std::runtime_error if it does not.
  virtual void start() = 0;
  /// Starts it and does not wait.
  virtual void launch() = 0;
  /// It stands still but its sockets stay open.
  virtual void pause() = 0;
  virtual void resume() = 0;
  /// Kills it and removes all its data.
  virtual void wipe() = 0;
  /// Before the first start.
  virtual void seed(const SeededData& data) = 0;

  /// With TLS, of the port that has it.
  [[nodiscard]] virtual std::string connect_string() const = 0;
  [[nodiscard]] virtual std::string word(std::string_view word) const = 0;
};

struct OwnTls {
  Identity identity;                ///< What the server shows.
  std::filesystem::path client_ca;  ///< Who may sign client certificates.
  ClientAuth clients = ClientAuth::kNone;
};

/// `kind` is one of a single server.
[[nodiscard]] std::unique_ptr<OwnServer> own_server(ServiceKind kind,
                                                    const std::optional<OwnTls>& tls = {});

}  // namespace latchkey::test_support
