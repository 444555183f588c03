#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <type_traits>
#include <utility>

#include <asio/associated_cancellation_slot.hpp>
#include <asio/associated_executor.hpp>
#include <asio/async_result.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/version.hpp>

#include "latchkey/lock.hpp"
#include "latchkey/session.hpp"

/// For programs that use Asio: the one public header that needs it.
namespace latchkey::inline v0 {

namespace detail {

/// How Asio was compiled. Asio is all headers, so a program and the library have a copy each, and
/// an io_context can pass from one to the other only if both copies are alike.
struct AsioKind {
  int version;
  int reactor;
  int threads;
  int typeid_keys;  ///< How services are told apart.

  friend bool operator==(const AsioKind&, const AsioKind&) = default;
};

/// Of whoever includes this header: each object file has its own.
constexpr AsioKind kAsioKind {
  .version = ASIO_VERSION,
#if defined(ASIO_HAS_IO_URING_AS_DEFAULT)
  .reactor = 2,
#elif defined(ASIO_HAS_EPOLL)
  .reactor = 1,
#else
  .reactor = 0,
#endif
#if defined(ASIO_HAS_THREADS)
  .threads = 1,
#else
  .threads = 0,
#endif
};

}  // namespace detail

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
/// blocking call from a thread that runs the context fails with kWouldDeadlock. The program and the
/// library must be compiled with the same version of Asio and the same of its switches; otherwise
/// this fails with kInvalidOption.
/// `kind` is not for the caller: as a default argument it is that of the calling program.
[[nodiscard]] LATCHKEY_EXPORT Result<Session> start(
    asio::io_context& context, std::string_view connect, SessionOptions options = SessionOptions(),
    const detail::AsioKind& kind = detail::kAsioKind);

namespace detail {

/// What a request takes along until its answer. The handler's context may be gone as soon as the
/// handler has run, so nothing of ours touches it after that.
template <class Handler>
struct AsioWaiting {
  explicit AsioWaiting(Handler&& waiting)
      : handler(std::move(waiting)), work(asio::make_work_guard(handler)) {}

  Handler handler;
  asio::executor_work_guard<asio::associated_executor_t<Handler>> work;
};

}  // namespace detail

/// Sends a request for a lock; any Asio completion token says what to do with the answer:
///
///     async_wait(mutex.lock_async(deadline), [](Result<Lease> lease) { use(lease); });
///     auto future = async_wait(mutex.lock_async(deadline), asio::use_future);
///     Result<Lease> lease = co_await async_wait(mutex.lock_async(deadline), asio::use_awaitable);
///
/// The completion signature is void(Result<Lease>). The handler runs on its associated executor,
/// which counts it as outstanding work, and never before this call has returned. Its cancellation
/// slot cancels the request, whatever the type of cancellation: nothing of it stays in the queue.
template <class CompletionToken>
auto async_wait(LockRequest request, CompletionToken&& token) {
  return asio::async_initiate<CompletionToken, void(Result<Lease>)>(
      [](auto handler, LockRequest wish) {
        const auto slot = asio::get_associated_cancellation_slot(handler);
        if (slot.is_connected()) {
          std::stop_source stop;
          wish = std::move(wish).stopped_by(stop.get_token());
          asio::get_associated_cancellation_slot(handler).assign(
              [stop](asio::cancellation_type) mutable { stop.request_stop(); });
        }
        const auto executor = asio::get_associated_executor(handler);
        // Shared, because the handler may be movable only and what follows wants copies.
        const auto waiting =
            std::make_shared<detail::AsioWaiting<decltype(handler)>>(std::move(handler));
        std::move(wish)
            .on([executor](std::function<void()> task) { asio::post(executor, std::move(task)); })
            .then([waiting](Result<Lease> lease) {
              const auto work = std::move(waiting->work);
              auto ready = std::move(waiting->handler);
              asio::get_associated_cancellation_slot(ready).clear();
              std::move(ready)(std::move(lease));
            });
      },
      token, std::move(request));
}

}  // namespace latchkey::inline v0
