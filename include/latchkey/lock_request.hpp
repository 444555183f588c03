#pragma once

#include <coroutine>
#include <functional>
#include <future>
#include <memory>
#include <stop_token>

#include "latchkey/export.hpp"
#include "latchkey/lease.hpp"
#include "latchkey/result.hpp"
#include "latchkey/session.hpp"

namespace latchkey::recipes {
struct Order;
class Suspension;
}  // namespace latchkey::recipes

namespace latchkey::inline v0 {

/// A wish for a lock that has not been sent yet. It is sent by saying how to wait for the answer,
/// and each of these ways ends the request:
///
///     Result<Lease> now = mutex.lock_async(deadline).wait();
///     std::future<Result<Lease>> later = mutex.lock_async(deadline).future();
///     mutex.lock_async(deadline, stop).on(executor).then([](Result<Lease> lease) { use(lease); });
///     Result<Lease> lease = co_await mutex.lock_async(deadline);
///
/// latchkey/asio.hpp adds Asio's completion tokens. However it is waited for, the answer comes
/// exactly once and no later than the deadline, and after an error nothing of the request is left
/// in the queue. An answer that nobody takes (a dropped future, a destroyed coroutine) lets go of
/// the lock by itself.
///
/// g++ 12 copies temporaries that stand in braces, and lambdas with captures, byte by byte within a
/// co_await expression, which destroys them twice. Give those a name before the co_await: options
/// in braces, the executor of on(). `co_await Mutex(session, "/a").lock_async(deadline)` is fine.
///
/// One request, one answer: to use one that was sent or moved from ends the process with a message.
/// Ask the Lock for another. Thread safety: one thread at a time.
class LATCHKEY_EXPORT LockRequest {
 public:
  using Handler = std::function<void(Result<Lease>)>;
  class Awaiter;

  explicit LockRequest(std::unique_ptr<recipes::Order> order) noexcept;
  LockRequest(LockRequest&&) noexcept;
  LockRequest& operator=(LockRequest&&) noexcept;
  ~LockRequest();

  /// Where the callback runs, or the coroutine goes on; by default the session's executor. Never on
  /// the I/O thread, and never before the call that sends the request has returned, unless the
  /// executor runs tasks at once. When the answer comes the call of the executor has returned, so
  /// what it stands on may go with the answer. Therefore an executor may run its task at once or
  /// hand it to another thread, but must not hand it over and then wait for it: neither would end.
  /// What the callback throws goes to SessionOptions::on_exception.
  [[nodiscard]] LockRequest on(Executor executor) &&;
  /// One more way to be cancelled.
  [[nodiscard]] LockRequest stopped_by(std::stop_token stop) &&;

  /// Blocks the calling thread. Errors: as Lock::lock().
  [[nodiscard]] Result<Lease> wait() &&;
  void then(Handler handler) &&;
  [[nodiscard]] std::future<Result<Lease>> future() &&;
  /// Destroying a coroutine that waits here cancels the request. As ever with coroutines, it must
  /// not be destroyed on one thread while it goes on on another: destroy it on the executor given
  /// with on().
  [[nodiscard]] Awaiter operator co_await() &&;

 private:
  std::unique_ptr<recipes::Order> order_;
};

/// What `co_await request` waits on. Not for direct use.
class LATCHKEY_EXPORT LockRequest::Awaiter {
 public:
  explicit Awaiter(std::unique_ptr<recipes::Order> order) noexcept;
  Awaiter(const Awaiter&) = delete;
  Awaiter& operator=(const Awaiter&) = delete;
  ~Awaiter();

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiting);
  [[nodiscard]] Result<Lease> await_resume();

 private:
  std::unique_ptr<recipes::Order> order_;
  std::shared_ptr<recipes::Suspension> suspension_;
};

}  // namespace latchkey::inline v0
