#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.hpp"
#include "base/random.hpp"
#include "latchkey/session.hpp"
#include "testing/follower.hpp"
#include "testing/leader.hpp"
#include "testing/network.hpp"
#include "testing/process.hpp"
#include "testing/sim_host.hpp"
#include "testing/timeline.hpp"
#include "testing/world_options.hpp"

namespace latchkey::testing {

/// A whole system in one thread under simulated time: clients with the real session machine and the
/// real recipes, a network, the real tree::Service over a simulated disk, followers that lag. Every
/// choice is drawn from one seed, so that a run can be had again: equal seeds and equal calls give
/// equal trace().
///
///     World world({.seed = 17, .followers = 2});
///     Process& ann = world.start_process("ann");
///     Session session = world.open(ann);
///     Mutex mutex(session, "/locks/a");
///     auto lease = mutex.lock(deadline_in(5s));     // blocking: time passes until it is granted
///     world.drop_next(ann, Way::kReply, wire::Op::kDelete);
///     lease->release();
///     world.run_for(30s);
///
/// The test's own line belongs to no process and sees true time. A blocking call is allowed there
/// and lets time pass; inside an event (a callback, a task of post()) it fails with kWouldDeadlock.
/// Workloads of many contenders are written with lock_async().then(...) or as coroutines. Code that
/// runs as a part of a process, and so sees its clock, is given to run_as() or post(): with skewed
/// clocks deadlines have to be computed there.
///
/// Not modelled: packet loss below TCP (a silent partition stands for it); a reader that is slow
/// to take what is written; name resolution and TLS. An election is a restart of the one leader
/// from its disk with a new epoch; a deposed leader is a follower that plays its part (depose()).
///
/// A World must outlive every Session, lock and lease made in it. Thread safety: one thread at a
/// time, one World at a time in a thread.
class World {
 public:
  explicit World(WorldOptions options);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // Time. All of these are for the test's own line.

  [[nodiscard]] Instant now() { return timeline_.now(); }
  /// One event. False if nothing is left to happen.
  bool step() { return timeline_.step(); }
  void run_for(Duration span);
  /// True as soon as `done` says so, asked after every event; false after `limit`.
  bool run_until(base::FunctionRef<bool()> done, Duration limit);

  [[nodiscard]] base::Random& random() { return timeline_.luck(); }
  [[nodiscard]] Timeline& timeline() { return timeline_; }
  /// A hash of everything that has happened so far.
  [[nodiscard]] std::uint64_t trace() const { return timeline_.trace(); }
  /// Stirs an observation of the test's own into it.
  void note(std::uint64_t value) { timeline_.note(value); }
  [[nodiscard]] std::uint64_t events() const { return timeline_.events(); }

  // Client processes.

  Process& start_process(std::string name);
  /// Runs `task` as a part of the process, now, and then or later as an event.
  void run_as(Process& process, base::FunctionRef<void()> task) { timeline_.run_as(process, task); }
  void post(Process& process, Duration in, std::function<void()> task) {
    timeline_.in(in, &process, Happens::kScript, std::move(task));
  }
  /// A script of the test's own: it belongs to no process and happens whatever is paused.
  void script(Duration in, std::function<void()> task) {
    timeline_.in(in, nullptr, Happens::kScript, std::move(task));
  }
  /// Starts a session; it connects as time passes. `servers` are indices; none means all.
  [[nodiscard]] Session open(Process& process, SessionOptions options = {},
                             std::vector<std::size_t> servers = {});
  [[nodiscard]] SimHost& host_of(const Session& session);
  /// Every session whose machine is not over, in the order they were opened.
  [[nodiscard]] const std::vector<std::shared_ptr<SimHost>>& hosts() const { return hosts_; }
  /// Is the session connected, with nothing on its way in either direction?
  [[nodiscard]] bool is_quiet(SimHost& host) {
    return host.is_connected() && network_.is_quiet(host.link());
  }
  /// Ends the process. Its sessions fall silent: the servers see their connections end, or see
  /// nothing at all.
  void kill(Process& process, Tell servers_hear = Tell::kYes);

  // Servers. The leader is number 0, followers come after it.

