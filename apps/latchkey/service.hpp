#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/App.hpp>

#include "latchkey/result.hpp"
#include "latchkey/session.hpp"
#include "lock_name.hpp"

/// Where the service is, for every subcommand that talks to one.
namespace latchkey::app {

/// As they are typed; what is not said here comes from the environment, then from the configuration
/// file, then it is the user's own server, which is started if it does not run.
struct ServiceOptions {
  std::string connect;           ///< "zk1:2181,zk2:2181/chroot" or "unix:/run/x.sock"
  std::string chroot;            ///< The path that is the root for us.
  std::int64_t timeout_ms = 0;   ///< Of the session; 0: not said.
  std::string credentials_file;  ///< One "user:password" in it, never on the command line.
  TlsOptions tls;
  bool tls_any_name = false;      ///< The certificate may be for another host.
  std::int64_t idle_stop_ms = 0;  ///< When our own server ends by itself; 0: not said.
  std::string config_file;
};

/// How long a person waits for a server before they want to know that there is none.
inline constexpr std::chrono::seconds kOpenPatience(10);
/// How long one that has accepted us may take over an answer: it is there, and so it is busy, or
/// the session is on its way to another one.
inline constexpr std::chrono::seconds kAnswerPatience(30);

/// A server that was asked something that does not depend on others, and took too long (kTimedOut),
/// is as good as none: that error as kUnreachable. Any other as it is.
[[nodiscard]] Error unanswered(const Error& error);

/// Told, once, that no server has answered for a while.
using OnSilence = std::function<void(const std::string& text)>;

/// --connect, --chroot, --session-timeout, --credentials, --tls-..., --config. `options` has to
/// outlive it.
void add_service_options(CLI::App& command, ServiceOptions& options);

/// Finds the service, starts the user's own if that is the one, and opens a session. `more` has the
/// hooks; what ServiceOptions says is filled in. A user's own server that dies while the session
/// lives is started again, and the session goes on.
///
/// The deadline is for a service somewhere else, which may not be there at all. The user's own is
/// known to live, because it has its lock: it gets a minute, however crowded the machine is.
/// Errors: those of Session::open(); kInvalidOption for a configuration that cannot be used, and if
/// there is no node where our chroot is to be; kUnreachable if no server answers, or if our own
/// could not be started.
[[nodiscard]] Result<Session> open_service(const ServiceOptions& options, Deadline deadline,
                                           SessionOptions more = {},
                                           const OnSilence& on_silence = {});

/// The same, and whoever sits at a terminal meanwhile learns that it has not stopped.
[[nodiscard]] Result<Session> open_aloud(const ServiceOptions& options, Deadline deadline);

/// The same for those who only want to know whom they would ask: "zk1:2181", "unix:/run/x.sock".
/// The user's own server runs when this returns.
[[nodiscard]] Result<std::string> service_address(const ServiceOptions& options);
/// Which service it is, in one line, for comparison: no server is asked or started. Errors: as
/// above.
[[nodiscard]] Result<std::string> service_name(const ServiceOptions& options);
/// A session that ended because no server was to be had, told with where we asked and what to try;
/// any other error as it is.
[[nodiscard]] Error in_our_words(const Error& error, const ServiceOptions& options);
/// The session time-out that is asked for. Errors: as above.
[[nodiscard]] Result<std::chrono::milliseconds> wanted_timeout(const ServiceOptions& options);
/// Whether it is asked over TLS. Errors: as above.
[[nodiscard]] Result<bool> is_encrypted(const ServiceOptions& options);

/// The options again, as words for another process that starts in another folder.
[[nodiscard]] std::vector<std::string> service_words(const ServiceOptions& options);

/// The folder where this user's own server and logs live; made if it is missing.
/// Errors: kInvalidOption.
[[nodiscard]] Result<std::string> state_folder();

}  // namespace latchkey::app
