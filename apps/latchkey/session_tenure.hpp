#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "service.hpp"
#include "tenure.hpp"

namespace latchkey::app {

/// Whether the last process of a command is gone, for the one who must not go on before (H95).
/// Thread safety: any thread.
class Departure {
 public:
  void complete();
  /// Until it is complete, but no longer than `most`.
  void wait(Duration most);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool complete_ = false;
};

/// What every tenure on a session has: a thread that looks for the service and waits there, so that
/// the keeper never does.
class SessionTenure : public Tenure {
 public:
  explicit SessionTenure(ServiceOptions service);
  ~SessionTenure() override;

  [[nodiscard]] keeping::LeaseTimes lease() const override;

 protected:
  /// Runs `task` on the thread, when what ran there before has ended.
  void work(std::function<void()> task);
  /// On the thread: opens a session, which becomes ours. Takes the mutex. If that takes its time,
  /// whoever sits at a terminal is told. Errors: those of open_service(); kCancelled after end().
  [[nodiscard]] Result<Session> search(Deadline deadline, const std::function<void(News)>& tell);
  /// Ends the session, and then the thread, unless it is looking for a service that does not
  /// answer: nobody waits for that. The task has to end soon without a session.
  void end();
  /// Waits for the thread, whatever it does. For destructors.
  void join();

  /// If the server grants another time-out than was asked for, that is worth a remark.
  void remark_on_timeout(const Session& session, const std::function<void(News)>& tell) const;

  [[nodiscard]] std::optional<Session> session() const;

  mutable std::mutex mutex_;
  std::optional<Session> session_;

 private:
  const ServiceOptions service_;
  // With the mutex.
  bool searching_ = false;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace latchkey::app
