#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "latchkey/deadline.hpp"
#include "latchkey/export.hpp"
#include "latchkey/operations.hpp"
#include "latchkey/result.hpp"

namespace latchkey::session {
class Host;
}

namespace latchkey::inline v0 {

/// Where a session stands. It moves only along these lines:
///
///     kConnecting ──► kConnected ◄──► kSuspended
///          │              │               │
///          └──────────────┴───────────────┴──► kExpired, kAuthFailed or kClosed, which are final
///
/// Suspended is not lost: the server keeps the session for its time-out, and so the locks. Expired
/// means that the server has dropped it, or must have: see SessionOptions::give_up_after.
///
///     if (session.state() == SessionState::kSuspended) std::clog << "looking for a server\n";
enum class SessionState { kConnecting, kConnected, kSuspended, kExpired, kAuthFailed, kClosed };

[[nodiscard]] LATCHKEY_EXPORT std::string_view name(SessionState state) noexcept;
LATCHKEY_EXPORT std::ostream& operator<<(std::ostream& out, SessionState state);

/// How long to wait before the next try, and how often to try: base, base*factor, base*factor^2,
/// ... up to cap, each shortened by a random part of up to a half so that clients do not march in
/// step.
///
///     SessionOptions options;
///     options.retry = RetryPolicy{.base = 100ms, .cap = 10s, .count = 3};
struct RetryPolicy {
  std::chrono::milliseconds base{20};
  double factor = 2.0;
  std::chrono::milliseconds cap{2'000};
  /// How often a read is sent again after its connection broke. Writes never are: look at
  /// Error::effect(). Reconnecting has no such limit; deadlines and the session's end stop it.
  int count = 16;
};

/// TLS is used if any of these is set. Without `ca_file` the system's certificate store is trusted.
///
///     SessionOptions options;
///     options.tls = TlsOptions{.ca_file = "ca.pem", .cert_file = "us.pem", .key_file = "us.key"};
struct TlsOptions {
  enum class Verify { kHostName, kChainOnly };

