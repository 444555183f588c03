#include "session_tenure.hpp"

#include <unistd.h>

#include <utility>

#include <fmt/core.h>

namespace latchkey::app {
namespace {

constexpr std::chrono::seconds kCloseWithin(2);

}  // namespace

void Departure::complete() {
  const std::lock_guard lock(mutex_);
  complete_ = true;
  changed_.notify_all();
}

void Departure::wait(Duration most) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, most, [this] { return complete_; });
}

SessionTenure::SessionTenure(ServiceOptions service) : service_(std::move(service)) {}

SessionTenure::~SessionTenure() { join(); }

keeping::LeaseTimes SessionTenure::lease() const {
  const std::lock_guard lock(mutex_);
  return session_ ? lease_of(*session_) : keeping::LeaseTimes{};
}

void SessionTenure::work(std::function<void()> task) {
  join();
  thread_ = std::thread(std::move(task));
}

Result<Session> SessionTenure::search(Deadline deadline, const std::function<void(News)>& tell) {
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return Error(Code::kCancelled, "nobody waits for it any more");
    searching_ = true;
  }
  OnSilence on_silence;
  if (::isatty(STDERR_FILENO) != 0) {
    on_silence = [tell](const std::string& text) { tell(Remark{text, Said::kAlways}); };
  }
  auto opened = open_service(service_, deadline, {}, on_silence);
  const std::lock_guard lock(mutex_);
  searching_ = false;
  if (opened) session_ = *opened;
  return opened;
}

void SessionTenure::remark_on_timeout(const Session& session,
                                      const std::function<void(News)>& tell) const {
  const Result<std::chrono::milliseconds> wanted = wanted_timeout(service_);
  const std::chrono::milliseconds granted = session.timeout();
  if (!wanted || *wanted == granted) return;
  tell(Remark{fmt::format("the server grants a session time-out of {} ms and not {} ms",
                          granted.count(), wanted->count())});
}

void SessionTenure::end() {
  std::optional<Session> open;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    if (searching_) return;
    open = session_;
  }
  if (open) static_cast<void>(open->close(deadline_in(kCloseWithin)));
  join();
}

void SessionTenure::join() {
  if (thread_.joinable()) thread_.join();
}

std::optional<Session> SessionTenure::session() const {
  const std::lock_guard lock(mutex_);
  return session_;
}

}  // namespace latchkey::app
