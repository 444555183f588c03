#pragma once

#include <stop_token>
#include <type_traits>
#include <utility>

#include "latchkey/lock.hpp"

namespace latchkey::inline v0 {

/// How long to wait for the lock, and what to do when it is lost.
///
///     RunOptions options;
///     options.patience = 1min;
///     options.after_loss = RunOptions::AfterLoss::kRequeue;
///     auto done = run_while_held(mutex, [](std::stop_token stop) { serve(stop); }, options);
struct RunOptions {
  enum class AfterLoss {
    kReturn,   ///< kLost is the answer.
    kRequeue,  ///< Queue again and run the work anew, until it has run to its end while held.
  };

  /// By when the lock has to be granted; a new span for each time it is queued for.
  Duration patience = Duration::max();
  AfterLoss after_loss = AfterLoss::kReturn;
  std::stop_token stop = {};
};

/// Waits for `lock`, runs `work` on the calling thread while it is held, and lets go. What `work`
/// is given asks it to stop when the lock is lost or `options.stop` is requested: it has to look,
/// and to return soon. The form most services want:
///
///     auto done = run_while_held(Mutex(session, "/jobs/poller"), [&](std::stop_token stop) {
///       while (!stop.stop_requested()) poll_once();
///     }, {.after_loss = RunOptions::AfterLoss::kRequeue, .stop = shutdown});
///
/// `work` may also take the Lease, for its token: work(stop, lease). An exception from it releases
/// the lock and passes on. Errors: those of Lock::lock(), and kLost if the lock was lost while the
/// work ran (it has returned by then, but may have run beside the next holder's: see
/// docs/guarantees.md).
template <class Work>
Result<void> run_while_held(const Lock& lock, Work&& work,
                            const RunOptions& options = RunOptions()) {
  while (true) {
    auto lease = lock.lock(deadline_in(options.patience), options.stop);
    if (!lease) return lease.error();
    {
      std::stop_source stop;
      const auto ask = [&stop] { stop.request_stop(); };
      const std::stop_callback on_loss(lease->lost(), ask);
      const std::stop_callback on_stop(options.stop, ask);
      if constexpr (std::is_invocable_v<Work&, std::stop_token, const Lease&>) {
        work(stop.get_token(), std::as_const(*lease));
      } else {
        work(stop.get_token());
      }
    }
    if (lease->release() != Released::kAlreadyOver) return {};
    const bool again = options.after_loss == RunOptions::AfterLoss::kRequeue;
    if (!again || options.stop.stop_requested()) {
      return Error(Code::kLost, "lock " + lock.path() + ": lost while the work was running");
    }
  }
}

}  // namespace latchkey::inline v0