  bool enabled = false;
  std::string ca_file = {};
  std::string cert_file = {};  ///< Client certificate chain, PEM.
  std::string key_file = {};   ///< Its private key, PEM.
  Verify verify = Verify::kHostName;
};

/// An identity that the session proves to every server it connects to.
///
///     SessionOptions options;
///     options.credentials = {Credential{"digest", "ann:secret"}};
struct Credential {
  std::string scheme = {};  ///< "digest"
  std::string secret = {};  ///< "user:password"; with "digest" there has to be a colon.
};

/// One finished operation, for metrics and tracing.
///
///     SessionOptions options;
///     options.on_operation = [](const OperationReport& report) {
///       metrics.record(report.operation, report.latency, report.ok);
///     };
struct OperationReport {
  std::string_view operation;  ///< "create2", "getData", ...
  std::string path = {};
  Duration latency{};  ///< From the call to the outcome.
  std::size_t bytes_sent = 0;
  std::size_t bytes_received = 0;
  int attempts = 0;  ///< How often it was put on the wire.
  bool ok = false;
  Code code = Code::kServerError;  ///< Meaningful if not ok.
};

/// How much a line of the log matters.
///
///     const auto log = [](LogLevel level, std::string_view text) {
///       if (level >= LogLevel::kWarning) std::clog << text << '\n';
///     };
enum class LogLevel { kDebug, kInfo, kWarning, kError };

/// When a session ends whose process has died. A Latchkey server behind a "unix:" address sees its
/// client's process end; any other server, or one that is in doubt, learns of it by the time-out.
///
///     SessionOptions options;
///     options.after_death = AfterDeath::kTimeout;  // Our children work on without us.
enum class AfterDeath {
  /// At once, if the server can tell. The locks pass on without a wait, so nothing that they
  /// protect may go on in another process: no child that was started under a lock.
  kEndsAtOnce,
  /// After its time-out, like every session of ZooKeeper.
  kTimeout,
};

/// Runs a task somewhere else, soon: a thread pool's post function.
///
///     const Executor executor = [](std::function<void()> task) { pool->post(std::move(task)); };
using Executor = std::function<void(std::function<void()>)>;

/// What a session may be told beyond where to connect.
///
///     SessionOptions options;
///     options.timeout = 30s;
///     options.on_state = [](SessionState state) { std::clog << name(state) << '\n'; };
///     options.log = [](LogLevel level, std::string_view text) {
///       if (level >= LogLevel::kWarning) std::clog << text << '\n';
///     };
struct SessionOptions {
  /// What to ask the server for; it may grant more or less, see Session::timeout(). A dead holder's
  /// lock passes on after about this time.
  std::chrono::milliseconds timeout{10'000};
  /// The smallest time-out that any server of the ensemble grants to this session. To be set where
  /// servers have different limits, or get lower ones while the session lives: a handshake whose
  /// answer is lost counts with it. Default: what has been granted to this session so far, because
  /// all servers grant the same. See docs/guarantees.md.
  std::optional<std::chrono::milliseconds> least_timeout = {};
  std::string chroot = {};  ///< As in the connect string; setting both is an error.
  AfterDeath after_death = AfterDeath::kEndsAtOnce;
  RetryPolicy retry = {};
  TlsOptions tls = {};
  std::vector<Credential> credentials = {};

  /// A session that finds no server for this long, or for three time-outs if that is longer, is
  /// given up as kExpired, although no server has said so: after a server lost its data nobody ever
  /// would (H20).
  std::chrono::milliseconds give_up_after{0};

  /// Requests that wait for an answer or for a connection. Beyond it a blocking call waits for room
  /// and an asynchronous one fails with kOverloaded.
  /// Locks are not held back by it: each has a few small requests under way at most.
  std::size_t max_requests = 10'000;
  /// The same limit in bytes.
  std::size_t max_queued_bytes = 64U << 20U;
  /// Largest request we send and the largest reply we accept, in bytes. Apache's own limit on
  /// requests is 1 MiB - 1; replies with many children may be larger. Less than 1 KiB is refused:
  /// nobody could get a lock.
  std::size_t max_request_bytes = 1'048'575;
  std::size_t max_reply_bytes = 16U << 20U;

  /// Hooks. All run on `executor`, one at a time and in order, never on the I/O thread.
  std::function<void(SessionState)> on_state = {};
  std::function<void(const OperationReport&)> on_operation = {};
  std::function<void(LogLevel, std::string_view)> log = {};
  /// Told of what a callback has thrown, with a name of the callback: "on_state", "QueueWatch", ...
  /// That is logged as well, at kError. With neither this nor `log` it is printed on standard
  /// error. A callback that throws does not stop those behind it.
  std::function<void(std::string_view callback, std::exception_ptr thrown)> on_exception = {};
  /// Where callbacks run; by default threads of Latchkey's own. What tells user code to stop always
  /// comes on such a thread: Lease::lost(), Lease::release_requested(), ElectionNews::over. A call
  /// of it may still be under way when the last callback has run, so let it share whatever it uses.
  /// It must not throw.
  Executor executor = {};
};

/// A conversation with a ZooKeeper service: requests, watches, and the ephemeral nodes that live as
/// long as it does. Many locks share one Session.
///
///     auto session = Session::open("zk1:2181,zk2:2181/app", {}, deadline_in(5s));
///     if (!session) { std::cerr << session.error() << '\n'; return 1; }
///     auto node = session->get("/config", deadline_in(1s));
///
/// Every operation has exactly one outcome, no later than its deadline. If a connection breaks
/// under a write, the Error says Effect::kUnknown: perhaps it was carried out. Reads are sent
/// again.
///
/// The object is a handle: copies, mutexes and leases share the session, and it is closed when the
/// last of them goes, or at once by close(). Destruction never waits and never throws. A forked
/// child cannot use its parent's session: every call fails with kForked. A moved-from Session may
/// only be assigned to or destroyed.
///
/// Thread safety: any thread. A blocking call made from a thread that runs the asio::io_context
/// given to this session fails with kWouldDeadlock.
class LATCHKEY_EXPORT Session {
 public:
  template <class T>
  using Handler = std::function<void(Result<T>)>;

