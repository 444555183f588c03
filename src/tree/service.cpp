#include "tree/service.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/mutant.hpp"

namespace latchkey::tree {
namespace {

/// Unwritten output beyond which a connection's requests wait: who does not read, does not ask.
constexpr std::size_t kOutputToHoldBack = std::size_t{1} << 20U;
/// Containers, and TTL nodes, removed in one go: a large clean-up leaves room for others.
constexpr std::size_t kReapAtOnce = 1'000;

}  // namespace

Service::Service(ServiceOptions options)
    : options_(std::move(options)), tree_(options_.limits), expiry_(options_.tick) {
  LATCHKEY_ASSERT(options_.secret != nullptr);
}

void Service::start(Moment moment) {
  durable_ = tree_.applied_zxid();
  for (const auto& [id, entry] : tree_.sessions()) {
    if (base::mutated(base::Mutant::kSessionsForgotten)) break;
    expiry_.add(id, std::chrono::milliseconds(entry.timeout_ms), moment.now);
  }
  next_reap_ = moment.now + options_.reap_interval;
  Turn turn;
  turn.record = tree_.begin_epoch(moment.wall_ms);
  turn.zxid = turn.record->zxid;
  enqueue(std::move(turn), moment);
}

Peer* Service::find(PeerId id) { return const_cast<Peer*>(std::as_const(*this).find(id)); }

const Peer* Service::find(PeerId id) const {
  const auto it = peers_.find(id);
  return it == peers_.end() ? nullptr : it->second.get();
}

PeerId Service::connect(PeerInfo info, Moment moment) {
  auto peer = std::make_unique<Peer>(++last_peer_, options_.max_frame);
  peer->address = std::move(info.address);
  peer->identities = std::move(info.identities);
  peer->since = moment.now;
  greeting_[peer->id] = moment.now + options_.handshake_timeout;
  const PeerId id = peer->id;
  peers_.emplace(id, std::move(peer));
  return id;
}

void Service::receive(PeerId id, std::string_view bytes, Moment moment) {
  Peer* peer = find(id);
  if (peer == nullptr || peer->gone || peer->state == Peer::State::kLeaving) return;
  if (peer->first_bytes && take_word(*peer, bytes)) return;
  peer->splitter.feed(bytes);
  if (peer->session != 0) expiry_.touch(peer->session, moment.now);
  pump(*peer, moment);
}

bool Service::take_word(Peer& peer, std::string_view& bytes) {
  const std::size_t missing = std::min(bytes.size(), 4 - peer.first.size());
  peer.first += bytes.substr(0, missing);
  bytes.remove_prefix(missing);
  if (peer.first.size() < 4) return true;
  peer.first_bytes = false;
  std::optional<std::string> answer;
  if (options_.admin_word) answer = options_.admin_word(peer.first);
  if (!answer) {
    peer.splitter.feed(peer.first);
    return false;
  }
  ++statistics_.received;
  peer.output += *answer;
  close(peer, Closing::kAfterOutput);
  return true;
}

void Service::disconnect(PeerId id, Moment) {
  const auto it = peers_.find(id);
  if (it == peers_.end()) return;
  detach(*it->second);
  drop_deferred(*it->second);
  tree_.drop_watches(id);
  greeting_.erase(id);
  peers_.erase(it);
}

void Service::detach(Peer& peer) {
  const auto attached = attached_.find(peer.session);
  if (attached != attached_.end() && attached->second == peer.id) attached_.erase(attached);
  peer.session = 0;
}

bool Service::wants_input(PeerId id) const {
  const Peer* peer = find(id);
  if (peer == nullptr || peer->gone || overfull_since_) return false;
  if (peer->state != Peer::State::kGreeting && peer->state != Peer::State::kServing) return false;
  return peer->requests < options_.max_requests_per_peer &&
         peer->request_bytes < options_.max_request_bytes_per_peer &&
         peer->output.size() < kOutputToHoldBack;
}

void Service::pump(Peer& peer, Moment moment) {
  while (wants_input(peer.id)) {
    const std::optional<std::string_view> frame = peer.splitter.next();
    if (!frame) {
      if (peer.splitter.broken()) close(peer, Closing::kNow);
      return;
    }
    ++statistics_.received;
    ++peer.statistics.received;
    if (peer.state == Peer::State::kGreeting) {
      take_connect(peer, *frame, moment);
    } else {
      take_request(peer, *frame, moment);
    }
  }
}

std::vector<PeerId> Service::take_ready() {
  for (const PeerId id : ready_) {
    if (Peer* peer = find(id)) peer->is_ready = false;
  }
  return std::exchange(ready_, {});
}

std::string Service::take_output(PeerId id, Moment moment) {
  Peer* peer = find(id);
  if (peer == nullptr || peer->gone) return {};
  std::string output = std::exchange(peer->output, {});
  pump(*peer, moment);
  return output;
}

void Service::took_output(PeerId id, Moment moment) {
  const Peer* peer = find(id);
  if (peer != nullptr && peer->session != 0) expiry_.touch(peer->session, moment.now);
}

Service::Closing Service::closing(PeerId id) const {
  const Peer* peer = find(id);
  if (peer == nullptr || peer->gone) return Closing::kNow;
  // What it asked for before it had to leave is still answered.
  const bool leaves = peer->state == Peer::State::kLeaving && peer->requests == 0;
  return leaves ? Closing::kAfterOutput : Closing::kNo;
}

void Service::close(Peer& peer, Closing how) {
  peer.state = Peer::State::kLeaving;
  greeting_.erase(peer.id);
  if (how == Closing::kNow) {
    peer.gone = true;
    peer.output.clear();
    drop_deferred(peer);
    tree_.drop_watches(peer.id);
  }
  mark_ready(peer);
}

void Service::mark_ready(Peer& peer) {
  if (peer.is_ready) return;
  peer.is_ready = true;
  ready_.push_back(peer.id);
}

void Service::send_notices(const std::vector<Notice>& notices) {
  for (const Notice& notice : notices) {
    Peer* peer = find(notice.peer);
    if (peer == nullptr) continue;
    constexpr std::int32_t kSyncConnected = 3;
    ++statistics_.notices;
    send(*peer, wire::ReplyHeader{wire::kNotificationXid, -1, wire::Err::kOk},
         wire::WatcherEvent{notice.type, kSyncConnected, notice.path});
  }
}

bool Service::opens_frame(Peer& peer) {
  if (peer.gone) return false;
  if (peer.output.size() > options_.max_output_per_peer) {
    ++statistics_.slow_readers_closed;
    close(peer, Closing::kNow);
    return false;
  }
  ++statistics_.sent;
  ++peer.statistics.sent;
  mark_ready(peer);
  return true;
}

void Service::take_on(std::size_t bytes, Moment moment) {
  in_flight_bytes_ += bytes;
  if (in_flight_bytes_ > options_.max_request_bytes && !overfull_since_) {
    overfull_since_ = moment.now;
  }
}

void Service::let_go(std::size_t bytes, Moment moment) {
  in_flight_bytes_ -= bytes;
  if (!overfull_since_ || in_flight_bytes_ > options_.max_request_bytes / 2) return;
  // Nobody was listened to meanwhile, which is not held against anybody (H85).
  const Duration deaf = moment.now - *std::exchange(overfull_since_, std::nullopt);
  expiry_.postpone(deaf);
  for (auto& [id, deadline] : greeting_) deadline += deaf;
  for (auto& [id, peer] : peers_) mark_ready(*peer);
}

void Service::drop_deferred(Peer& peer) {
  for (const Peer::Deferred& read : peer.deferred) in_flight_bytes_ -= read.body.size();
  peer.deferred.clear();
}

void Service::enqueue(Turn turn, Moment moment) {
  if (turn.record) {
    batch_.push_back({turn.zxid, encode(*turn.record)});
    turn.bytes = batch_.back().bytes.size();
  }
  turn.bytes += turn.path.size();
  take_on(turn.bytes, moment);
  if (Peer* peer = find(turn.peer)) {
    ++peer->requests;
    peer->request_bytes += turn.bytes;
    peer->last_turn = released_ + pipeline_.size() + 1;
  }
  turn.since = moment.now;
  pipeline_.push_back(std::move(turn));
  release(moment);
}

std::vector<Service::Stored> Service::take_batch(std::size_t most_bytes) {
  std::size_t bytes = 0;
  const auto is_too_much = [&](const Stored& stored) {
    bytes += stored.bytes.size();
    return bytes > most_bytes;
  };
  auto end = std::ranges::find_if(batch_, is_too_much);
  if (end == batch_.end()) return std::exchange(batch_, {});
  if (end == batch_.begin()) ++end;
  std::vector<Stored> first(std::make_move_iterator(batch_.begin()), std::make_move_iterator(end));
  batch_.erase(batch_.begin(), end);
  return first;
}

void Service::stored(std::int64_t zxid, Moment moment) {
  durable_ = std::max(durable_, zxid);
  release(moment);
}

void Service::release(Moment moment) {
  if (releasing_) return;
  releasing_ = true;
  while (!pipeline_.empty()) {
    const Turn& front = pipeline_.front();
    const bool waits = !base::mutated(base::Mutant::kReplyEarly);
    if (front.record && front.zxid > durable_ && waits) break;
    Turn turn = std::move(pipeline_.front());
    pipeline_.pop_front();
    ++released_;
    take_turn(turn, moment);
  }
  releasing_ = false;
}

void Service::take_turn(Turn& turn, Moment moment) {
  Effects effects;
  if (turn.record) {
    const auto identities_of = [this](PeerId id) {
      const Peer* peer = find(id);
      return peer == nullptr ? std::span<const Identity>() : std::span(peer->identities);
    };
    effects = tree_.apply(*turn.record, identities_of);
    send_notices(effects.notices);
  } else if (turn.zxid != 0) {
    tree_.show_refusal(turn.zxid);
  }
  if (turn.kind == Turn::Kind::kHandshake) {
    finish_handshake(turn, moment);
  } else if (turn.kind == Turn::Kind::kExpiry) {
    const auto attached = attached_.find(turn.session);
    if (attached != attached_.end()) close(*find(attached->second), Closing::kNow);
  } else if (turn.kind == Turn::Kind::kLastReaped) {
    next_reap_ = moment.now;
  }
  let_go(turn.bytes, moment);
  Peer* peer = find(turn.peer);
  if (peer == nullptr) return;
  --peer->requests;
  peer->request_bytes -= turn.bytes;
  if (turn.kind == Turn::Kind::kReply) reply(*peer, turn, effects, moment);
  run_deferred(*peer, moment);
  if (peer->state == Peer::State::kLeaving && peer->requests == 0) mark_ready(*peer);
  pump(*peer, moment);
}

void Service::run_deferred(Peer& peer, Moment moment) {
  while (!peer.deferred.empty() && peer.deferred.front().after <= released_) {
    const Peer::Deferred read = std::move(peer.deferred.front());
    peer.deferred.pop_front();
    --peer.requests;
    peer.request_bytes -= read.body.size();
    let_go(read.body.size(), moment);
    answer_read(peer, read.header, read.body);
    count_answer(peer, read.header, read.since, moment, statistics_.reads);
  }
}

void Service::tick(Moment moment) {
  if (!overfull_since_) end_overdue(moment);
  if (moment.now >= next_reap_) reap(moment);
  if (tree_.needs_epoch()) {
    Turn turn;
    turn.record = tree_.begin_epoch(moment.wall_ms);
    turn.zxid = turn.record->zxid;
    enqueue(std::move(turn), moment);
  }
}

void Service::end_overdue(Moment moment) {
  while (!greeting_.empty()) {
    // Ids and deadlines grow together.
    const auto [id, deadline] = *greeting_.begin();
    if (deadline > moment.now) break;
    close(*find(id), Closing::kNow);
  }
  for (const SessionId session : expiry_.take_expired(moment.now)) {
    const auto attached = attached_.find(session);
    const Peer* peer = attached == attached_.end() ? nullptr : find(attached->second);
    if (peer != nullptr && peer->requests > 0) {
      // It waits for us, not we for it.
      expiry_.add(session, std::chrono::milliseconds(peer->timeout_ms), moment.now);
      continue;
    }
    if (expire(session, moment)) ++statistics_.sessions_expired;
  }
}

void Service::reap(Moment moment) {
  next_reap_ = moment.now + options_.reap_interval;
  const std::vector<std::string> paths = tree_.reapable(moment.wall_ms, kReapAtOnce);
  std::optional<Turn> last;
  for (const std::string& path : paths) {
    Turn turn;
    turn.record = tree_.reap(path, moment.wall_ms);
    if (!turn.record) continue;
    turn.zxid = turn.record->zxid;
    ++statistics_.reaped;
    if (last) enqueue(*std::exchange(last, std::nullopt), moment);
    last = std::move(turn);
  }
  if (!last) return;
  // There may be more: they are looked for when these are gone.
  if (paths.size() >= kReapAtOnce) last->kind = Turn::Kind::kLastReaped;
  enqueue(*std::move(last), moment);
}

Instant Service::next_wake() const {
  Instant wake = next_reap_;
  if (overfull_since_) return wake;
  if (const std::optional<Instant> expiry = expiry_.next()) wake = std::min(wake, *expiry);
  if (!greeting_.empty()) wake = std::min(wake, greeting_.begin()->second);
  return wake;
}

bool Service::expire(SessionId session, Moment moment) {
  Turn turn;
  turn.kind = Turn::Kind::kExpiry;
  turn.session = session;
  turn.record = tree_.close_session(session, moment.wall_ms);
  if (!turn.record) return false;
  turn.zxid = turn.record->zxid;
  expiry_.remove(session);
  enqueue(std::move(turn), moment);
  return true;
}

}  // namespace latchkey::tree
