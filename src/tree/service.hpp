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
#include "tree/peer.hpp"
#include "tree/statistics.hpp"
#include "tree/tree.hpp"

namespace latchkey::tree {

/// Now, on the two clocks the server has: one to measure with, one to write down.
struct Moment {
  Instant now;
  std::int64_t wall_ms = 0;
};

struct ServiceOptions {
  std::chrono::milliseconds tick{2'000};
  std::chrono::milliseconds min_session_timeout{4'000};
  std::chrono::milliseconds max_session_timeout{40'000};
  std::chrono::milliseconds handshake_timeout{10'000};
  std::chrono::milliseconds reap_interval{60'000};
  std::size_t max_frame = 1'048'575;
  std::size_t max_sessions = 1'000'000;
  /// Requests of one connection that may wait for their answer; beyond it, it is not read from.
  std::size_t max_requests_per_peer = 1'000;
  /// And the bytes of what they came to.
  std::size_t max_request_bytes_per_peer = std::size_t{4} << 20U;
  /// The same over all connections: beyond it none is read from until half of it has been answered.
  std::size_t max_request_bytes = std::size_t{64} << 20U;
  /// Bytes that may wait for a slow reader; beyond it the connection is closed (H90).
  std::size_t max_output_per_peer = std::size_t{16} << 20U;
  TreeLimits limits;
  /// The identities that credentials of a scheme prove; nothing: they prove none.
  std::function<std::optional<std::vector<Identity>>(std::string_view scheme,
                                                     std::string_view credentials)>
      authenticate;
  /// The answer to an admin word sent instead of a handshake; nothing: it is no such word.
  std::function<std::optional<std::string>(std::string_view word)> admin_word;
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
  };
  PeerId connect(PeerInfo info, Moment moment);
  void receive(PeerId peer, std::string_view bytes, Moment moment);
  /// The connection is gone. Requests already accepted are carried out all the same.
  void disconnect(PeerId peer, Moment moment);
  /// Whether it makes sense to read from the connection now.
  [[nodiscard]] bool wants_input(PeerId peer) const;

  /// Connections that have something to send or are to be closed; each listed once.
  [[nodiscard]] std::vector<PeerId> take_ready();
  /// What to write next. Ask only when the last of it was written; then there is room for more, and
  /// requests that were held back are taken up.
  [[nodiscard]] std::string take_output(PeerId peer, Moment moment);
  /// The connection could take no more of that for a while, and now did: its client lives, though
  /// we may not have listened to it meanwhile (H85).
  void took_output(PeerId peer, Moment moment);
  /// Close it: at once, or when everything has been written. After that call disconnect().
  enum class Closing : std::uint8_t { kNo, kAfterOutput, kNow };
  [[nodiscard]] Closing closing(PeerId peer) const;

  // Time.

  /// Sessions that ran out are closed, old containers removed, half-made handshakes dropped.
  void tick(Moment moment);
  [[nodiscard]] Instant next_wake() const;
  /// The driver could not listen for so long (H85).
  void stalled(Duration span) { expiry_.postpone(span); }

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
    std::size_t bytes = 0;  ///< Of record and path, once it stands in the pipeline.
    std::string path;       ///< sync's.
    SessionId session = 0;
    Instant since;
  };

  Peer* find(PeerId id);
  [[nodiscard]] const Peer* find(PeerId id) const;
  void pump(Peer& peer, Moment moment);
  /// True: the first bytes were an admin word, and it has been answered.
  bool take_word(Peer& peer, std::string_view& bytes);
  void take_connect(Peer& peer, std::string_view body, Moment moment);
  void reattach(Peer& peer, const wire::ConnectRequest& request, Moment moment);
  void finish_handshake(const Turn& turn, Moment moment);
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
  void reply(Peer& peer, const Turn& turn, const Effects& effects, Moment moment);
  void run_deferred(Peer& peer, Moment moment);
  /// Half-made handshakes and silent sessions.
  void end_overdue(Moment moment);
  void reap(Moment moment);
  /// Bytes are in flight, or no longer.
  void take_on(std::size_t bytes, Moment moment);
  void let_go(std::size_t bytes, Moment moment);
  void drop_deferred(Peer& peer);
  /// The connection has nothing to do with its session any more.
  void detach(Peer& peer);

  /// False: the connection takes nothing more. Otherwise one frame is to be appended to its output.
  bool opens_frame(Peer& peer);
  template <class... Parts>
  void send(Peer& peer, const Parts&... parts) {
    if (opens_frame(peer)) wire::append_frame(peer.output, parts...);
  }
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
  std::deque<Turn> pipeline_;
  std::uint64_t released_ = 0;  ///< Turns that have had their turn.
  bool releasing_ = false;
  std::vector<Stored> batch_;
  std::size_t in_flight_bytes_ = 0;
  std::optional<Instant> overfull_since_;  ///< Nobody is read from.
  std::int64_t durable_ = 0;
  PeerId last_peer_ = 0;
  Instant next_reap_ = Instant::max();
};

}  // namespace latchkey::tree
