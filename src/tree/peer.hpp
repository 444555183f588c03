#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "latchkey/deadline.hpp"
#include "tree/acl.hpp"
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

  /// A read that waits for writes of the same connection.
  struct Deferred {
    std::uint64_t after = 0;  ///< The turn that must have been taken.
    wire::RequestHeader header;
    std::string body;
    Instant since;
  };

  Peer(PeerId peer_id, std::size_t max_frame) : id(peer_id), splitter(max_frame) {}

  PeerId id;
  State state = State::kGreeting;
  std::string address;
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
  std::string output;
  bool is_ready = false;  ///< Stands in the list of those with something to do.
  bool close_now = false;
  bool gone = false;  ///< Closed by us, not yet disconnected by the driver.

  Instant since;
  PeerStatistics statistics;
};

}  // namespace latchkey::tree
