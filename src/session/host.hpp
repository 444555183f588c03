#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "base/function_ref.hpp"
#include "base/slot.hpp"
#include "latchkey/session.hpp"
#include "session/connect_string.hpp"
#include "session/guard.hpp"
#include "session/machine.hpp"

namespace latchkey::session {

/// A Machine that is alive: something that brings it bytes and time and lets one caller at a time
/// near it. The net room has the one over sockets; the simulator has its own. Whoever shares a Host
/// keeps its session open; when the last one lets go, the session is closed.
///
/// Thread safety: any thread.
class Host {
 public:
  virtual ~Host() = default;

  /// Runs `task` alone with the machine. Whatever it asks for leaves in one flush when it returns.
  /// Must not be called from within a task, a completion or a watcher: those have the machine
  /// already.
  virtual void enter(base::FunctionRef<void(Machine&, Instant now)> task) = 0;

  /// What may be left to another caller, see leave(). It has to live until it has run.
  class Task {
   public:
    virtual ~Task() = default;
    /// By a thread that may have nothing to do with it: there is nobody to throw at.
    virtual void run(Machine& machine, Instant now) noexcept = 0;
    Task* next = nullptr;  ///< For the host.
  };
  /// As enter(), but does not wait: if another caller is with the machine, that one runs the task
  /// before it goes. Either way it runs before whatever enters from here on.
  virtual void leave(Task& task) {
    enter([&](Machine& machine, Instant now) { task.run(machine, now); });
  }

  /// Runs user code on the executor once the machine is left, in the order of these calls. Only
  /// from within a task, a completion or a watcher.
  virtual void post_in_order(std::function<void()> task) = 0;
  /// As post_in_order(), but neither waiting for nor holding up other user code.
  virtual void post(std::function<void()> task) = 0;
  /// For what tells user code to stop: on a thread of the library's, even if the user has an
  /// executor, and not waiting for other user code. See net::CallbackPool::signals().
  virtual void post_signal(std::function<void()> task) { post(std::move(task)); }

  /// Is this a forked child of the process that opened the session? Then nothing here works (H53).
  [[nodiscard]] virtual bool is_forked() const noexcept = 0;
  /// Would a blocking call from this thread wait for itself?
  [[nodiscard]] virtual bool is_own_thread() const noexcept = 0;

  /// How a caller waits for the machine: until `is_there` says yes, or until the deadline, which
  /// is no. `block` does just that by stopping the calling thread; a host that lives in
  /// simulated time lets that pass instead.
  virtual bool wait(base::FunctionRef<bool()> is_there, base::FunctionRef<bool(Deadline)> block,
                    Deadline deadline) {
    static_cast<void>(is_there);
    return block(deadline);
  }

  /// What runs user code. May be used when the host has gone.
  [[nodiscard]] virtual std::shared_ptr<const Guard> guard() const = 0;

  [[nodiscard]] virtual const View& view() const noexcept = 0;
  [[nodiscard]] virtual const SessionOptions& options() const noexcept = 0;
};

/// While it lives the calling thread runs user code that a loss of this session waits for:
/// callbacks of the loss, or a lead. A close() from there would wait for itself, so it waits for no
/// loss.
class TellingLoss {
 public:
  explicit TellingLoss(const Host& host) : before_(std::exchange(current_, &host)) {}
  ~TellingLoss() { current_ = before_; }
  TellingLoss(const TellingLoss&) = delete;
  TellingLoss& operator=(const TellingLoss&) = delete;

  [[nodiscard]] static bool is_here(const Host& host) { return current_ == &host; }

 private:
  static inline thread_local const Host* current_ = nullptr;
  const Host* const before_;
};

/// What a host makes its machine with, and the hooks it lets the machine deliver to: the user's, by
/// way of post_in_order().
[[nodiscard]] MachineOptions machine_options(const ConnectString& connect,
                                             const SessionOptions& options, Linger linger);
[[nodiscard]] Machine::Hooks user_hooks(Host& host);

/// Success if the calling thread may block on `host`; otherwise kForked or kWouldDeadlock.
[[nodiscard]] Result<void> check_blocking(const Host& host, std::string_view what);

/// Does anybody listen to report()?
[[nodiscard]] inline bool is_reporting(const Host& host) {
  return static_cast<bool>(host.options().on_operation);
}
/// Tells the user's SessionOptions::on_operation of a finished request, if there is one. `path` is
/// the user's. Only from within a task, a completion or a watcher.
void report(Host& host, wire::Op op, const std::string& path, const Outcome& outcome);

/// True as soon as `slot` is filled, false at the deadline.
template <class T>
bool wait_until(Host& host, base::Slot<T>& slot, Deadline deadline) {
  return host.wait([&] { return slot.is_set(); },
                   [&](Deadline latest) { return slot.wait_until(latest); }, deadline);
}

/// Waits for `slot`, which the machine fills by `deadline`. Should its own thread be late, or the
/// user's io_context not be running, the waiting thread brings the machine the time itself, so that
/// no call outlives its deadline.
template <class T>
T wait_for(Host& host, base::Slot<T>& slot, Deadline deadline) {
  while (!wait_until(host, slot, deadline)) {
    host.enter([](Machine& machine, Instant now) { machine.tick(now); });
    // Filled by now, unless another thread is just about to.
    static_cast<void>(wait_until(host, slot, deadline_in(std::chrono::milliseconds(1))));
  }
  return slot.take();
}

}  // namespace latchkey::session
