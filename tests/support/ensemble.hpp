#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "latchkey/deadline.hpp"
#include "support/apache_server.hpp"
#include "support/fault_proxy.hpp"

namespace latchkey::test_support {

/// kCuttable puts a proxy on every link from a follower to a possible leader.
enum class QuorumLinks { kDirect, kCuttable };

struct EnsembleOptions {
  ApacheOptions server;  ///< For every member. my_id is set by the ensemble.
  std::size_t members = 3;
  int init_limit = 40;  ///< Ticks a follower has to catch up.
  int sync_limit = 20;  ///< Ticks after which a follower cut from the leader notices.
  QuorumLinks links = QuorumLinks::kDirect;
};

/// Several Apache ZooKeeper servers on the loopback that elect a leader.
///
///     Ensemble ensemble;
///     ensemble.start();
///     ensemble.member(ensemble.leader()).kill();
///     ensemble.wait_for_quorum();
///     ensemble.start();  // The one that was killed is back, on its port and with its data.
///
/// Members are numbered from 0 and handled through member(i). Thread safety: one thread at a time.
class Ensemble {
 public:
  explicit Ensemble(const EnsembleOptions& options = {});

  /// Starts every member that does not run, then wait_for_quorum().
  void start(Deadline deadline = deadline_in(std::chrono::seconds(60)));

  /// Waits until every running member serves under one leader. Throws std::runtime_error, with
  /// the ends of the logs, if that is not so by the deadline.
  void wait_for_quorum(Deadline deadline = deadline_in(std::chrono::seconds(60)));

  [[nodiscard]] std::size_t size() const { return members_.size(); }
  [[nodiscard]] ApacheServer& member(std::size_t index) { return *members_.at(index); }

  /// As the members themselves say now. leader() throws std::runtime_error if there is none.
  [[nodiscard]] std::size_t leader();
  [[nodiscard]] std::vector<std::size_t> followers();

  /// Restarts the followers one after the other and the leader last, with a quorum all the time.
  void rolling_restart();

  /// Nothing passes between this follower and its leader, while TCP stays up: it goes on serving
  /// reads until sync_limit ticks have passed. Only with QuorumLinks::kCuttable.
  void cut_from_leader(std::size_t follower);
  /// Undoes cut_from_leader; nothing to do if there was none.
  void heal(std::size_t follower);

  /// All members, or one.
  [[nodiscard]] std::string connect_string() const;
  [[nodiscard]] std::string connect_string(std::size_t index) const;

 private:
  struct Link {
    std::size_t from = 0;
    std::size_t to = 0;
    std::unique_ptr<FaultProxy> proxy;
    bool cut = false;
  };

  [[nodiscard]] std::string quorum_address(std::size_t seen_by, std::size_t of) const;
  [[nodiscard]] bool settled();
  [[nodiscard]] ApacheMode mode_of(std::size_t index);

  std::vector<std::uint16_t> quorum_ports_;
  std::vector<Link> links_;
  std::vector<std::unique_ptr<ApacheServer>> members_;
};

}  // namespace latchkey::test_support
