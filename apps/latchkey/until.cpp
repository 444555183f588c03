#include "until.hpp"

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>

namespace latchkey::app {
namespace {

struct Change {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<Result<void>> outcome;  // Guarded by mutex.
};

}  // namespace

Result<void> wait_until(const Session& session, const std::string& path,
                        const std::function<bool(const Queue&)>& done, Deadline deadline) {
  const auto news = std::make_shared<Change>();
  const QueueWatch watch(session, path, [news, done](const Result<Queue>& queue) {
    if (queue && !done(*queue)) return;
    const std::lock_guard lock(news->mutex);
    if (!news->outcome) news->outcome = queue ? Result<void>() : Result<void>(queue.error());
    news->changed.notify_all();
  });
  std::unique_lock lock(news->mutex);
  while (!news->outcome) {
    const Instant now = BootClock::now();
    if (deadline.has_passed(now)) {
      return Error(Code::kTimedOut, "wait for " + path + ": not in time");
    }
    // Not for long at a time: the boot clock goes on while a machine sleeps, and nobody wakes us.
    news->changed.wait_for(lock, std::min<Duration>(deadline.at() - now, std::chrono::seconds(1)));
  }
  return *news->outcome;
}

}  // namespace latchkey::app
