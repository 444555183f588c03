#include "tree/service.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/mutant.hpp"

namespace latchkey::tree {
namespace {

/// Containers, and TTL nodes, removed in one go: a large clean-up leaves room for others.
constexpr std::size_t kReapAtOnce = 1'000;

/// What any request takes at least, as Tree::work() counts.
constexpr std::size_t kRequestWork = 128;

constexpr std::size_t kWordSize = 4;

/// As the length of a request it would be far too large.
bool may_be_word(std::string_view bytes) {
  return std::ranges::all_of(bytes, [](char byte) { return byte >= 'a' && byte <= 'z'; });
}

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
  peer->origin = std::move(info.origin);
  peer->identities = std::move(info.identities);
  peer->since = moment.now;
  greeting_[peer->id] = moment.now + options_.handshake_timeout;
  const PeerId id = peer->id;
  peers_.emplace(id, std::move(peer));
  return id;
}

void Service::receive(PeerId id, std::string_view bytes, Moment moment, Heard heard) {
  Peer* peer = find(id);
  if (peer == nullptr || peer->gone || peer->state == Peer::State::kLeaving) return;
  now_ = moment.now;
  if (peer->first_bytes && take_word(*peer, bytes)) return;
  feed(*peer, bytes);
  if (peer->session != 0 && heard == Heard::kHere) expiry_.touch(peer->session, moment.now);
  pump(*peer, moment);
}

void Service::touch(SessionId session, std::chrono::milliseconds timeout, Moment moment) {
  if (expiry_.deadline_of(session)) expiry_.add(session, timeout, moment.now);
}

void Service::feed(Peer& peer, std::string_view bytes) {
  if (peer.input == 0) peer.sends.start(now_);
  peer.sends.move(bytes.size(), now_);
  peer.splitter.feed(bytes);
  peer.vain_waits = 0;
  peer.is_heard = false;
  peer.input += bytes.size();
}

bool Service::take_word(Peer& peer, std::string_view& bytes) {
  const std::size_t missing = std::min(bytes.size(), kWordSize - peer.first.size());
  peer.first += bytes.substr(0, missing);
  bytes.remove_prefix(missing);
  return peer.first.size() < kWordSize || answer_word(peer);
}

bool Service::answer_word(Peer& peer) {
  if (had_its_turn(words_work_) && may_be_word(peer.first)) {
    greeting_.erase(peer.id);  // It waits for us.
    rest(peer);
    return true;
  }
  peer.first_bytes = false;
  std::optional<WordAnswer> answer;
  if (options_.admin_word) answer = options_.admin_word(peer.first);
  if (!answer) {
    feed(peer, peer.first);
    return false;
  }
  ++statistics_.received;
  words_work_ += kRequestWork + answer->work + answer->text.size();
  peer.output += answer->text;
  close(peer, Closing::kAfterOutput);
  recount(peer);
  return true;
}

void Service::disconnect(PeerId id, Moment) {
  const auto it = peers_.find(id);
  if (it == peers_.end()) return;
  detach(*it->second);
  drop_deferred(*it->second);
  if (it->second->in_line) std::erase(line_, id);
  buffered_ -= it->second->counted;
  tree_.drop_watches(id);
  greeting_.erase(id);
  peers_.erase(it);
}

void Service::detach(Peer& peer) {
  const auto attached = attached_.find(peer.session);
  if (attached != attached_.end() && attached->second == peer.id) attached_.erase(attached);
  peer.session = 0;
}

bool Service::may_ask(const Peer& peer) const {
  if (peer.gone) return false;
  if (peer.state != Peer::State::kGreeting && peer.state != Peer::State::kServing) return false;
  return peer.requests < options_.max_requests_per_peer &&
         peer.request_bytes < options_.max_request_bytes_per_peer;
}

void Service::pump(Peer& peer, Moment moment) {
  if (peer.first_bytes && peer.first.size() == kWordSize && answer_word(peer)) return;
  run_deferred(peer, Which::kThatHaveRoom, moment);
  while (may_ask(peer) && may_answer(peer) && !waits_for_room(peer)) {
    if (waits_for_disk(peer)) {
      line_up(peer);
      break;
    }
    if (had_its_turn(peer.work) && peer.splitter.has_whole()) {
      rest(peer);
      break;
    }
    const std::optional<std::string_view> frame = peer.splitter.next();
    if (!frame) {
      if (peer.splitter.broken()) close(peer, Closing::kNow);
      break;
    }
    constexpr std::size_t kLengthSize = 4;
    peer.input -= kLengthSize + frame->size();
    peer.work += kRequestWork + frame->size();
    ++statistics_.received;
    ++peer.statistics.received;
    if (peer.state == Peer::State::kGreeting) {
      take_connect(peer, *frame, moment);
    } else {
      take_request(peer, *frame, moment);
    }
  }
  recount(peer);
}

std::vector<PeerId> Service::take_ready() {
  if (ready_.empty()) begin_round();
  for (const PeerId id : ready_) {
    if (Peer* peer = find(id)) peer->is_ready = false;
  }
  return std::exchange(ready_, {});
}

void Service::begin_round() {
  words_work_ = 0;
  for (const PeerId id : std::exchange(resting_, {})) {
    Peer* peer = find(id);
    if (peer == nullptr || peer->gone) continue;
    peer->rests = false;
    peer->work = 0;
    waited_for_us(*peer);
    mark_ready(*peer);
  }
}

std::string Service::take_output(PeerId id, Moment moment) {
  Peer* peer = find(id);
  if (peer == nullptr || peer->gone) return {};
  left_unwritten(id, 0, moment);
  if (peer->output.empty()) pump(*peer, moment);
  std::string output = std::exchange(peer->output, {});
  count_held(*peer);
  // What is held back comes when this has been written, and not on top of it.
  if (!output.empty() && !peer->rests && (peer->input > 0 || peer->due > 0)) mark_ready(*peer);
  return output;
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
    std::string().swap(peer.output);  // With its memory.
    drop_deferred(peer);
    tree_.drop_watches(peer.id);
    count_held(peer);
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
  if (peer.output.size() + peer.unwritten > options_.max_output_per_peer) {
    ++statistics_.slow_readers_closed;
    close(peer, Closing::kNow);
    return false;
  }
  ++statistics_.sent;
  ++peer.statistics.sent;
  mark_ready(peer);
  return true;
}

void Service::drop_deferred(Peer& peer) {
  // Those that are due have been let go of; the others stand behind a turn that will be taken.
  for (std::size_t i = peer.due; i < peer.deferred.size(); ++i) {
    in_flight_bytes_ -= peer.deferred[i].bytes();
  }
  peer.deferred.clear();
  peer.due = 0;
  peer.expected = 0;
}

void Service::enqueue(Turn turn, Moment moment) {
  turn.bytes = Peer::kCost + turn.path.size();
  if (turn.record) {
    batch_.push_back({turn.zxid, encode(*turn.record)});
    turn.bytes += batch_.back().bytes.size();
  }
  take_on(turn.bytes);
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
  // All of a batch is answered at once, and nobody's read meanwhile.
  constexpr std::size_t kMostEntries = 4'096;
  std::size_t bytes = 0;
  std::size_t entries = 0;
  const auto is_too_much = [&](const Stored& stored) {
    bytes += stored.bytes.size();
    return bytes > most_bytes || ++entries > kMostEntries;
  };
  auto end = std::ranges::find_if(batch_, is_too_much);
  if (end == batch_.end()) return std::exchange(batch_, {});
  if (end == batch_.begin()) ++end;
  std::vector<Stored> first(std::make_move_iterator(batch_.begin()), std::make_move_iterator(end));
  batch_.erase(batch_.begin(), end);
  return first;
}

void Service::stored(std::int64_t zxid, Moment moment) {
  now_ = moment.now;
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
    take_turn(turn, moment);
  }
  releasing_ = false;
}

