#include <array>
#include <system_error>
#include <utility>

#include "latchkey/asio.hpp"
#include "latchkey/session.hpp"
#include "net/callback_pool.hpp"
#include "net/driver.hpp"
#include "net/io_thread.hpp"
#include "session/operations.hpp"

namespace latchkey::inline v0 {
namespace {

/// A queue entry with its data, and a list of a few others.
constexpr std::size_t kLeastFrame = 1'024;

Error invalid(const std::string& what) { return Error(Code::kInvalidOption, what); }

/// "Asio 1.22.1 with epoll and threads".
std::string describe(const detail::AsioKind& kind) {
  constexpr std::array<std::string_view, 3> kReactors = {"select or another reactor", "epoll",
                                                         "io_uring"};
  std::string text = "Asio " + std::to_string(kind.version / 100'000) + '.' +
                     std::to_string(kind.version / 100 % 1'000) + '.' +
                     std::to_string(kind.version % 100) + " with ";
  const auto reactor = static_cast<std::size_t>(kind.reactor);
  text += reactor < kReactors.size() ? kReactors[reactor] : "an unknown reactor";
  return text + (kind.threads != 0 ? " and threads" : " and without threads");
}

Result<void> check(const SessionOptions& options) {
  using std::chrono::milliseconds;
  const auto is_timeout = [](milliseconds value) {
    return value >= milliseconds(1) && value <= milliseconds(INT32_MAX);
  };
  if (!is_timeout(options.timeout) ||
      !is_timeout(options.least_timeout.value_or(options.timeout))) {
    return invalid("timeout and least_timeout must be between 1 ms and 24 days");
  }
  if (options.retry.base < milliseconds(0) || options.retry.cap < options.retry.base ||
      !(options.retry.factor >= 1.0) || options.retry.count < 0) {
    return invalid(
        "retry: base and count must not be negative, cap not below base, factor at least 1");
  }
  constexpr std::chrono::hours kLong(24 * 365);
  if (options.retry.cap > kLong || !(options.retry.factor <= 1'000.0) ||
      options.give_up_after < milliseconds(0) || options.give_up_after > kLong) {
    return invalid(
        "retry.cap and give_up_after must lie between 0 and a year, retry.factor must not exceed "
        "1000");
  }
  const std::pair<const char*, std::size_t> limits[] = {
      {"max_requests", options.max_requests},
      {"max_queued_bytes", options.max_queued_bytes},
      {"max_request_bytes", options.max_request_bytes},
      {"max_reply_bytes", options.max_reply_bytes}};
  for (const auto& [name, limit] : limits) {
    if (limit == 0 || limit > INT32_MAX / 2) {
      return invalid(std::string(name) + " must lie between 1 and 2^30 - 1");
    }
  }
  if (options.max_request_bytes < kLeastFrame || options.max_reply_bytes < kLeastFrame) {
    return invalid("max_request_bytes is " + std::to_string(options.max_request_bytes) +
                   " and max_reply_bytes " + std::to_string(options.max_reply_bytes) + ": below " +
                   std::to_string(kLeastFrame) + " no lock could be had");
  }
  for (const Credential& credential : options.credentials) {
    if (auto valid = session::check_credential(credential); !valid) return valid;
  }
  return {};
}

/// A Unix socket has no host name, and OpenSSL takes an empty one for "check none".
Result<void> check_names(const session::ConnectString& connect, const TlsOptions& tls) {
  if (tls.verify == TlsOptions::Verify::kChainOnly) return {};
  for (const session::Endpoint& endpoint : connect.endpoints) {
    if (endpoint.socket_path.empty()) continue;
    return invalid(session::to_string(endpoint) +
                   " has no host name to check: set TlsOptions::verify to kChainOnly");
  }
  return {};
}

/// The process has run out of descriptors or threads.
Error exhausted(std::string_view connect, const std::system_error& error) {
  return Error(Code::kUnreachable, std::string(connect) + ": " + error.what());
}

Result<Session> start_on(asio::io_context& context, std::string_view connect,
                         SessionOptions options, session::Linger linger) {
  auto parsed = session::parse_connect_string(connect);
  if (!parsed) return parsed.error();
  if (auto valid = check(options); !valid) return valid.error();
  if (!options.chroot.empty()) {
    if (!parsed->chroot.empty()) {
      return invalid("chroot is set in the connect string and as an option");
    }
    if (const Path chroot(options.chroot); !chroot.is_valid()) {
      return Error(Code::kInvalidPath, "SessionOptions::chroot \"" + chroot.text() +
                                           "\": " + chroot.problem() + "; write it as /app/locks");
    }
    if (options.chroot != "/") parsed->chroot = options.chroot;
  }
  options.chroot = parsed->chroot;  // Whoever asks the session's options finds it there.
  std::shared_ptr<const net::TlsContext> tls;
  const TlsOptions& wanted = options.tls;
  if (wanted.enabled || !wanted.ca_file.empty() || !wanted.cert_file.empty() ||
      !wanted.key_file.empty()) {
    if (auto valid = check_names(*parsed, wanted); !valid) return valid.error();
    auto loaded = net::TlsContext::load(wanted);
    if (!loaded) return loaded.error();
    tls = *loaded;
  }
  try {
    // Here, where it can be said that one is not to be had, and on the user's thread, whose signal
    // mask callbacks get.
    static_cast<void>(net::IoThread::shared());
    static_cast<void>(net::CallbackPool::callbacks());
    static_cast<void>(net::CallbackPool::signals());
    return Session(net::Driver::start(context, std::move(*parsed), std::move(options),
                                      std::move(tls), linger));
  } catch (const std::system_error& error) {
    return exhausted(connect, error);
  }
}

}  // namespace

Result<Session> Session::start(std::string_view connect, SessionOptions options) {
  try {
    return start_on(net::IoThread::shared().context(), connect, std::move(options),
                    session::Linger::kYes);
  } catch (const std::system_error& error) {
    return exhausted(connect, error);
  }
}

Result<Session> start(asio::io_context& context, std::string_view connect, SessionOptions options,
                      const detail::AsioKind& kind) {
  if (kind != detail::kAsioKind) {
    return invalid("the io_context is that of " + describe(kind) + ", and the library has " +
                   describe(detail::kAsioKind) + ": compile both with the same Asio and switches");
  }
  // Who runs it, and whether it does so at the moment, is the user's affair.
  return start_on(context, connect, std::move(options), session::Linger::kNo);
}

Result<Session> Session::open(std::string_view connect, SessionOptions options, Deadline deadline) {
  auto session = start(connect, std::move(options));
  if (!session) return session;
  if (auto connected = session->wait_connected(deadline); !connected) {
    const Error& error = connected.error();
    return Error(error.code(), std::string(connect) + ": " + error.message());
  }
  return session;
}

}  // namespace latchkey::inline v0
