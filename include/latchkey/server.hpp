#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "latchkey/export.hpp"
#include "latchkey/result.hpp"
#include "latchkey/session.hpp"

namespace latchkey::inline v0 {

/// TLS for a server's TCP addresses; without it they are plain.
///
///     ServerOptions options;
///     options.tls = ServerTls{.cert_file = "server.pem", .key_file = "server.key"};
struct ServerTls {
  std::string cert_file = {};  ///< Certificate chain, PEM.
  std::string key_file = {};   ///< Its private key, PEM.
  /// Who may sign client certificates, PEM. A client that shows one is {"x509", its subject}.
  std::string client_ca_file = {};
  enum class Clients { kMayShowCertificate, kMustShowCertificate };
  Clients clients = Clients::kMayShowCertificate;
};

/// What a server may be told. The defaults are for a user's own tests: memory, and a free port on
/// the loopback. Server::start() refuses a number that makes no sense, such as 0 or -1 of anything,
/// and says what would do.
///
///     ServerOptions options;
///     options.data_folder = "/var/lib/latchkey";
///     options.listen = {"127.0.0.1:2181"};
///     options.log = [](LogLevel, std::string_view text) { std::clog << text << '\n'; };
struct ServerOptions {
  /// TCP addresses, "127.0.0.1:2181", "[::1]:2181", "localhost:2181"; port 0 takes a free one.
  /// Empty together with `unix_path` and `inherited`: a free port on the loopback.
  std::vector<std::string> listen = {};
  /// A Unix socket, for this user only (0600). One left behind by a dead server is replaced.
  std::filesystem::path unix_path = {};
  /// Sockets that listen already, from systemd or a parent. The server closes them.
  std::vector<int> inherited = {};
  std::optional<ServerTls> tls = {};

  /// Where the data lies; made if it is missing. Empty: in memory, and gone with the object.
  std::filesystem::path data_folder = {};
  /// What to do with a journal that is damaged. Cutting keeps what comes before the damage and sets
  /// the rest aside in the folder: acknowledged writes are lost, knowingly. It is for one start.
  enum class Damage { kRefuse, kCut };
  Damage on_damage = Damage::kRefuse;
  /// Large data takes its time to be read: start() gives up when this is asked to stop, with
  /// kCancelled and nothing changed. It is for one start.
  std::stop_token cancel_start = {};