  [[nodiscard]] std::size_t servers() const { return 1 + followers_.size(); }
  [[nodiscard]] Server& server(std::size_t index);
  [[nodiscard]] Leader& leader() { return *leader_; }
  [[nodiscard]] Follower& follower(std::size_t number) { return *followers_.at(number); }
  [[nodiscard]] std::size_t followers() const { return followers_.size(); }
  /// What the leader has applied, from the first record or the last trim on.
  [[nodiscard]] const Log& log() const { return leader_->log(); }

  // Faults. Each is counted when it strikes: not when it is only prepared, nor when it is undone. A
  // silence, a refusal, a delay and a lag strike when they first meet something.

  /// The session's connection ends; what was on its way arrives or does not.
  void cut(SimHost& host);
  /// One or both directions fall silent between the process and a server; TCP stays up.
  void partition(Process& process, std::size_t server, Silence silence);
  void heal(Process& process, std::size_t server);
  /// New connections are refused; those that are there stay.
  void refuse(Process& process, std::size_t server, Refusal refusal);
  /// Every message between the two takes so much longer.
  void slow_down(Process& process, std::size_t server, Duration by);
  /// The next message of the operation is lost, and the connection is cut right after.
  void drop_next(Process& process, Way way, wire::Op op) {
    drop_next(process, way, std::vector<wire::Op>{op});
  }
  void drop_next(Process& process, Way way, std::vector<wire::Op> ops);
  /// The next message of the operation is held up, and so is all that follows it in its direction.
  void hold_next(Process& process, Way way, wire::Op op, Duration span);

  /// Nothing is handled for so long; its clock goes on.
  void pause(Process& process, Duration span);
  /// The same with its clock standing still.
  void suspend(Process& process, Duration span);
  /// A fault only if it is beyond what a lease allows for.
  void set_clock_rate(Process& process, double rate);
  void jump_clock(Process& process, Duration by);
  /// The clock on the wall, which is for people only.
  void jump_wall_clock(Process& process, std::chrono::milliseconds by);

  /// The leader closes the session as if it had run out. False: there is none.
  bool expire(std::int64_t session);

  void crash(std::size_t server, Crash how);
  void restart(std::size_t server);
  /// The leader starts anew without any data, and so do the followers.
  void wipe();
  /// The leader starts again from an old copy of its disk. What came after the copy is gone: no
  /// server can promise anything then (H19). Only on a disk and without followers.
  void restore(const std::map<std::string, std::string>& files);
  /// When the leader next starts, so many nodes have been made in the directory, if it is there.
  void age(const std::string& directory, std::int32_t creates);
  /// The longest session time-out that the server grants: a follower from now on, the leader from
  /// its next start on.
  void limit_timeouts(std::size_t server, std::chrono::milliseconds most);
  /// The disk: full from now on; the next sync fails; commits take so much longer for once.
  void fill_disk();
  void make_room();
  void fail_sync();
  void stall_disk(Duration span);

  /// The follower stays so many records behind, except for what answers to its own clients need.
  void lag(std::size_t follower, std::size_t records);
  /// Nothing passes between follower and leader. It drops its clients after
  /// WorldOptions::sync_limit.
  void part_from_leader(std::size_t follower);
  void rejoin_leader(std::size_t follower);
  /// A new leader is elected, and the old one, whose part the follower plays, does not know for so
  /// long: it still answers reads, pings and syncs of the clients it has, from an old state.
  void depose(std::size_t follower, Duration linger);

  /// Ends every partition, refusal, pause, lag, slowness and armed fault, sets clocks to their
  /// proper rate, and starts every server that is down.
  void heal_everything();

  [[nodiscard]] std::uint64_t count(Fault fault) const {
    return counts_.at(static_cast<std::size_t>(fault));
  }
  /// For a fault that a workload brings about by other means.
  void counted(Fault fault, const Process* process = nullptr);

  // Looking on.

  /// Told of everything from now on; must outlive the world or be taken away.
  void watch(Observer& observer) { observers_.push_back(&observer); }
  void unwatch(Observer& observer);

 private:
  void tend_hosts();
  void clock_changed(Process& process);

  const WorldOptions options_;
  Timeline timeline_;
  std::vector<Observer*> observers_;
  std::array<std::uint64_t, kFaults> counts_{};
  std::vector<std::unique_ptr<Process>> processes_;
  Network network_;
  std::unique_ptr<Leader> leader_;
  std::vector<std::unique_ptr<Follower>> followers_;
  std::vector<std::shared_ptr<SimHost>> hosts_;
  std::uint64_t last_host_ = 0;
};

}  // namespace latchkey::testing
