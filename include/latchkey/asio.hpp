#pragma once

#include <asio/io_context.hpp>

#include "latchkey/session.hpp"

/// For programs that have an asio::io_context of their own: the one public header that needs Asio.
namespace latchkey::inline v0 {

/// As Session::start(), with the session's sockets and timers on `context` instead of Latchkey's
/// own thread. Nothing happens until somebody runs it; any number of threads may.
///
///     asio::io_context context;
///     auto session = latchkey::start(context, "127.0.0.1:2181", {});
///     session->async(Get{"/config"}, deadline_in(2s), handler);
///     context.run();
///
/// `context` must outlive the session, which lasts until SessionState::kClosed, kExpired or
/// kAuthFailed has been reached: close() it, or drop every handle and let the context run. A
/// blocking call from a thread that runs the context fails with kWouldDeadlock.
[[nodiscard]] LATCHKEY_EXPORT Result<Session> start(asio::io_context& context,
                                                    std::string_view connect,
                                                    SessionOptions options = {});

}  // namespace latchkey::inline v0
