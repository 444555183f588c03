#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "latchkey/deadline.hpp"
#include "latchkey/export.hpp"
#include "latchkey/session.hpp"

/// A simulated service for tests of programs that use Latchkey: everything happens in the test's
/// own thread, under simulated time, and every choice follows from a seed. docs/simulation.md shows
/// how to test a program with it; link latchkey::latchkey_testing.
namespace latchkey::testing {

/// What a Simulation may be told.
///
///     latchkey::testing::SimulationOptions options;
///     options.seed = 17;
///     options.followers = 2;  // An ensemble: reads may be old, sessions move.
struct SimulationOptions {
  std::uint64_t seed = 1;
  /// Servers beside the leader, which apply its changes a little later.
  std::size_t followers = 0;
  /// One way, drawn for each message between these.
  Duration latency_least = std::chrono::microseconds(50);
  Duration latency_most = std::chrono::milliseconds(2);
};

/// The operation whose message is to be lost.
///
///     latchkey::testing::Simulation simulation;
///     Session ann = simulation.open("ann");
///     simulation.lose_answer("ann", latchkey::testing::Operation::kCreate);
enum class Operation : std::uint8_t {
  kCreate,
  kRemove,
  kSet,
  kGet,
  kExists,
  kChildren,
  kSync,
  kMulti,
  kRemoveWatches,
};

/// What falls silent.
enum class Direction : std::uint8_t { kToServers, kFromServers, kBoth };

/// A ZooKeeper service, a network and time, in one thread. Sessions, locks and leases behave as
/// they do against a real one, since it is the same code; the time they take is simulated, so that
/// half an hour passes in a moment and no test has to sleep.
///
///     latchkey::testing::Simulation simulation;
///     Session ann = simulation.open("ann");
///     Session bob = simulation.open("bob");
///     auto lease = Mutex(ann, "/locks/a").lock(deadline_in(5s));  // Time passes here,
///     simulation.pause("ann", 30s);                               // not here,
///     simulation.run_for(30s);                                    // and here.
///     bool lost = lease->state() == LeaseState::kLost;
///
/// The code under test is given its Session. A blocking call lets time pass until it has its
/// outcome. Inside a callback it fails with kWouldDeadlock: use the asynchronous forms there, so
/// also for two pieces of code that are to contend. Code under test must not block by other means,
/// nor read other clocks than BootClock, and must not call from other threads. Sessions of one name
/// belong to one process: they share its clock and its fate.
///
/// What cannot be meant is an assertion: a fault of a process that was never opened, running inside
/// a callback, a second Simulation in the thread, a blocking call of a process that was killed.
///
/// A run is repeated exactly by its seed, as long as the code under test does the same: compare
/// trace(). A Simulation must outlive what is made in it. Thread safety: one thread at a time, one
/// Simulation at a time in a thread.
class LATCHKEY_EXPORT Simulation {
 public:
  explicit Simulation(const SimulationOptions& options = SimulationOptions());
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  /// Starts a session of the process of this name. It connects as time passes.
  [[nodiscard]] Session open(const std::string& process, SessionOptions options = SessionOptions());

  // Time. BootClock shows it.

  void run_for(Duration span);
  /// True as soon as `done` says so, which is asked after everything that happens; false after
  /// `limit`.
  bool run_until(const std::function<bool()>& done, Duration limit);
  /// Runs `task` in the process after so long, as a callback of its own.
  void post(const std::string& process, Duration in, std::function<void()> task);

  // Faults. Each stays until it is undone, unless it says otherwise.

  /// The session's connection ends, if it has one.
  void cut(const Session& session);
  /// Nothing passes between the processes of this name and any server, though connections stay.
  void isolate(const std::string& process, Direction direction = Direction::kBoth);
  /// Undoes isolate().
  void heal(const std::string& process);
  /// Every message to and from the processes of this name takes so much longer; 0 undoes it.
  void slow_down(const std::string& process, Duration by);
  /// The next request of this kind is lost before the server has it, or its answer after; the
  /// connection ends with it.
  void lose_request(const std::string& process, Operation operation);
  void lose_answer(const std::string& process, Operation operation);
  /// The process stands still for so long, as under SIGSTOP; its clock goes on.
  void pause(const std::string& process, Duration span);
  /// The process and its clock stand still for so long, as a virtual machine may.
  void suspend(const std::string& process, Duration span);
  /// Its clock goes so much faster than true time; 1 undoes it.
  void set_clock_rate(const std::string& process, double rate);
  /// The process ends without a word, as under SIGKILL or by a loss of power. A session opened
  /// under its name later belongs to a new one.
  void kill(const std::string& process);
  /// The server ends the session, as if it had run out. False: the server has no such session.
  bool expire(const Session& session);
  /// All servers are gone until start_servers(); what was acknowledged survives.
  void stop_servers();
  void start_servers();
  /// The same for one of them; the leader is number 0, and without it nothing can be written.
  void stop_server(std::size_t number);
  void start_server(std::size_t number);
  /// Followers stay so many changes behind. Waiting for a sync brings them up to date.
  void lag(std::size_t changes);
  /// Nothing passes between the leader and a follower, which goes on answering reads for a while.
  /// The first follower is number 1.
  void part_from_leader(std::size_t follower);
  void rejoin_leader(std::size_t follower);

  /// A hash of everything that has happened so far.
  [[nodiscard]] std::uint64_t trace() const noexcept;

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace latchkey::testing
