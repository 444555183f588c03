#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "command_options.hpp"
#include "latchkey/lock.hpp"
#include "session_tenure.hpp"

namespace latchkey::app {

/// How a lock is asked for.
struct LockWish {
  ServiceOptions service;
  /// The lock, once there is a session.
  std::function<Lock(const Session&)> make;
  enum class Wait { kNo, kYes };
  Wait wait = Wait::kYes;
  Duration patience = Duration::max();
  int busy_code = 1;
  /// Whose queue is told of while we wait, and how: a line on the terminal, remarks, or not at all.
  std::string path;
  enum class Telling { kNothing, kLine, kRemarks };
  Telling telling = Telling::kNothing;
  pid_t job = -1;        ///< The process group that the shell knows.
  bool verbose = false;  ///< Remarks are wanted.
};

/// The wish of a command line for what `make` makes.
[[nodiscard]] LockWish lock_wish(const CommandOptions& options, const WaitOptions& wait,
                                 std::function<Lock(const Session&)> make);

/// Why there is no lock, for a script and for people.
[[nodiscard]] Tenure::Refusal refusal_of(const Error& error, int busy_code);

/// A Lease as a tenure.
class LockTenure : public SessionTenure {
 public:
  explicit LockTenure(LockWish wish);
  ~LockTenure() override;

  void contend(std::function<void(News)> tell) override;
  void withdraw() override;
  void all_gone() override;
  std::optional<Refusal> release(const std::optional<keeping::Ending>& ending) override;
  void close() override;

 protected:
  // For locks that are more than a lock. On the thread that waits.

  /// Before we queue. An answer ends it here.
  virtual std::optional<Refusal> before_queue(Session&, const Lock&, std::stop_source&) {
    return std::nullopt;
  }
  /// The lock is ours. An answer gives it back.
  virtual std::optional<Refusal> before_command(Session&, const Lock&) { return std::nullopt; }
  /// Instead of the error: why the wait was stopped, if it was not by withdraw().
  virtual std::optional<Refusal> why_stopped(const Lock&) { return std::nullopt; }
  /// The command has ended and the lock is still held.
  virtual std::optional<Refusal> after_command(Session&, const Lock&, const Lease&,
                                               keeping::Ending) {
    return std::nullopt;
  }

 private:
  News ask(std::stop_source stop);
  [[nodiscard]] Result<Lease> wait(const Session& session, std::stop_token stop) const;
  [[nodiscard]] Refusal refuse(Session& session, const Error& error) const;
  void listen();

  const LockWish wish_;
  const Deadline deadline_;
  std::function<void(News)> tell_;
  std::stop_source stop_;
  bool answered_ = true;  ///< With the mutex.

  // Written by the asking thread before its answer, then by its receiver.
  std::optional<Lock> lock_;
  std::optional<Lease> lease_;

  std::shared_ptr<Departure> departure_;  ///< Shared with a loss that is being told.
  using StopCallback = std::stop_callback<std::function<void()>>;
  std::unique_ptr<StopCallback> on_loss_;
  std::unique_ptr<StopCallback> on_wish_;
};

}  // namespace latchkey::app