void Service::take_turn(Turn& turn, Moment moment) {
  // What its connection asked before must not see what it asks now (G2).
  Peer* asker = find(turn.peer);
  if (asker != nullptr && turn.kind != Turn::Kind::kExpiry) {
    run_deferred(*asker, Which::kAll, moment);
  }
  ++released_;
  std::vector<wire::WireStat> stats;
  std::vector<Notice> late;
  if (turn.record) {
    const auto identities_of = [this](PeerId id) {
      const Peer* peer = find(id);
      return peer == nullptr ? std::span<const Identity>() : std::span(peer->identities);
    };
    const auto tell = [&](const std::vector<Notice>& notices) {
      if (!base::mutated(base::Mutant::kLateEvent)) return send_notices(notices);
      late.insert(late.end(), notices.begin(), notices.end());
    };
    const std::uint64_t before = tree_.work();
    stats = tree_.apply(*turn.record, identities_of, tell);
    // Whoever makes a change pays for telling of it, however many listen.
    if (asker != nullptr) asker->work += tree_.work() - before;
    if (turn.record->kind == Record::Kind::kCloseSession) {
      origins_.remove(turn.record->session);
      if (options_.on_ended) options_.on_ended(turn.record->session);
    }
  } else if (turn.zxid != 0) {
    tree_.show_refusal(turn.zxid);
  }
  if (turn.kind == Turn::Kind::kHandshake) {
    finish_handshake(turn, moment);
  } else if (turn.kind == Turn::Kind::kExpiry) {
    const auto attached = attached_.find(turn.session);
    Peer* last = attached == attached_.end() ? nullptr : find(attached->second);
    // One that is being taken up again has a turn of its own.
    if (last != nullptr && last->state != Peer::State::kAttaching) close(*last, Closing::kNow);
  } else if (turn.kind == Turn::Kind::kLastReaped) {
    next_reap_ = moment.now;
  }
  let_go(turn.bytes);
  Peer* peer = find(turn.peer);
  if (peer == nullptr) return send_notices(late);
  const bool was_left_unread = !may_ask(*peer);
  --peer->requests;
  peer->request_bytes -= turn.bytes;
  if (was_left_unread) waited_for_us(*peer);
  if (turn.kind == Turn::Kind::kReply) reply(*peer, turn, stats, moment);
  send_notices(late);
  pump(*peer, moment);
  if (peer->state == Peer::State::kLeaving && peer->requests == 0) mark_ready(*peer);
}

