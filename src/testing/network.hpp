#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "testing/server.hpp"
#include "testing/timeline.hpp"
#include "testing/world_options.hpp"

namespace latchkey::testing {

/// The connections between clients and servers. Each is two byte streams: what is written arrives
/// in order, after a time drawn for each write, perhaps in pieces. Writes on different connections
/// overtake each other. Both ends write whole frames, so the network can tell what passes.
///
/// Thread safety: one thread at a time.
class Network {
 public:
  Network(Timeline& timeline, const WorldOptions& options, const std::vector<Observer*>& observers);

  // What the ends do.

  /// The host hears SimHost::connected(), or disconnected() if the server does not listen, or
  /// nothing.
  LinkId dial(SimHost& host, Process& process, Server& server);
  void send(LinkId link, Way way, std::string bytes);
  /// This end is done with it and hears nothing more; the other one hears of it.
  void hang_up(LinkId link, Way from);
  /// The client is no more. Its end hears nothing, and neither does the server unless told.
  void abandon(LinkId link, Tell server_hears);
  /// The server is no more. Its clients hear of it at once, or when they next write to it and it
  /// is up again.
  void server_ended(const Server& server, Tell clients_hear);

  // Faults.

  void cut(LinkId link);
  void set_silence(Process& process, Server& server, bool requests, bool replies);
  void set_refusal(Process& process, Server& server, Refusal refusal);
  void set_delay(Process& process, Server& server, Duration delay);
  /// The next message of any of these operations.
  void drop_next(Process& process, Way way, std::vector<wire::Op> ops);
  void hold_next(Process& process, Way way, wire::Op op, Duration span);
  void heal_everything();
  /// Has the fault that drop_next() or hold_next() asked for happened?
  [[nodiscard]] bool has_pending_rules() const { return !rules_.empty(); }

  [[nodiscard]] std::size_t links() const { return links_.size(); }
  /// Is it whole, and nothing on its way on it?
  [[nodiscard]] bool is_quiet(LinkId link) const;

  /// Told when a rule of drop_next() or hold_next() has met its message, and when a silence, a
  /// refusal or a delay first meets something after it was set.
  std::function<void(Fault, const Process&)> struck;

 private:
  /// What stands between one process and one server.
  struct Pair {
    bool silent[2] = {false, false};  ///< By Way.
    Refusal refusal = Refusal::kOff;
    Duration delay{};
    std::vector<Fault> waiting;  ///< Those of the above that have met nothing so far.
  };
  struct Chunk {
    enum class Kind : std::uint8_t { kOpen, kBytes, kClose };
    Kind kind = Kind::kBytes;
    Instant at;
    std::string bytes;
    std::size_t messages = 0;  ///< That are whole once it has arrived.
  };
  struct Stream {
    std::deque<Chunk> chunks;
    Instant last;            ///< When the newest of them is due.
    bool scheduled = false;  ///< There is an event for the first of them.
    bool open = false;       ///< The reader is there and listens.
    bool ended = false;      ///< A kClose was put in; nothing follows.
  };
  struct Link {
    SimHost* host = nullptr;
    Process* process = nullptr;
    Server* server = nullptr;
    Pair* pair = nullptr;
    Stream streams[2];  ///< By Way.
    bool greeted[2] = {false, false};
    std::deque<std::pair<std::int32_t, wire::Op>> asked;  ///< Not yet answered.
  };
  struct Rule {
    Process* process = nullptr;
    Way way = Way::kRequest;
    std::vector<wire::Op> ops;
    Duration hold{};  ///< Zero: lose it.
  };

  [[nodiscard]] Link* find(LinkId id);
  [[nodiscard]] Pair& pair(const Process& process, const Server& server);
  /// What inspect() has found.
  struct Passing {
    std::size_t bytes = 0;  ///< That get through: all, or those before a message that is lost.
    std::size_t messages = 0;
    Duration hold{};  ///< For which they are held up.
  };
  void put(LinkId id, Link& link, Way way, Chunk chunk, Duration more = {});
  void put_bytes(LinkId id, Link& link, Way way, std::string bytes, const Passing& passing);
  void schedule(LinkId id, Link& link, Way way);
  void deliver(LinkId id, Way way);
  void arrive_at_server(LinkId id, Link& link, Chunk chunk);
  void arrive_at_client(LinkId id, Link& link, Chunk chunk);
  void forget_if_over(LinkId id);
  /// Looks at the frames of one write.
  [[nodiscard]] Passing inspect(LinkId id, Link& link, Way way, std::string_view bytes);
  void tell_over(LinkId id, Over how);
  /// From now on the fault strikes what it meets, or does not.
  static void prepare(Pair& pair, Fault fault, bool on);
  void meets(const Link& link, Fault fault);
  [[nodiscard]] bool is_silent(const Link& link, Way way);
  [[nodiscard]] Message read_header(LinkId id, Link& link, Way way, std::string_view body);
  [[nodiscard]] const Rule* match(const Link& link, Way way, wire::Op op) const;
  [[nodiscard]] std::vector<LinkId> links_where(base::FunctionRef<bool(const Link&)> fits) const;
  void kick(const Pair& pair);

  Timeline& timeline_;
  const WorldOptions& options_;
  const std::vector<Observer*>& observers_;
  std::unordered_map<LinkId, Link> links_;
  LinkId last_link_ = 0;
  std::map<std::pair<std::uint32_t, std::size_t>, Pair> pairs_;
  std::vector<Rule> rules_;
};

}  // namespace latchkey::testing