  std::chrono::milliseconds tick{50};                     ///< Sessions end at most so late.
  std::chrono::milliseconds min_session_timeout{4'000};   ///< Shorter wishes are raised to it,
  std::chrono::milliseconds max_session_timeout{40'000};  ///< longer ones cut down.
  std::chrono::milliseconds reap_interval{60'000};  ///< Between looks for unused containers and
                                                    ///< TTL nodes past their time.

  std::chrono::milliseconds handshake_timeout{10'000};  ///< For TLS, and again for the session.

  /// After so long without a session, and with nobody connected, the server ends by itself, as if
  /// by stop(); whoever connects at that moment finds nobody. Before the first session it waits for
  /// `handshake_timeout` more. Metrics and admin words do not make it wait. 0: never.
  std::chrono::milliseconds idle_stop{0};

  /// More are closed at once; and so are those for which the process has no descriptors, of which
  /// some are kept for the journal.
  std::size_t max_connections = 20'000;
  /// From one address (of IPv6, one /64) but the loopback; Unix sockets are not counted.
  std::size_t max_connections_per_address = 2'000;
  std::size_t max_frame = 1'048'575;  ///< Bytes of one request.
  std::size_t max_sessions = 1'000'000;
  /// That one address other than the loopback, or one user of the Unix socket, has opened and that
  /// are still there, connected or not.
  std::size_t max_sessions_per_address = 20'000;
  std::size_t max_nodes = 10'000'000;
  std::size_t max_bytes = std::size_t{4} << 30U;  ///< Of paths, data and each node's permissions.
  /// Of the paths of one session's ephemeral nodes, and 32 bytes for each of them; more are refused
  /// (QuotaExceeded). They all go at once with their session, and nobody is served meanwhile.
  std::size_t max_ephemeral_bytes_per_session = std::size_t{8} << 20U;
  /// Requests of one connection that may wait for their answer; beyond it, it is not read from.
  std::size_t max_requests_per_connection = 1'000;
  std::size_t max_watches = 10'000'000;
  std::size_t max_watches_per_connection = 1'000'000;
  /// Of the paths that are watched, each of them once; more are refused (QuotaExceeded).
  std::size_t max_watch_bytes = std::size_t{1} << 30U;
  /// Bytes that may wait for a connection to take them; beyond it, it is closed. A list of children
  /// that would take more is refused (QuotaExceeded).
  std::size_t max_output_per_connection = std::size_t{64} << 20U;
  /// Bytes of all connections together that wait on either side: requests that are not whole yet,
  /// answers and events that were not taken. Beyond it those with the most are closed. Not less
  /// than max_output_per_connection.
  std::size_t max_buffered = std::size_t{256} << 20U;

  /// Four-letter words that are answered; {"all"} for every one there is.
  std::vector<std::string> words{"ruok", "srvr"};
  /// "user:hash" of whoever may do everything, hash being base64(sha1("user:password")).
  std::string super_digest = {};
  /// "127.0.0.1:9090": where Prometheus may fetch /metrics. Empty: nowhere.
  std::string metrics = {};

  /// Runs on threads of the server's own, one at a time. It must not call the server.
  std::function<void(LogLevel, std::string_view)> log = {};
};

/// A ZooKeeper-compatible server of one machine inside this process: what `latchkey serve` runs,
/// and what a unit test starts instead of a Java process.
///
///     auto server = Server::start();
///     if (!server) { std::cerr << server.error() << '\n'; return 1; }
///     auto session = Session::open(server->connect_string(), {}, deadline_in(5s));
///     auto expired = server->expire_session(session->id());  // what does our program do now?
///
/// It is one server, not an ensemble: it does not replicate, and reconfig is refused. With a data
/// folder, whatever it has answered or shown to anybody survives a crash of the process or the
/// machine; when the disk refuses it stops rather than answer what it cannot keep, and wait() says
/// why.
///
/// Destruction is stop(). A forked child has no server: there, every call does nothing and says so
/// with kForked, and nothing of the parent's is disturbed. A moved-from Server may only be assigned
/// to or destroyed.
///
/// Thread safety: any thread; moving and destroying it wants no call to be under way.
class LATCHKEY_EXPORT Server {
 public:
  /// Returns when the data has been read and clients can connect.
  /// Errors: kInUse (an address, the Unix socket or the folder), kInvalidOption, kDamaged,
  /// kStorage, kTls, kUnreachable (an address that is not ours), kCancelled.
  [[nodiscard]] static Result<Server> start(ServerOptions options = ServerOptions());

  /// The same on a Unix socket in a fresh folder, which goes with the object: for tests that must
  /// not depend on ports. `listen` may add addresses.
  [[nodiscard]] static Result<Server> start_in_temp_folder(ServerOptions options = ServerOptions());

  Server(Server&&) noexcept;
  Server& operator=(Server&&) noexcept;
  ~Server();

  /// For Session::open: the first TCP address, or else the Unix socket.
  [[nodiscard]] std::string connect_string() const;
  /// Of the first TCP address; 0 without one.
  [[nodiscard]] std::uint16_t port() const;
  /// "127.0.0.1:2181", "unix:/run/latchkey.sock": everything clients can connect to.
  [[nodiscard]] std::vector<std::string> addresses() const;
  /// Where /metrics is, with its port; empty without.
  [[nodiscard]] std::string metrics_address() const;
  [[nodiscard]] std::filesystem::path unix_path() const;
  /// What was found in the data folder at the start, for people.
  [[nodiscard]] std::string recovered() const;

  /// Takes no more requests, answers those that were taken, marks the end of the journal and closes
  /// everything. Sessions are not closed: they are there again after the next start. Errors: what
  /// ended the server before, kStorage if the journal could not be closed in order, or
  /// kWouldDeadlock from the server's own log.
  Result<void> stop();

  /// stop(), then a start on the same addresses with the same data; in memory too. Every session
  /// has its full time-out again. With a folder also after a failed disk. Errors: as start();
  /// kWouldDeadlock from the server's own log.
  Result<void> restart();

  /// Ends a session as if it had run out, and returns when that is durable. Errors: kNoNode if
  /// there is no such session, kClosed if the server is not running, kWouldDeadlock from the
  /// server's own log, or what ended it.
  Result<void> expire_session(std::int64_t session_id);

  /// Waits until the server has ended. Errors: what ended it; kWouldDeadlock from its own log.
  Result<void> wait();

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace latchkey::inline v0
