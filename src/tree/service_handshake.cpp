#include <algorithm>
#include <cstring>
#include <utility>

#include "base/mutant.hpp"
#include "tree/service.hpp"

namespace latchkey::tree {
namespace {

constexpr std::size_t kPasswordSize = 16;

/// Takes as long for a near miss as for a far one (H87).
bool equal_in_constant_time(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference |=
        static_cast<unsigned>(static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]));
  }
  return difference == 0;
}

}  // namespace

SessionId Service::new_session_id() {
  while (true) {
    // Positive, and far from the numbers that mark containers and TTL nodes.
    const auto id = static_cast<SessionId>(options_.secret() >> 2U);
    if (id != 0 && !tree_.sessions().contains(id) && !attached_.contains(id)) return id;
  }
}

void Service::take_connect(Peer& peer, std::string_view body, Moment moment) {
  greeting_.erase(peer.id);  // From now on it waits for us.
  const auto greeting = wire::decode_connect_request(body);
  if (!greeting) return close(peer, Closing::kNow);
  const wire::ConnectRequest& request = greeting->message;
  // It has seen a later state than ours: some other server's, or that of a folder put back.
  if (request.last_zxid_seen > tree_.applied_zxid()) return close(peer, Closing::kNow);
  peer.form = greeting->form;
  const auto timeout =
      std::clamp<std::int64_t>(request.timeout_ms, options_.min_session_timeout.count(),
                               options_.max_session_timeout.count());
  peer.timeout_ms = static_cast<std::int32_t>(timeout);
  if (request.session_id != 0) return reattach(peer, request, moment);
  if (tree_.sessions().size() + opening_ >= options_.max_sessions ||
      origins_.count(peer.origin) >= options_.max_sessions_per_origin) {
    ++statistics_.sessions_refused;
    return close(peer, Closing::kNow);
  }

  peer.session = new_session_id();
  origins_.add(peer.session, peer.origin);
  peer.password.resize(kPasswordSize);
  const std::uint64_t secret[2] = {options_.secret(), options_.secret()};
  std::memcpy(peer.password.data(), secret, kPasswordSize);
  peer.state = Peer::State::kAttaching;
  attach(peer, request.protocol_version);
  Turn turn;
  turn.kind = Turn::Kind::kHandshake;
  turn.peer = peer.id;
  turn.session = peer.session;
  turn.record = tree_.open_session(peer.session, peer.timeout_ms, peer.password, moment.wall_ms);
  turn.zxid = turn.record->zxid;
  ++opening_;
  enqueue(std::move(turn), moment);
}

void Service::reattach(Peer& peer, const wire::ConnectRequest& request, Moment moment) {
  const auto session = tree_.sessions().find(request.session_id);
  const std::string_view password = request.password ? *request.password : std::string_view();
  if (session == tree_.sessions().end() ||
      !equal_in_constant_time(session->second.password, password)) {
    ++statistics_.attach_refused;
    return refuse_handshake(peer);
  }
  if (session->second.closing) {
    ++statistics_.attach_refused;
    peer.state = Peer::State::kAttaching;
    return stand_behind_end(peer, request.session_id, moment);
  }
  peer.session = request.session_id;
  // No more than what is on record: after a crash that is all the session would get (H81).
  peer.timeout_ms = std::min(peer.timeout_ms, session->second.timeout_ms);
  peer.password = session->second.password;
  peer.state = Peer::State::kAttaching;
  // The old connection is closed and what it sent later is not read. What it had asked for before
  // comes first: our own turn stands behind it (H88).
  const auto attached = attached_.find(peer.session);
  if (attached != attached_.end()) {
    Peer* const old = find(attached->second);
    const bool keeps = base::mutated(base::Mutant::kOldConnectionKept);
    if (old != nullptr && !keeps) close(*old, Closing::kNow);
  }
  attach(peer, request.protocol_version);
  expiry_.add(peer.session, std::chrono::milliseconds(peer.timeout_ms), moment.now);
  ++statistics_.reattached;
  Turn turn;
  turn.kind = Turn::Kind::kHandshake;
  turn.peer = peer.id;
  turn.session = peer.session;
  enqueue(std::move(turn), moment);
}

void Service::attach(Peer& peer, std::int32_t version) {
  attached_[peer.session] = peer.id;
  if (options_.on_attached) options_.on_attached(peer.id, peer.session, version);
}

void Service::finish_handshake(const Turn& turn, Moment moment) {
  Peer* peer = find(turn.peer);
  if (turn.record) {
    --opening_;
    ++statistics_.sessions_opened;
    expiry_.add(turn.session, std::chrono::milliseconds(turn.record->timeout_ms), moment.now);
  }
  if (peer == nullptr || peer->gone) return;
  if (!tree_.knows(turn.session)) {
    if (!tree_.sessions().contains(turn.session)) return refuse_handshake(*peer);
    return stand_behind_end(*peer, turn.session, moment);
  }
  peer->state = Peer::State::kServing;
  if (!opens_frame(*peer)) return;
  wire::append_connect_response(peer->output, {0, peer->timeout_ms, peer->session, peer->password},
                                peer->form);
  recount(*peer);
}

/// The session's end is on its way to the disk: whoever wants to take it up hears so when it is
/// durable, and not before (H78).
void Service::stand_behind_end(Peer& peer, SessionId session, Moment moment) {
  Turn turn;
  turn.kind = Turn::Kind::kHandshake;
  turn.peer = peer.id;
  turn.session = session;
  enqueue(std::move(turn), moment);
}

void Service::refuse_handshake(Peer& peer) {
  detach(peer);
  if (opens_frame(peer)) {
    wire::append_connect_response(peer.output, {0, 0, 0, std::string(kPasswordSize, '\0')},
                                  peer.form);
    recount(peer);
  }
  close(peer, Closing::kAfterOutput);
}

}  // namespace latchkey::tree
