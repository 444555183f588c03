#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "latchkey/deadline.hpp"
#include "tree/acl.hpp"
#include "tree/crowding.hpp"
#include "tree/expiry.hpp"
#include "tree/statistics.hpp"
#include "tree/watches.hpp"
#include "wire/frame.hpp"

namespace latchkey::tree {

/// One client connection, as the Service keeps it.
struct Peer {
  enum class State : std::uint8_t {
    kGreeting,   ///< Waits for the connect request, or an admin word.
    kAttaching,  ///< Waits for its session to be durable.
    kServing,
    kLeaving,  ///< Nothing more is read; it is closed when its output has left.
  };

  /// What keeping track of a request takes beside its bytes, about.
  static constexpr std::size_t kCost = 256;

  /// A read that waits for writes of the same connection.
  struct Deferred {
    std::uint64_t after = 0;  ///< The turn that must have been taken.
    wire::RequestHeader header;
    std::string body;
    Instant since;
    std::size_t expected = 0;  ///< What the answer will take, about.
    [[nodiscard]] std::size_t bytes() const { return kCost + body.size(); }
  };

  Peer(PeerId peer_id, std::size_t max_frame) : id(peer_id), splitter(max_frame) {}

  PeerId id;
  State state = State::kGreeting;
  std::string address;
  std::string origin;  ///< Whom its sessions count for.
  std::vector<Identity> identities;
  wire::FrameSplitter splitter;
  bool first_bytes = true;
  std::string first;  ///< The first four bytes, while they may still be an admin word.
  wire::Handshake form = wire::Handshake::kOld;
  SessionId session = 0;
  std::int32_t timeout_ms = 0;
  std::string password;

  std::size_t requests = 0;       ///< Accepted and not answered.
  std::size_t request_bytes = 0;  ///< Of those.
  std::uint64_t last_turn = 0;    ///< The newest turn of this connection.
  std::deque<Deferred> deferred;
  std::size_t due = 0;        ///< Of those, from the front: their turn has come, they want room.
  std::size_t expected = 0;   ///< What the answers to all of those will take, about.
  std::size_t input = 0;      ///< Bytes received and not taken up, those of due reads included.
  std::string output;         ///< Not yet given to the driver.
  std::size_t unwritten = 0;  ///< Given to the driver, and the socket has not taken it.
  Pace takes;                 ///< What is unwritten.
  Pace sends;                 ///< What it has begun to send.
  std::size_t counted = 0;    ///< What is in the sum over all connections.
  bool is_ready = false;      ///< Stands in the list of those with something to do.
  std::size_t work = 0;       ///< What its requests have taken, about, since its turn began.
  bool rests = false;         ///< It has had its turn; the others come before its next request.
  bool in_line = false;       ///< Stands in the line of those whose writes wait for the disk.
  bool is_heard = false;      ///< It is read from, or was, since something last came.
  int vain_waits = 0;         ///< In that line, with half a request and heard, but silent since.
  bool gone = false;          ///< Closed by us, not yet disconnected by the driver.

  /// Bytes in memory on its behalf, apart from accepted requests.
  [[nodiscard]] std::size_t held() const { return gone ? 0 : input + output.size() + unwritten; }
  /// Half a request of which nothing more comes is no sign of life, however often we are full, if
  /// we listened in between (H85).
  [[nodiscard]] bool waits_in_vain() const { return vain_waits > 2; }

  Instant since;
  PeerStatistics statistics;
};

}  // namespace latchkey::tree