  /// Opens a session and waits until a server has accepted it.
  /// `connect` is "host:port,host:port/chroot"; ports default to 2181; IPv6 in brackets;
  /// "unix:/path" names a Unix socket.
  /// Errors: kInvalidConnectString, kInvalidOption, kInvalidPath (the chroot), kTls, kUnreachable,
  /// kAuthFailed.
  [[nodiscard]] static Result<Session> open(std::string_view connect, SessionOptions options,
                                            Deadline deadline);

  /// As open(), without waiting: requests queue up until a server is there.
  [[nodiscard]] static Result<Session> start(std::string_view connect,
                                             SessionOptions options = SessionOptions());

  explicit Session(std::shared_ptr<session::Host> host) noexcept;
  Session(const Session&) noexcept;
  Session(Session&&) noexcept;
  Session& operator=(const Session&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  /// Sends `operation` and waits for its outcome. Any type of operations.hpp.
  template <class Operation>
  [[nodiscard]] Result<typename Operation::Value> call(Operation operation, Deadline deadline);

  /// Sends `operation` and returns. `handler` runs on the callback executor, exactly once. (In a
  /// forked child, where nothing else works, it gets kForked at once on the calling thread.)
  template <class Operation>
  void async(Operation operation, Deadline deadline, Handler<typename Operation::Value> handler);

  // The most used operations by name.
  [[nodiscard]] Result<Created> create(Path path, std::string data, CreateOptions options,
                                       Deadline deadline);
  [[nodiscard]] Result<void> remove(Path path, Deadline deadline, std::int32_t version = -1);
  [[nodiscard]] Result<std::optional<Stat>> exists(Path path, Deadline deadline,
                                                   Watcher watcher = {});
  [[nodiscard]] Result<Node> get(Path path, Deadline deadline, Watcher watcher = {});
  [[nodiscard]] Result<Stat> set(Path path, std::string data, Deadline deadline,
                                 std::int32_t version = -1);
  [[nodiscard]] Result<ChildList> children(Path path, Deadline deadline, Watcher watcher = {});
  [[nodiscard]] Result<void> sync(Path path, Deadline deadline);
  [[nodiscard]] Result<Multi::Outcome> multi(std::vector<Multi::Part> parts, Deadline deadline);

  /// Waits until connected. Errors: kUnreachable at the deadline, or what ended the session.
  [[nodiscard]] Result<void> wait_connected(Deadline deadline);

  /// Ends the session for every handle, mutex and lease that shares it, and waits for the server's
  /// word on it until `deadline`. The server hears of it when the callbacks of Lease::lost() and
  /// ElectionNews::over have returned, unless the call comes from one of them or from a lead inside
  /// on_change. On success its ephemeral nodes are gone. Without that word the
  /// session is over all the same, and they go with its time-out.
  /// Errors: kTimedOut; if it had ended without the server's word before, what ended it
  /// (kSessionLost, kAuthFailed, kClosed); kForked, kWouldDeadlock.
  Result<void> close(Deadline deadline);

  [[nodiscard]] SessionState state() const noexcept;
  /// 0 before the first connection.
  [[nodiscard]] std::int64_t id() const noexcept;
  /// The time-out the server granted; it may change when the session moves to another server.
  [[nodiscard]] std::chrono::milliseconds timeout() const noexcept;

  /// For the recipes of this library.
  [[nodiscard]] const std::shared_ptr<session::Host>& host() const noexcept { return host_; }

 private:
  std::shared_ptr<session::Host> host_;
};

}  // namespace latchkey::inline v0
