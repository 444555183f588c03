#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "latchkey/deadline.hpp"
#include "support/child.hpp"
#include "support/temp_dir.hpp"

namespace latchkey::test_support {

enum class ClientAuth { kNone, kWant, kNeed };

/// A TLS port beside the plain one. The files come from make_tls_files().
struct ApacheTls {
  std::filesystem::path key_store;    ///< PEM: certificate and key, Identity::both.
  std::filesystem::path trust_store;  ///< PEM: who may sign client certificates.
  ClientAuth client_auth = ClientAuth::kNone;
};

enum class Fsync { kSkip, kEveryWrite };

/// What a test may choose; the defaults are for speed. Session time-outs are granted between the
/// two limits, and the server notices the end of a session up to one tick late.
struct ApacheOptions {
  int tick_ms = 250;
  int min_session_timeout_ms = 500;
  int max_session_timeout_ms = 60'000;
  int container_check_ms = 250;    ///< How often empty containers and TTL nodes are swept.
  Fsync fsync = Fsync::kSkip;      ///< kill() loses nothing either way; only a power cut would.
  std::string host = "127.0.0.1";  ///< Or "::1".
  std::optional<ApacheTls> tls;
  std::optional<int> my_id;               ///< For members of an ensemble.
  std::vector<std::string> config_lines;  ///< "key=value", added to zoo.cfg.
  std::vector<std::string> java_flags;    ///< For example "-Djute.maxbuffer=4096".
};

/// Where the server stands, from its own `srvr` word.
enum class ApacheMode { kDown, kNotServing, kStandalone, kLeader, kFollower };

/// A real Apache ZooKeeper from the distribution's jars, with a folder and a port of its own.
///
///     ApacheServer server;
///     server.start();
///     auto session = Session::open(server.connect_string(), deadline_in(5s));
///     server.kill();
///     server.restart();  // Same port, same data.
///
/// Extended types (TTL nodes) are on, ACLs are checked, every four-letter word is allowed.
/// The port is taken at construction and kept, so a proxy can be set up before the server runs.
/// The destructor kills the process and removes the folder; after a crash of the test the kernel
/// kills the process.
///
/// Thread safety: one thread at a time, except connect_string(), port() and word(): any thread.
class ApacheServer {
 public:
  explicit ApacheServer(ApacheOptions options = {});
  ~ApacheServer();

  /// launch(), then wait_until_serving(). Throws std::runtime_error with the end of the server's
  /// log if it does not serve by the deadline.
  void start(Deadline deadline = deadline_in(std::chrono::seconds(60)));

  /// Starts the process and returns at once. Nothing to do if it runs.
  void launch();
  void wait_until_serving(Deadline deadline = deadline_in(std::chrono::seconds(60)));

  /// Ask politely (SIGTERM) or not (SIGKILL); both return when the process is gone.
  void stop();
  void kill();

  /// The process stands still but its sockets stay open.
  void pause();
  void resume();

  /// stop() if it runs, then start().
  void restart(Deadline deadline = deadline_in(std::chrono::seconds(60)));

  /// Kills the server if it runs and removes all its data: the next start() is from nothing.
  void wipe();

  [[nodiscard]] bool running();
  [[nodiscard]] pid_t pid() const { return process_ ? process_->pid() : -1; }

  /// The answer to a four-letter word, whole; empty if the server does not answer in time.
  [[nodiscard]] std::string word(std::string_view word,
                                 Deadline deadline = deadline_in(std::chrono::seconds(10))) const;
  [[nodiscard]] ApacheMode mode() const;

  [[nodiscard]] std::string connect_string() const;
  [[nodiscard]] std::uint16_t port() const { return port_; }
  /// Only with ApacheOptions::tls.
  [[nodiscard]] std::string secure_connect_string() const;
  [[nodiscard]] std::uint16_t secure_port() const { return secure_port_; }

  [[nodiscard]] const std::filesystem::path& folder() const { return folder_.path(); }
  /// The last lines the server logged, for failure messages.
  [[nodiscard]] std::string log_tail() const;

 private:
  void write_config() const;
  [[nodiscard]] std::vector<std::string> command() const;
  [[nodiscard]] std::string at(std::uint16_t port) const;

  const ApacheOptions options_;
  const TempDir folder_;
  const std::uint16_t port_;
  const std::uint16_t secure_port_;
  std::unique_ptr<Child> process_;
};

}  // namespace latchkey::test_support