void Service::tick(Moment moment) {
  end_overdue(moment);
  if (moment.now >= next_reap_) reap(moment);
  if (tree_.needs_epoch()) {
    Turn turn;
    turn.record = tree_.begin_epoch(moment.wall_ms);
    turn.zxid = turn.record->zxid;
    enqueue(std::move(turn), moment);
  }
}

void Service::end_overdue(Moment moment) {
  if (handshakes_wait()) {
    const Instant later = moment.now + options_.handshake_timeout;
    for (auto& [id, deadline] : greeting_) deadline = std::max(deadline, later);
  }
  while (!greeting_.empty()) {
    // Ids and deadlines grow together.
    const auto [id, deadline] = *greeting_.begin();
    if (deadline > moment.now) break;
    close(*find(id), Closing::kNow);
  }
  for (const SessionId session : expiry_.take_expired(moment.now)) {
    const auto attached = attached_.find(session);
    const Peer* peer = attached == attached_.end() ? nullptr : find(attached->second);
    const bool waits = peer != nullptr && (peer->requests > peer->due || peer->rests ||
                                           (waits_for_disk(*peer) && !peer->waits_in_vain()));
    if (waits) {
      // It waits for us, not we for it. Reads that are due wait for its client to take answers.
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
  const auto attached = attached_.find(session);
  Peer* peer = attached == attached_.end() ? nullptr : find(attached->second);
  if (peer != nullptr && peer->state != Peer::State::kAttaching) {
    // It is over, durable or not: an answer would be taken for a sign that it lives on (H11).
    turn.peer = peer->id;
    peer->state = Peer::State::kLeaving;
    // Answers come in order, so reads before something that will be answered are answered as well.
    if (peer->requests == peer->due) drop_deferred(*peer);
  }
  enqueue(std::move(turn), moment);
  return true;
}

}  // namespace latchkey::tree
