#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "latchkey/deadline.hpp"
#include "tree/expiry.hpp"
#include "tree/origins.hpp"
#include "tree/peer.hpp"
#include "tree/statistics.hpp"
#include "tree/tree.hpp"

namespace latchkey::tree {

/// Now, on the two clocks the server has: one to measure with, one to write down.
struct Moment {
  Instant now;
  std::int64_t wall_ms = 0;
};

/// The answer to an admin word, and what it took to make beyond its bytes, as Tree::work() counts.
struct WordAnswer {
  std::string text;
  std::uint64_t work = 0;
};

struct ServiceOptions {
  std::chrono::milliseconds tick{50};
  std::chrono::milliseconds min_session_timeout{4'000};
  std::chrono::milliseconds max_session_timeout{40'000};
  std::chrono::milliseconds handshake_timeout{10'000};
  std::chrono::milliseconds reap_interval{60'000};
  std::size_t max_frame = 1'048'575;
  std::size_t max_sessions = 1'000'000;
  std::size_t max_sessions_per_origin = 20'000;
  /// Requests of one connection that may wait for their answer; beyond it, it is not read from.
  std::size_t max_requests_per_peer = 1'000;
  /// And the bytes of what they came to.
  std::size_t max_request_bytes_per_peer = std::size_t{4} << 20U;
  /// The same over all connections: beyond it nobody's write is taken up until half of it has been
  /// answered, nor what stands behind such a write on its connection. Handshakes get a quarter
  /// more.
  std::size_t max_request_bytes = std::size_t{64} << 20U;
  /// Bytes that may wait for a slow reader; beyond it the connection is closed (H90). An answer of
  /// many names, or of several reads, that would take more is refused.
  std::size_t max_output_per_peer = std::size_t{64} << 20U;
  /// What all connections together may have waiting: requests that are not whole yet or are held
  /// back, answers and events that were not taken. Beyond it those with the most are closed.
  std::size_t max_buffered = std::size_t{256} << 20U;
  TreeLimits limits;
  /// The identities that credentials of a scheme prove; nothing: they prove none.
  std::function<std::optional<std::vector<Identity>>(std::string_view scheme,
                                                     std::string_view credentials)>
      authenticate;
  /// The answer to an admin word sent instead of a handshake; nothing: it is no such word.
  std::function<std::optional<WordAnswer>(std::string_view word)> admin_word;
  /// A connection has taken up a session, new or old, and sent this protocol version; and a session
  /// has ended, however it did.
  std::function<void(PeerId peer, SessionId session, std::int32_t version)> on_attached;
  std::function<void(SessionId session)> on_ended;
  /// Bits that nobody can guess, for session ids and passwords (H87).
  std::function<std::uint64_t()> secret;
};

/// The server as a machine without I/O: connections, bytes and time go in; frames, and records to
/// be stored, come out. It owns the handshake, the order of answers, session expiry and the reaping
/// of containers, over a Tree.
///
///     service.receive(peer, bytes, moment);
///     std::vector<Stored> batch = service.take_batch();  // to the journal, in this order
///     service.stored(batch.back().zxid, moment);         // once it is durable
///     for (PeerId peer : service.take_ready()) write(peer, service.take_output(peer, moment));
///
/// A write is decided when it arrives and answered when it is durable. A read is answered at once
/// from what is durable, unless a write of its own connection is on the way: then after that write
/// and before anything later. Answers of a connection leave in the order of its requests, and what
/// a write fires leaves before its answer. Nothing that leaves shows what is not durable (H78).
///
/// Thread safety: one thread at a time.
class Service {
 public:
  explicit Service(ServiceOptions options);

  /// For recovery, before start().
  [[nodiscard]] Tree& tree() { return tree_; }
  [[nodiscard]] const Tree& tree() const { return tree_; }

  /// The listeners are open: a new epoch begins, and every recovered session has its full time-out
  /// from now on (H81). The epoch's record must be stored before a connection is accepted.
  void start(Moment moment);

  // Connections.

  struct PeerInfo {
    std::string address;               ///< "127.0.0.1:4711", for people.
    std::vector<Identity> identities;  ///< Known without asking: the ip, a certificate's subject.
    std::string origin = {};           ///< Whom sessions count for; empty: nobody.
  };
  PeerId connect(PeerInfo info, Moment moment);
  /// kElsewhere: another server passes it on, which is no sign of life by itself. Empty and kHere
  /// is one, and nothing else.
  enum class Heard : std::uint8_t { kHere, kElsewhere };
  void receive(PeerId peer, std::string_view bytes, Moment moment, Heard heard = Heard::kHere);
  /// Another server says that the session was alive, and which time-out it has granted to it.
  void touch(SessionId session, std::chrono::milliseconds timeout, Moment moment);
  /// The connection is gone. Requests already accepted are carried out all the same.
  void disconnect(PeerId peer, Moment moment);
  /// Whether it makes sense to read from the connection now.
  [[nodiscard]] bool wants_input(PeerId peer);

  /// Connections that have something to send or to do, or are to be closed; each listed once. If
  /// there are none, the next round begins.
  [[nodiscard]] std::vector<PeerId> take_ready();
  /// Those that asked for more than one turn's worth of work are ready again. Who serves sockets
  /// begins a round, serves until it is over, and listens to all before the next.
  void begin_round();
  [[nodiscard]] bool round_is_over() const { return ready_.empty() && !resting_.empty(); }
  /// What to write next. Ask only when the last of it was written; then there is room for more, and
  /// requests that were held back are taken up. With nothing to give it may have been their turn,
  /// so ask until there is nothing: that comes soon, a connection has only so much work done for it
  /// in one round (H89).
  [[nodiscard]] std::string take_output(PeerId peer, Moment moment);
  /// The connection takes no more for now, and so many bytes of that are left; to be said again
  /// when they have become less: its client lives, though we may not have listened to it (H85).
  void left_unwritten(PeerId peer, std::size_t bytes, Moment moment);
  /// Close it: at once, or when everything has been written. After that call disconnect().
  enum class Closing : std::uint8_t { kNo, kAfterOutput, kNow };
  [[nodiscard]] Closing closing(PeerId peer) const;

  // Time.

  /// Sessions that ran out are closed, old containers removed, half-made handshakes dropped.
  void tick(Moment moment);
  [[nodiscard]] Instant next_wake() const;
  /// The driver could not listen for so long, until `now` (H85).
  void stalled(Duration span, Instant now) { expiry_.postpone(span, now); }

  // Storage.

  struct Stored {
    std::int64_t zxid = 0;
    std::string bytes;
  };
  /// Records decided and not taken yet, in order: all of them, or as many as come to `most_bytes`
  /// and at least one.
  [[nodiscard]] std::vector<Stored> take_batch(std::size_t most_bytes = SIZE_MAX);
  /// Everything up to this zxid is durable.
  void stored(std::int64_t zxid, Moment moment);

  // For operators and tests.

  /// Closes a session as if it had run out. False if there is none.
  bool expire(SessionId session, Moment moment);
  [[nodiscard]] const Statistics& statistics() const { return statistics_; }
  void reset_statistics() { statistics_ = {}; }
  [[nodiscard]] std::size_t in_flight() const { return pipeline_.size(); }
  /// Of what has been accepted and not answered.
  [[nodiscard]] std::size_t in_flight_bytes() const { return in_flight_bytes_; }
  /// Of what waits on either side of the connections, as `max_buffered` counts it.
  [[nodiscard]] std::size_t buffered_bytes() const { return buffered_; }
  /// When the session runs out unless it is heard of; nothing if it is unknown or ending.
  [[nodiscard]] std::optional<Instant> deadline_of(SessionId session) const {
    return expiry_.deadline_of(session);
  }
  using Peers = std::unordered_map<PeerId, std::unique_ptr<Peer>>;
  [[nodiscard]] const Peers& peers() const { return peers_; }
  [[nodiscard]] const ServiceOptions& options() const { return options_; }

 private:
  /// Something whose turn comes when everything before it is durable. `seq` grows by one.
  struct Turn {
    enum class Kind : std::uint8_t { kReply, kHandshake, kExpiry, kLastReaped, kNobody };
    Kind kind = Kind::kNobody;
    PeerId peer = 0;
    std::int32_t xid = 0;
    wire::Op op = wire::Op::kError;
    std::int64_t zxid = 0;  ///< 0: a turn without a decision, such as sync.
    wire::Err err = wire::Err::kOk;
    std::size_t parts = 0;  ///< Of a multi.
    std::size_t refused_part = 0;
    std::optional<Record> record;
    std::size_t bytes = 0;  ///< What it takes, once it stands in the pipeline.
    std::string path;       ///< sync's.
    SessionId session = 0;
    Instant since;
  };

  Peer* find(PeerId id);
  [[nodiscard]] const Peer* find(PeerId id) const;
  void feed(Peer& peer, std::string_view bytes);
  void pump(Peer& peer, Moment moment);
  /// May it be read from and its requests be taken up, as far as its own requests go?
  [[nodiscard]] bool may_ask(const Peer& peer) const;
  /// Must its next request wait because too much is under way to the disk?
  [[nodiscard]] bool waits_for_disk(const Peer& peer) const;
  [[nodiscard]] bool handshakes_wait() const;
  /// Must it wait because of the answers to reads before it?
  [[nodiscard]] bool waits_for_room(const Peer& peer) const;
  /// It is taken up when there is room, after those who came before.
  void line_up(Peer& peer);
  /// Has so much of our time been taken that others come before the next request?
  [[nodiscard]] static bool had_its_turn(std::size_t work);
  /// It goes on in the next round.
  void rest(Peer& peer);
  void waited_for_us(const Peer& peer);
  /// Is there room for one more answer? Who does not take them, does not get more.
  [[nodiscard]] bool may_answer(const Peer& peer) const;
  /// False: the first bytes, which were fed, were no admin word.
  bool take_word(Peer& peer, std::string_view& bytes);
  /// The same, once there are enough of them. A word is answered at once, or when its turn comes:
  /// all who ask for one have a turn together, since each goes with its answer.
  bool answer_word(Peer& peer);
  void take_connect(Peer& peer, std::string_view body, Moment moment);
  void reattach(Peer& peer, const wire::ConnectRequest& request, Moment moment);
  /// The connection has its session from now on.
  void attach(Peer& peer, std::int32_t version);
  void finish_handshake(const Turn& turn, Moment moment);
  void stand_behind_end(Peer& peer, SessionId session, Moment moment);
  void refuse_handshake(Peer& peer);
  void take_request(Peer& peer, std::string_view body, Moment moment);
  void take_auth(Peer& peer, wire::RequestHeader header, std::string_view body);
  void take_read(Peer& peer, wire::RequestHeader header, std::string_view body, Moment moment);
  void take_write(Peer& peer, wire::RequestHeader header, std::string_view body, Moment moment);
  void take_close(Peer& peer, wire::RequestHeader header, Moment moment);
  void answer_read(Peer& peer, wire::RequestHeader header, std::string_view body);
  /// A zxid of 0: the request never was one that could have changed anything.
  void refuse(Peer& peer, wire::RequestHeader header, wire::Err err, std::int64_t zxid,
              Moment moment);

  void enqueue(Turn turn, Moment moment);
  void release(Moment moment);
  void take_turn(Turn& turn, Moment moment);
  void reply(Peer& peer, const Turn& turn, const std::vector<wire::WireStat>& stats, Moment moment);
  /// Answers the reads whose turn has come: as long as there is room, or all of them, because a
  /// later write of the same connection must not be seen by them.
  enum class Which { kThatHaveRoom, kAll };
  void run_deferred(Peer& peer, Which which, Moment moment);
  /// Half-made handshakes and silent sessions.
  void end_overdue(Moment moment);
  void reap(Moment moment);
  /// Bytes are in flight, or no longer.
  void take_on(std::size_t bytes);
  void let_go(std::size_t bytes);
  void drop_deferred(Peer& peer);
  /// The connection has nothing to do with its session any more.
  void detach(Peer& peer);

  /// False: the connection takes nothing more. Otherwise one frame is to be appended to its output,
  /// and recount() to be called.
  bool opens_frame(Peer& peer);
  template <class... Parts>
  void send(Peer& peer, const Parts&... parts) {
    if (!opens_frame(peer)) return;
    wire::append_frame(peer.output, parts...);
    recount(peer);
  }
  /// What the connection holds has changed.
  void count_held(Peer& peer);
  /// The same; and if all together hold too much, some are closed.
  void recount(Peer& peer);
  void make_room();
  [[nodiscard]] Holding holding_of(const Peer& peer) const;
  void send_notices(const std::vector<Notice>& notices);
  void count_answer(Peer& peer, wire::RequestHeader header, Instant since, Moment moment,
                    Latency& latency);
  void mark_ready(Peer& peer);
  void close(Peer& peer, Closing how);
  [[nodiscard]] SessionId new_session_id();

  ServiceOptions options_;
  Tree tree_;
  Expiry expiry_;
  Statistics statistics_;
  Peers peers_;
  std::unordered_map<SessionId, PeerId> attached_;
  std::map<PeerId, Instant> greeting_;  ///< Handshake not finished, with its deadline.
  std::vector<PeerId> ready_;
  std::vector<PeerId> resting_;
  std::size_t words_work_ = 0;  ///< What admin words have taken since the round began.
  std::deque<Turn> pipeline_;
  std::uint64_t released_ = 0;  ///< Turns that have had their turn.
  bool releasing_ = false;
  std::vector<Stored> batch_;
  std::size_t in_flight_bytes_ = 0;
  std::size_t buffered_ = 0;
  Instant now_;  ///< As of the last event that can add to what is buffered.
  Origins origins_;
  bool overfull_ = false;    ///< No write is taken up.
  std::size_t opening_ = 0;  ///< Sessions on their way to the disk.
  std::deque<PeerId> line_;  ///< Those for whom that is so, in the order in which they came to it.
  std::int64_t durable_ = 0;
  PeerId last_peer_ = 0;
  Instant next_reap_ = Instant::max();
};

}  // namespace latchkey::tree
