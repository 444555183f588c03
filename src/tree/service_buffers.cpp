#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "tree/answer_read.hpp"
#include "tree/crowding.hpp"
#include "tree/service.hpp"

// What waits on either side of the connections, and who has to wait or go because of it.
namespace latchkey::tree {
namespace {

/// Output beyond which a connection's requests wait.
constexpr std::size_t kOutputToHoldBack = std::size_t{1} << 20U;
/// A connection whose requests wait is still listened to until so much of them has come: its
/// heartbeats are heard (H85).
constexpr std::size_t kInputToHear = 4'096;
/// What a connection may have done for it before the others have their turn, as Tree::work()
/// counts: one or two thousand small requests, or about a millisecond (H89). Counted and not timed,
/// so that the same requests are answered in the same order on every machine.
constexpr std::size_t kTurnsWork = std::size_t{1} << 18U;

/// What the next request of a connection is, if so much of it has come.
std::optional<wire::Op> next_op(const Peer& peer) {
  constexpr std::size_t kLengthSize = 4;
  constexpr std::size_t kHeaderSize = 8;
  const std::string_view bytes = peer.splitter.waiting();
  if (bytes.size() < kLengthSize + kHeaderSize) return std::nullopt;
  wire::RequestHeader header;
  wire::Reader(bytes.substr(kLengthSize, kHeaderSize))(header);
  return header.op;
}

/// Such requests are answered from what is there, or not at all.
bool makes_no_turn(wire::Op op) {
  return is_read(op) || op == wire::Op::kAuth || op == wire::Op::kSasl;
}

}  // namespace

bool Service::handshakes_wait() const {
  return overfull_ && in_flight_bytes_ > options_.max_request_bytes / 4 * 5;
}

bool Service::waits_for_disk(const Peer& peer) const {
  if (!overfull_) return false;
  if (peer.state == Peer::State::kGreeting) {
    return handshakes_wait() && !peer.splitter.waiting().empty();
  }
  const std::optional<wire::Op> op = next_op(peer);
  // A read behind something of its own that is under way would be under way as well.
  const bool behind = peer.last_turn > released_ || !peer.deferred.empty();
  return op && (behind || !makes_no_turn(*op));
}

bool Service::waits_for_room(const Peer& peer) const {
  // The turn of a write forces the reads before it out, room or not.
  if (peer.expected <= kOutputToHoldBack || peer.state != Peer::State::kServing) return false;
  const std::optional<wire::Op> op = next_op(peer);
  return op && !makes_no_turn(*op);
}

void Service::line_up(Peer& peer) {
  if (std::exchange(peer.in_line, true)) return;
  line_.push_back(peer.id);
}

bool Service::had_its_turn(std::size_t work) { return work >= kTurnsWork; }

void Service::rest(Peer& peer) {
  if (std::exchange(peer.rests, true)) return;
  resting_.push_back(peer.id);
}

void Service::take_on(std::size_t bytes) {
  in_flight_bytes_ += bytes;
  overfull_ = overfull_ || in_flight_bytes_ > options_.max_request_bytes;
}

void Service::let_go(std::size_t bytes) {
  in_flight_bytes_ -= bytes;
  if (!overfull_ || in_flight_bytes_ > options_.max_request_bytes / 2) return;
  overfull_ = false;
  for (const PeerId id : std::exchange(line_, {})) {
    Peer& peer = *find(id);
    peer.in_line = false;
    mark_ready(peer);
    // The rest may lie in its socket all the time: those before it in line may have filled the disk
    // again before it was read from.
    if (!peer.splitter.has_whole() && std::exchange(peer.is_heard, false)) ++peer.vain_waits;
    if (!peer.waits_in_vain()) waited_for_us(peer);
  }
}

/// What it sent meanwhile was left unread on purpose, so its silence says nothing (H85).
void Service::waited_for_us(const Peer& peer) {
  if (peer.session != 0) expiry_.touch(peer.session, now_);
}

bool Service::may_answer(const Peer& peer) const {
  // When memory is short, nothing is added to what somebody does not take.
  if (peer.unwritten > 0 && buffered_ > options_.max_buffered / 2) return false;
  return peer.output.size() + peer.unwritten < kOutputToHoldBack;
}

bool Service::wants_input(PeerId id) {
  Peer* peer = find(id);
  if (peer == nullptr || !may_ask(*peer)) return false;
  if (waits_for_disk(*peer)) {
    line_up(*peer);  // Whoever is no longer read has to be woken, however it came to that.
    return false;
  }
  const bool is_held_back = peer->rests || !may_answer(*peer) || waits_for_room(*peer);
  const bool wants = !is_held_back || peer->input < kInputToHear;
  peer->is_heard = peer->is_heard || wants;
  return wants;
}

void Service::left_unwritten(PeerId id, std::size_t bytes, Moment moment) {
  Peer* peer = find(id);
  if (peer == nullptr || peer->gone || (bytes == 0 && peer->unwritten == 0)) return;
  now_ = moment.now;
  const bool took_some = bytes < peer->unwritten;
  if (took_some && peer->session != 0) expiry_.touch(peer->session, moment.now);
  if (took_some) peer->takes.move(peer->unwritten - bytes, moment.now);
  if (peer->unwritten == 0) peer->takes.start(moment.now);
  peer->unwritten = bytes;
  recount(*peer);
}

void Service::count_held(Peer& peer) {
  const std::size_t held = peer.held();
  buffered_ = buffered_ - peer.counted + held;
  peer.counted = held;
}

void Service::recount(Peer& peer) {
  count_held(peer);
  if (buffered_ > options_.max_buffered) make_room();
}

Holding Service::holding_of(const Peer& peer) const {
  if (peer.unwritten > 0) return {peer.id, peer.counted, peer.held(), peer.takes.is_slow(now_)};
  // What the driver has had no chance to write is not overdue, nor what waits for that or for us.
  const bool is_ours = !peer.output.empty() || peer.due > 0 || peer.rests || waits_for_disk(peer);
  return {peer.id, peer.counted, is_ours ? 0 : peer.input,
          !is_ours && peer.input > 0 && peer.sends.is_slow(now_)};
}

void Service::make_room() {
  std::vector<Holding> holdings;
  for (const auto& [id, peer] : peers_) {
    if (peer->counted > 0) holdings.push_back(holding_of(*peer));
  }
  // A quarter at once: whoever comes to look at all connections does so seldom.
  const std::size_t goal = options_.max_buffered - options_.max_buffered / 4;
  for (const PeerId id : whom_to_close(std::move(holdings), buffered_ - goal)) {
    ++statistics_.crowded_out;
    close(*find(id), Closing::kNow);
  }
  LATCHKEY_ASSERT(buffered_ <= goal);
}

}  // namespace latchkey::tree
