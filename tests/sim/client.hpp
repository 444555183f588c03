#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "latchkey/election.hpp"
#include "latchkey/lease.hpp"
#include "latchkey/lock.hpp"
#include "latchkey/rw_lock.hpp"
#include "latchkey/session.hpp"
#include "sim/stage.hpp"

namespace latchkey::sim {

/// One simulated process that wants locks: a session, and several contenders that share it. When
/// its session is over it opens another. Thread safety: one thread at a time.
class Client {
 public:
  Client(const Stage& stage, std::size_t number);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void start();
  [[nodiscard]] std::size_t number() const { return number_; }
  [[nodiscard]] testing::Process& process() { return process_; }
  [[nodiscard]] testing::SimHost& host() { return world_.host_of(session()); }
  [[nodiscard]] std::int64_t session_id() const { return session().id(); }
  [[nodiscard]] bool is_alive() const { return process_.is_alive(); }

  /// The faults are over: every contender takes every lock once more, however long it takes, and
  /// then wants nothing any more.
  void wind_down();
  [[nodiscard]] bool is_done() const;
  /// What it still waits for, for people.
  [[nodiscard]] std::string waits_for() const;
  /// It will be killed.
  void bury();
  /// It closes its session, whatever it holds, as soon as it is called back, and opens another.
  void leave() { leaves_ = true; }

 private:
  /// A way to want a lock.
  struct Choice {
    Lock lock;
    std::vector<Share> shares;
    std::optional<RwLock> downgrades;  ///< A writer may read on.
  };
  class Contender;
  class Candidate;

  [[nodiscard]] const Session& session() const { return sessions_.back(); }
  void open();
  void reopen(std::uint64_t generation);
  void leave_if_asked();
  void build_locks();
  [[nodiscard]] Lock mutex_at(const std::string& path) const;

  testing::World& world_;
  Judge& judge_;
  Lookout& lookout_;
  const Plan& plan_;
  const std::size_t number_;
  testing::Process& process_;
  std::vector<Session> sessions_;  ///< The last one counts.
  std::uint64_t generation_ = 0;   ///< Of the session.
  std::vector<Choice> choices_;
  std::vector<std::unique_ptr<Contender>> contenders_;
  std::vector<std::unique_ptr<Candidate>> candidates_;
  bool winding_down_ = false;
  bool leaves_ = false;
};

}  // namespace latchkey::sim
