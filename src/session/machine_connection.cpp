#include <algorithm>
#include <cmath>

#include "base/assert.hpp"
#include "base/mutant.hpp"
#include "session/machine.hpp"

/// How a Machine finds a server, keeps it and leaves it.
namespace latchkey::session {

using wire::Op;

// Dialing.

void Machine::dial(Instant now) {
  phase_ = Phase::kDialing;
  connect_at_ = Instant::max();
  // Every server once within the time-out, and a single one more than once: Apache's may accept a
  // connection while it starts and then never read from it.
  const int tries = std::max(static_cast<int>(order_.size()), 3);
  attempt_until_ = now + std::max<Duration>(timeout() / tries, std::chrono::milliseconds(100));
  dial_ = order_[next_endpoint_];
  next_endpoint_ = (next_endpoint_ + 1) % order_.size();
}

Duration Machine::pause_before_dial() {
  // The first try after a good connection is immediate; then the pause grows once a round through
  // the servers.
  if (failures_ <= 1) return {};
  return back_off((failures_ - 2) / static_cast<int>(order_.size()));
}

Duration Machine::back_off(int round) {
  const double base = static_cast<double>(options_.retry.base.count());
  const double cap = static_cast<double>(options_.retry.cap.count());
  const double full = std::min(cap, base * std::pow(options_.retry.factor, std::min(round, 64)));
  const double jitter = static_cast<double>(random_.below(1'000)) / 2'000.0;
  return std::chrono::microseconds(static_cast<std::int64_t>(full * 1'000.0 * (1.0 - jitter)));
}

void Machine::transport_up(Instant now) {
  advance(now);
  if (phase_ != Phase::kDialing) return;
  phase_ = Phase::kHandshaking;
  // A server that has accepted us greets at once or, being only half up, never.
  constexpr std::chrono::seconds kGreeting(5);
  attempt_until_ = std::min(attempt_until_, now + kGreeting);
  splitter_ = wire::FrameSplitter(options_.max_reply_bytes);
  // Whoever else listens on such a socket has no use for a protocol version.
  const std::int32_t mark = where().starts_with("unix:") ? options_.process_mark : 0;
  // Asks for what we wanted from the first, not for what the last server had to give: a short
  // time-out would stay for good. Never asks for read-only service: a server without a majority
  // cannot grant a lock (H67).
  wire::append_connect_request(
      output_,
      {mark, last_zxid_, static_cast<std::int32_t>(options_.timeout.count()), session_id_,
       password_},
      wire::Handshake::kWithReadOnly);
  last_sent_ = now;
  if (session_id_ == 0) return;
  lease_.asked(now);
  publish_lease();
}

void Machine::transport_down(const std::string& why, Code kind, Instant now) {
  advance(now);
  if (phase_ == Phase::kWaiting || phase_ == Phase::kOver) return;
  detach(why, now, kind);
}

void Machine::handle_greeting(std::string_view body, Instant now) {
  const auto greeting = wire::decode_connect_response(body);
  if (!greeting) return detach("the server's greeting is malformed", now);
  const wire::ConnectResponse& response = greeting->message;
  // A refusal is a time-out of zero. Some servers hand out a fresh session instead of saying that
  // the old one is gone; to its ephemeral nodes that is the same (H66).
  const bool refused = response.timeout_ms <= 0 || response.session_id == 0;
  if (refused || (session_id_ != 0 && response.session_id != session_id_)) {
    if (session_id_ == 0) return detach("the server refused to open a session", now);
    return end(SessionState::kExpired, Code::kSessionLost, Confirmed::kYes, now);
  }
  session_id_ = response.session_id;
  password_ = response.password.value_or(std::string{});
  timeout_ = std::chrono::milliseconds(response.timeout_ms);
  lease_.granted(timeout_, last_sent_);
  // A handshake in doubt may have ended it for a while: its real end has not been told.
  if (lease_.deadline() > now) lease_over_told_ = false;
  view_->id.store(session_id_, std::memory_order_release);
  view_->timeout_ms.store(response.timeout_ms, std::memory_order_release);
  publish_lease();
  attach(now);
}

void Machine::attach(Instant now) {
  phase_ = Phase::kAttached;
  attempt_until_ = Instant::max();
  read_until_ = now + timeout() * 2 / 3;
  last_trouble_.clear();
  // Identity first, because what follows may need it; then watches, so that no request sees a state
  // whose change would go unnoticed; then what has been waiting.
  for (std::size_t i = 0; i < identities_.size(); ++i) send_credential(i);
  // Java's own clients use 128 KiB for a restore frame; stay under it and under our own limit.
  constexpr std::size_t kRestoreBytes = 128 * 1024;
  if (!base::mutated(base::Mutant::kNoRestore)) {
    watches_.append_restore(output_, last_zxid_,
                            std::min(kRestoreBytes, options_.max_request_bytes), restores_);
  }
  if (restores_ > 0) {
    restored_at_ = now;
    touched(now);
  }
  change_state(SessionState::kConnected);
  for (const CallId id : std::exchange(connection_waiters_, {})) release_waiter(id, now);
  pay_debts(now);
}

// Losing the connection.

std::string Machine::where() const {
  const std::size_t endpoint = order_[(next_endpoint_ + order_.size() - 1) % order_.size()];
  const auto& names = options_.endpoint_names;
  return endpoint < names.size() ? names[endpoint] + ": " : std::string{};
}

void Machine::detach(const std::string& reason, Instant now, Code kind) {
  LATCHKEY_ASSERT(phase_ != Phase::kOver);
  const std::string why = where() + reason;
  if (phase_ == Phase::kAttached && session_id_ != 0) {
    log(LogLevel::kInfo, "connection lost: " + why);
  }
  last_trouble_ = why;
  trouble_kind_ = kind;
  hang_up_ = true;
  dial_.reset();
  output_.clear();
  phase_ = Phase::kWaiting;
  attempt_until_ = Instant::max();
  read_until_ = Instant::max();
  ++failures_;
  connect_at_ = now + pause_before_dial();
  if (session_id_ != 0 && give_up_at_ == Instant::max()) {
    give_up_at_ = now + std::max<Duration>(3 * timeout(), options_.give_up_after);
  }
  restores_ = 0;
  pings_.clear();
  auth_flights_.clear();
  coming_watches_.clear();
  if (state_ == SessionState::kConnected) change_state(SessionState::kSuspended);
  requeue_flights(why, now);
}

void Machine::requeue_flights(const std::string& why, Instant now) {
  std::deque<CallId> again;
  const auto requeue = [&](CallId id) {
    Pending* pending = calls_.find(id);
    if (pending == nullptr) return;
    const Call& call = pending->call;
    const bool within =
        call.resend == Resend::kWithinPolicy && pending->attempts <= options_.retry.count;
    const bool insists = call.resend == Resend::kUntilAnswered &&
                         !(call.op == Op::kDelete && base::mutated(base::Mutant::kDeleteOnce));
    if (within || insists) {
      pending->sent = false;
      again.push_back(id);
    } else {
      fail(id, Code::kConnectionLoss, why, now);
    }
  };
  for (const Flight& flight : std::exchange(flights_, {})) {
    requeue(flight.debt);
    requeue(flight.id);
  }
  again.insert(again.end(), lingering_.begin(), lingering_.end());
  lingering_.clear();
  leave_at_ = Instant::max();
  queued_.insert(queued_.begin(), again.begin(), again.end());
}

void Machine::end(SessionState state, Code code, Confirmed confirmed, Instant now) {
  if (is_over()) return;
  if (closing_) {
    state = SessionState::kClosed;
    code = Code::kClosed;
  }
  phase_ = Phase::kOver;
  end_ = confirmed;
  over_code_ = code;
  hang_up_ = true;
  dial_.reset();
  output_.clear();
  connect_at_ = attempt_until_ = give_up_at_ = read_until_ = close_until_ = pay_at_ = leave_at_ =
      Instant::max();
  // Holders hear of it before anybody is told that a new session may be opened (H66).
  announce_end();
  for (const Flight& flight : std::exchange(flights_, {})) {
    fail(flight.debt, code, last_trouble_, now);
    fail(flight.id, code, last_trouble_, now);
  }
  for (const CallId id : std::exchange(lingering_, {})) fail(id, code, last_trouble_, now);
  for (const CallId id : std::exchange(queued_, {})) fail(id, code, last_trouble_, now);
  for (const CallId id : std::exchange(unpaid_, {})) fail(id, code, last_trouble_, now);
  for (Identity& identity : identities_) {
    for (const CallId id : std::exchange(identity.waiters, {})) fail(id, code, last_trouble_, now);
  }
  for (WatchTable::Watch& watch : watches_.clear()) {
    notices_.emplace_back(Fired{std::move(watch.watcher), WatchEvent{EventKind::kSessionOver, {}}});
  }
  for (const CallId id : std::exchange(connection_waiters_, {})) release_waiter(id, now);
  wake_room_waiters(now);
  owed_.clear();
  coming_watches_.clear();
  change_state(state);
  for (Completion& done : std::exchange(close_waiters_, {})) {
    if (!done) continue;
    Outcome outcome;
    // A close that the server has not confirmed leaves the ephemeral nodes to the time-out.
    outcome.ok = confirmed == Confirmed::kYes;
    outcome.code = Code::kTimedOut;
    notices_.emplace_back(Finished{std::move(done), std::move(outcome)});
  }
}

// Time.

void Machine::send_heartbeat(Instant now) {
  if (members_.empty()) {
    wire::append_frame(output_, wire::RequestHeader{wire::kPingXid, Op::kPing});
    pings_.push_back(now);
  } else {
    // A ping is answered by the server we talk to; a sync only after a word with the leader (P5,
    // H11).
    const std::int32_t xid = next_xid();
    if (base::mutated(base::Mutant::kReadHeartbeat)) {
      wire::append_frame(output_, wire::RequestHeader{xid, Op::kExists},
                         wire::PathWatch{"/", false});
      flights_.push_back({xid, 0, Op::kExists, now});
    } else {
      wire::append_frame(output_, wire::RequestHeader{xid, Op::kSync}, wire::PathOnly{"/"});
      flights_.push_back({xid, 0, Op::kSync, now});
    }
    last_proof_sent_ = now;
    tell_members(Tiding::kHeartbeat);
  }
  touched(now);
}

Instant Machine::heartbeat_at() const {
  const Instant idle = last_sent_ + timeout() / 3;
  return members_.empty() ? idle : std::min(idle, lease_.next_heartbeat(last_proof_sent_));
}

void Machine::publish_lease() {
  view_->lease_deadline.store(lease_.deadline().time_since_epoch().count(),
                              std::memory_order_release);
  view_->suspect_at.store(lease_.suspect_at().time_since_epoch().count(),
                          std::memory_order_release);
}

void Machine::tick(Instant now) {
  // If this very tick comes late, the process was stopped or starved and the server's bytes may be
  // waiting unread: give them a chance before calling the connection dead.
  advance(now);
  const Duration grace = timeout() / 6;
  if (phase_ == Phase::kAttached && now - last_tick_ > grace + timeout() / 3) {
    read_until_ = std::max(read_until_, now + grace);
  }
  last_tick_ = now;
  while (auto task = timers_.due(now)) (*task)();
  if (is_over()) return;
  if (closing_ && now >= close_until_) {
    return end(SessionState::kClosed, Code::kClosed, Confirmed::kNo, now);
  }
  if (now >= attempt_until_) detach("no answer in time", now);
  if (now >= read_until_) detach("the server has fallen silent", now);
  if (phase_ != Phase::kAttached && now >= give_up_at_) {
    last_trouble_ = "no server took the session back; last, " + last_trouble_;
    return end(SessionState::kExpired, Code::kSessionLost, Confirmed::kNo, now);
  }
  if (phase_ == Phase::kWaiting && now >= connect_at_) dial(now);
  if (phase_ == Phase::kAttached && now >= pay_at_) pay_debts(now);
  if (phase_ == Phase::kAttached && now >= leave_at_) send_overdue(now);
  if (phase_ == Phase::kAttached && now >= heartbeat_at()) send_heartbeat(now);
  if (!members_.empty() && session_id_ != 0 && !lease_over_told_ && now >= lease_.deadline()) {
    lease_over_told_ = true;
    tell_members(Tiding::kLeaseOver);
  }
}

Instant Machine::next_wake() const {
  Instant next = timers_.next();
  if (is_over()) return next;
  for (const Instant at : {connect_at_, attempt_until_, read_until_, close_until_, leave_at_}) {
    next = std::min(next, at);
  }
  next =
      std::min(next, phase_ == Phase::kAttached ? std::min(heartbeat_at(), pay_at_) : give_up_at_);
  if (!members_.empty() && session_id_ != 0 && !lease_over_told_) {
    next = std::min(next, lease_.deadline());
  }
  return next;
}

}  // namespace latchkey::session
