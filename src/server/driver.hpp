#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>

#include "base/pile.hpp"
#include "latchkey/server.hpp"
#include "net/boot_timer.hpp"
#include "net/tls.hpp"
#include "server/bonds.hpp"
#include "server/committer.hpp"
#include "server/connection.hpp"
#include "server/listener.hpp"
#include "server/log.hpp"
#include "server/status.hpp"
#include "storage/journal.hpp"
#include "tree/service.hpp"

namespace latchkey::server {

/// Where the journal's append() is called: on the loop if it returns at once, or on a thread of its
/// own if it waits for a disk.
enum class CommitOn { kLoop, kOwnThread };

/// What clients come in by.
struct Doors {
  std::vector<Listener> clients;
  std::optional<Listener> metrics;
};

/// Drives a tree::Service over sockets, a journal and time.
///
/// One thread runs an event loop, which goes in turns. A turn first takes in whatever is there,
/// from any number of connections; then it hands what was decided to the journal, all of it as one
/// batch; then it writes, once to each connection, what may leave. So a busy server makes large
/// batches and few system calls. When a batch is durable the thread that has synced it has a turn
/// of its own, in which its answers leave and the next batch begins, without waking the loop;
/// should the loop be in a turn just then, it does that as well. Everything about the service
/// happens in turns, one at a time.
///
/// When the journal fails the driver ends at once, and nobody gets another answer (H83, H84).
///
/// Thread safety: any thread for what is marked so; the rest before start() or after stop().
class Driver {
 public:
  /// Throws asio::system_error if the process has no descriptor left.
  Driver(ServerOptions options, std::shared_ptr<const net::TlsContext> tls);
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  /// To be fed before start(), and to be read after stop().
  [[nodiscard]] tree::Tree& tree() { return service_.tree(); }

  /// Returns when clients are served. The tree holds what `journal` has stored.
  /// Errors: those of the journal.
  [[nodiscard]] Result<void> start(std::unique_ptr<storage::Journal> journal, CommitOn where,
                                   Doors doors);

  /// Answers what was accepted, gives clients a moment to take their answers, closes the journal
  /// and ends. Errors: what ended it before, or the journal's. Any thread but the server's own,
  /// which get kWouldDeadlock.
  Result<void> stop();
  /// Waits for the end. Any thread but the server's own, which get kWouldDeadlock.
  Result<void> wait();
  /// Ends a session and waits until that is durable. Errors: kNoNode, kClosed. Any thread but the
  /// server's own, which get kWouldDeadlock.
  Result<void> expire(tree::SessionId session);
  /// Is the caller one of the server's own threads, as a log sink is? Any thread.
  [[nodiscard]] bool is_own_thread() const;

  // Constant after start(): any thread.
  [[nodiscard]] const std::vector<std::string>& addresses() const { return addresses_; }
  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] const std::string& metrics_address() const { return metrics_address_; }

