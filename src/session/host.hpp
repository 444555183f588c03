#pragma once

#include <functional>
#include <memory>

#include "base/function_ref.hpp"
#include "base/slot.hpp"
#include "latchkey/session.hpp"
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

  /// Runs user code on the executor once the machine is left, in the order of these calls. Only
  /// from within a task, a completion or a watcher.
  virtual void post_in_order(std::function<void()> task) = 0;
  /// As post_in_order(), but neither waiting for nor holding up other user code.
  virtual void post(std::function<void()> task) = 0;

  /// Is this a forked child of the process that opened the session? Then nothing here works (H53).
  [[nodiscard]] virtual bool is_forked() const noexcept = 0;
  /// Would a blocking call from this thread wait for itself?
  [[nodiscard]] virtual bool is_own_thread() const noexcept = 0;

  [[nodiscard]] virtual const View& view() const noexcept = 0;
  [[nodiscard]] virtual const SessionOptions& options() const noexcept = 0;
};

/// Success if the calling thread may block on `host`; otherwise kForked or kWouldDeadlock.
[[nodiscard]] Result<void> check_blocking(const Host& host, std::string_view what);

/// Tells the user's SessionOptions::on_operation of a finished request, if there is one. `path` is
/// the user's. Only from within a task, a completion or a watcher.
void report(Host& host, wire::Op op, const std::string& path, const Outcome& outcome);

/// Waits for `slot`, which the machine fills by `deadline`. Should its own thread be late, or the
/// user's io_context not be running, the waiting thread brings the machine the time itself, so that
/// no call outlives its deadline.
template <class T>
T wait_for(Host& host, base::Slot<T>& slot, Deadline deadline) {
  while (!slot.wait_until(deadline)) {
    host.enter([](Machine& machine, Instant now) { machine.tick(now); });
    // Filled by now, unless another thread is just about to.
    static_cast<void>(slot.wait_until(deadline_in(std::chrono::milliseconds(1))));
  }
  return slot.take();
}

}  // namespace latchkey::session