 private:
  /// Between looks at what has had its time: brief connections, doors that rest.
  static constexpr std::chrono::milliseconds kSweep{1'000};

  struct Door {
    Listener listener;
    Connection::Kind kind;
    asio::posix::stream_descriptor socket;
    /// The system had no descriptor left: not before then.
    std::optional<Instant> rests_until = {};
  };
  /// A process whose end we hear of, for all of its sessions.
  struct Watch {
    std::uint64_t number = 0;
    asio::posix::stream_descriptor process;
  };
  struct Expiring {
    tree::SessionId session = 0;
    std::shared_ptr<std::promise<Result<void>>> promise;
  };

  [[nodiscard]] static tree::Moment now();
  [[nodiscard]] static int descriptors_for_connections();
  [[nodiscard]] tree::ServiceOptions service_options();
  [[nodiscard]] Status status() const;

  // Turns.
  void run();
  /// `handler` as one that has the turn, until the loop ends it.
  template <class Handler>
  [[nodiscard]] auto in_turn(Handler handler) {
    return [this, handler = std::move(handler)](const auto&... arguments) mutable {
      begin_turn();
      handler(arguments...);
    };
  }
  void begin_turn() {
    if (!turn_of_loop_.owns_lock()) turn_of_loop_.lock();
  }
  void finish_turn(std::size_t handled, bool drained);
  enum class Who { kLoop, kCommitter };
  void carry_out(Who who);
  void commit_batch();
  /// By the committer.
  void commit_ended(Committed done);
  /// Where nobody has the turn: whoever has it looks after its end.
  void settle_commits(Who who);
  /// In a turn. False: there was nothing to settle.
  bool take_commits();
  void committed(const Committed& done);
  void fold_if_needed();
  void folded(const Result<void>& result);
  void fail(const Error& error);
  void settle_expiring();
  void end();

  // Time.
  void wait_for_timer();
  void tick_if_due(std::size_t handled, bool drained);
  void arm_timer();
  void sweep();
  void stop_if_idle(bool drained);
  /// It is to stop, and everything accepted has been answered: are the answers out, or have they
  /// had their time?
  [[nodiscard]] bool has_said_everything();

  // Doors and connections.
  void open_door(Listener listener, Connection::Kind kind);
  void wait_to_accept(Door& door);
  void accept(Door& door);
  void admit(int fd, const Door& door);
  [[nodiscard]] bool has_room_for(const Remote& remote) const;
  [[nodiscard]] Connection* find(std::uint64_t id);
  void introduce(Connection& connection);
  void wait_to_read(Connection& connection);
  void wait_to_write(Connection& connection);
  void readable(Connection& connection);
  /// What TLS itself takes is time that the others do not have (H89).
  void count_tls(Connection& connection, bool was_open);
  void wake_resting();
  void take(Connection& connection, std::string_view bytes);
  void take_metrics_request(Connection& connection, std::string_view bytes);
  /// Writes what may leave, then closes, reads on, or neither.
  void serve(Connection& connection);
  /// Moves the service's next output into the connection. False: there is none.
  bool add_output(Connection& connection);
  [[nodiscard]] tree::Service::Closing closing_of(const Connection& connection) const;
  /// The connection has to be gone soon, even if its client does not read.
  void hurry(const Connection& connection);
  [[nodiscard]] bool is_idle(const Connection& connection) const;
  [[nodiscard]] bool wants_input(const Connection& connection);
  /// The service is done with it: waits for the client to hang up, lest a reset overtake the last
  /// words.
  void part(Connection& connection);
  void forget_peer(Connection& connection);

  // Sessions that end with their process.
  void bind(tree::PeerId peer, tree::SessionId session, std::int32_t asked);
  void unbind(tree::SessionId session);
  /// The process with that number, if it is the one that `asked` and we hear of its end.
  [[nodiscard]] std::optional<Process> find_process(pid_t pid, std::int32_t asked);
  [[nodiscard]] bool has_room_for_watch() const;
  [[nodiscard]] bool watch(const Process& process, Descriptor descriptor);
  void wait_for_end(const Process& process, Watch& watch);
  void process_ended(const Process& process, std::uint64_t number);

  void drop(Connection& connection);

  // Constant after start().
  const ServerOptions options_;
  const Surroundings around_;
  const std::shared_ptr<const net::TlsContext> tls_;
  std::vector<std::string> addresses_;
  std::uint16_t port_ = 0;
  std::string metrics_address_;
  Instant started_;
  int most_descriptors_ = 0;  ///< Connections get lower numbers; the rest is for the journal.
  Log log_;

  /// What the committer has done, for whoever has the turn or takes it: one batch at most.
  base::Pile<Committed> ended_commits_;
  Committed last_commit_;  ///< The committer's until it is in there.

  /// Who has it has the turn, and what follows here.
  std::mutex turn_;
  std::unique_lock<std::mutex> turn_of_loop_{turn_, std::defer_lock};  ///< The loop's own.
  bool left_to_loop_ = false;  ///< The committer had to sync again, so that the loop is to write.
  asio::io_context context_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  net::BootTimer timer_;
  tree::Service service_;
  std::unique_ptr<storage::Journal> journal_;
  std::unique_ptr<Committer> committer_;  ///< Null: the loop commits.
  Folding folding_;
  bool committing_ = false;
  bool is_folding_ = false;
  Instant fold_after_;
  std::deque<Door> doors_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Connection>> connections_;
  std::unordered_map<tree::PeerId, Connection*> peers_;
  std::unordered_map<std::string, std::size_t> from_address_;
  std::unordered_map<std::uint64_t, Instant> brief_;  ///< Connections that must be gone by then.
  std::uint64_t last_connection_ = 0;
  std::size_t tls_events_ = 0;          ///< What TLS itself took in this turn, in events.
  std::vector<std::uint64_t> resting_;  ///< Connections that are read from again in the next turn.
  std::size_t metrics_readers_ = 0;
  std::vector<Expiring> expiring_;
  Bonds bonds_;
  std::map<Process, Watch> watches_;
  std::uint64_t last_watch_ = 0;
  std::uint64_t bonds_refused_ = 0;
  std::uint64_t ended_with_process_ = 0;
  Instant asked_ = Instant::max();  ///< When the timer is to ring.
  bool tick_due_ = false;
  std::size_t handled_since_due_ = 0;
  Duration late_{};
  std::optional<Instant> idle_since_;
  bool stopping_ = false;
  std::optional<Instant> end_by_;  ///< Whoever has not taken its answers by then goes without.
  bool finished_ = false;
  std::optional<Error> failure_;
  CommitStatistics commits_;
  std::uint64_t turns_ = 0;
  std::uint64_t accepted_ = 0;
  std::uint64_t turned_away_ = 0;
  std::uint64_t folds_ = 0;
  std::uint64_t fold_errors_ = 0;
  bool journal_damaged_ = false;
  Duration stalled_{};
  std::array<char, 65'536> buffer_;

  std::mutex mutex_;
  std::condition_variable end_;
  bool ended_ = false;    // Guarded by mutex_.
  Result<void> outcome_;  // Guarded by mutex_.

  std::atomic<std::thread::id> loop_thread_;
  std::atomic<std::thread::id> commit_thread_;
  std::mutex join_mutex_;
  std::thread thread_;  // Guarded by join_mutex_.
};

}  // namespace latchkey::server
