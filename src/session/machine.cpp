#include "session/machine.hpp"

#include <algorithm>
#include <numeric>

#include "base/assert.hpp"
#include "base/explain.hpp"
#include "base/mutant.hpp"

namespace latchkey::session {

using wire::Op;

Machine::Machine(MachineOptions options, std::uint64_t seed, std::shared_ptr<View> view)
    : options_(std::move(options)),
      view_(std::move(view)),
      random_(seed),
      timeout_(options_.timeout),
      lease_(options_.least_timeout ? Duration(*options_.least_timeout) : Duration::max()),
      order_(options_.endpoints),
      splitter_(options_.max_reply_bytes),
      xid_(options_.first_xid) {
  LATCHKEY_ASSERT(!order_.empty());
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  for (std::size_t i = order_.size(); i > 1; --i) {
    std::swap(order_[i - 1], order_[random_.below(i)]);
  }
  for (const Credential& credential : options_.credentials) identities_.push_back({credential, {}});
}

void Machine::start(Instant now) {
  LATCHKEY_ASSERT(!started_);
  started_ = true;
  last_tick_ = now;
  connect_at_ = now;
  tick(now);
}

std::string Machine::absolute(const std::string& path) const {
  if (options_.chroot.empty()) return path;
  return path == "/" ? options_.chroot : options_.chroot + path;
}

std::string Machine::relative(std::string path) const {
  const std::string& chroot = options_.chroot;
  if (chroot.empty()) return path;
  if (path == chroot) return "/";
  const bool below = path.starts_with(chroot) && path[chroot.size()] == '/';
  return below ? path.substr(chroot.size()) : path;
}

std::string Machine::chroot_hint() const {
  if (options_.chroot.empty()) return {};
  return "below the session's chroot " + options_.chroot + ", which has to exist";
}

// Requests.

std::string Machine::size_and_limit(std::size_t bytes) const {
  return std::to_string(bytes) + " bytes, and the limit is " +
         std::to_string(options_.max_request_bytes);
}

CallId Machine::submit(Call call, Instant now) {
  const Instant deadline = call.deadline;
  const CallId id = calls_.insert(Pending{.call = std::move(call), .submitted_at = now});
  Pending& pending = *calls_.find(id);
  pending.id = id;
  bytes_ += pending.call.frame.size();
  if (phase_ == Phase::kOver) {
    fail(id, over_code_, {}, now);
  } else if (closing_ && pending.call.op != Op::kCloseSession) {
    fail(id, Code::kClosed, {}, now);
  } else if (pending.call.frame.size() > options_.max_request_bytes + 4) {
    fail(id, Code::kTooLarge, size_and_limit(pending.call.frame.size() - 4), now);
  } else if (deadline <= now) {
    fail(id, Code::kTimedOut, {}, now);
  } else {
    pending.timer = timers_.add(deadline, [this, id] { abandon(id, Code::kTimedOut, now_); });
    if (pending.call.joins_delete && send_joined(id, now)) return id;
    if (pending.call.lets_linger && phase_ == Phase::kAttached && queued_.empty()) {
      send(id, pending, now);
      return id;
    }
    queued_.push_back(id);
    if (phase_ == Phase::kAttached) send_queued(now);
  }
  return id;
}

void Machine::send_queued(Instant now) {
  queued_.insert(queued_.begin(), lingering_.begin(), lingering_.end());
  lingering_.clear();
  leave_at_ = Instant::max();
  while (!queued_.empty()) {
    const CallId id = queued_.front();
    queued_.pop_front();
    if (Pending* pending = calls_.find(id)) send(id, *pending, now);
  }
}

Instant Machine::next_leave() const {
  return lingering_.empty() ? Instant::max()
                            : calls_.find(lingering_.front())->submitted_at + kPatience;
}

void Machine::send_overdue(Instant now) {
  const auto in_time = std::ranges::find_if(
      lingering_, [&](CallId id) { return calls_.find(id)->submitted_at + kPatience > now; });
  std::vector<CallId> waiting(in_time, lingering_.end());
  lingering_.erase(in_time, lingering_.end());
  send_queued(now);
  // Nobody has come back for so long.
  if (waiting.empty()) comes_again_ = false;
  lingering_ = std::move(waiting);
  leave_at_ = next_leave();
}

void Machine::send(CallId id, Pending& pending, Instant now) {
  const std::int32_t xid = next_xid();
  const std::size_t start = output_.size();
  output_ += pending.call.frame;
  wire::write_xid(output_, start, xid);
  pending.sent = true;
  ++pending.attempts;
  if (const auto& wish = pending.call.watch) {
    // The last byte of a read asks for a one-shot watch. Decided now, when all that may cover it
    // has been sent.
    const bool lasts = wish->on == WatchOn::kPersistent || wish->on == WatchOn::kRecursive;
    if (!lasts) output_.back() = is_covered(wish->on, pending.call.path) ? '\0' : '\1';
    ++coming_watches_[{wish->on, pending.call.path}];
  }
  flights_.push_back({xid, id, pending.call.op, now});
  touched(now);
  if (is_write(pending.call.op) || pending.call.op == Op::kSync) last_proof_sent_ = now;
}

std::int32_t Machine::next_xid() {
  // Only positive numbers: the negative ones are reserved for pings, events and their kind (H64).
  const std::int32_t xid = xid_;
  xid_ = xid_ == INT32_MAX ? 1 : xid_ + 1;
  return xid;
}

void Machine::touched(Instant now) {
  last_sent_ = now;
  lease_.sent(now);
}

void Machine::finish(Pending& pending, Outcome outcome, Instant now) {
  timers_.cancel(std::exchange(pending.timer, 0));
  if (!pending.call.done && !pending.call.pays_debt) return;
  outcome.submitted_at = pending.submitted_at;
  outcome.finished_at = now;
  outcome.bytes_sent = pending.call.frame.size() * static_cast<std::size_t>(pending.attempts);
  outcome.attempts = pending.attempts;
  notices_.emplace_back(
      Finished{std::exchange(pending.call.done, nullptr), std::move(outcome),
               pending.call.pays_debt ? std::move(pending.call.path) : std::string()});
}

std::optional<Machine::Pending> Machine::take_call(CallId id) {
  std::optional<Pending> pending = calls_.take(id);
  if (pending) bytes_ -= pending->call.frame.size();
  return pending;
}

void Machine::bury(Pending& pending) {
  if (pending.call.watch) spent_.push_back({{}, std::move(pending.call.watch->watcher)});
}

void Machine::fail(CallId id, Code code, const std::string& detail, Instant now) {
  std::optional<Pending> pending = take_call(id);
  if (!pending) return;
  bury(*pending);
  // A debt that waits to be sent again may have been carried out the first time.
  const Progress progress = pending->attempts > 0 ? Progress::kSent : Progress::kUnsent;
  Outcome outcome;
  outcome.code = code;
  outcome.effect = effect_of(pending->call.op, progress, wire::Err::kOk);
  outcome.detail = detail;
  finish(*pending, std::move(outcome), now);
  wake_room_waiters(now);
}

void Machine::abandon(CallId id, Code code, Instant now) {
  Pending* pending = calls_.find(id);
  if (pending == nullptr) return;
  LATCHKEY_ASSERT(!pending->call.pays_debt);
  if (!pending->sent) {
    return fail(id, code, last_trouble_, now);
  }
  // The answer may still come and must find its call: the entry stays, without anyone to tell.
  Outcome outcome;
  outcome.code = code;
  outcome.effect = effect_of(pending->call.op, Progress::kSent, wire::Err::kOk);
  outcome.detail = phase_ == Phase::kAttached ? std::string{} : last_trouble_;
  pending->call.resend = Resend::kNever;
  pending->watch_wanted = false;
  finish(*pending, std::move(outcome), now);
}

void Machine::withdraw(CallId id, Instant now) {
  const Pending* pending = calls_.find(id);
  if (pending == nullptr || pending->sent) return;
  fail(id, Code::kCancelled, {}, now);
}

// Waiting for the machine itself.

CallId Machine::add_waiter(Completion done, Instant deadline, Code code, Instant now) {
  const CallId id = calls_.insert(Pending{.call = {.done = std::move(done)}, .submitted_at = now});
  ++waiters_;
  calls_.find(id)->timer = timers_.add(deadline, [this, id, code] {
    if (calls_.find(id) == nullptr) return;
    --waiters_;
    std::erase(connection_waiters_, id);
    std::erase(room_waiters_, id);
    const Code told = code == Code::kUnreachable ? trouble_kind_ : code;
    fail(id, told, last_trouble_, now_);
  });
  return id;
}

void Machine::release_waiter(CallId id, Instant now) {
  std::optional<Pending> waiter = take_call(id);
  if (!waiter) return;
  --waiters_;
  Outcome outcome;
  outcome.ok = !is_over();
  outcome.code = over_code_;
  outcome.detail = last_trouble_;
  finish(*waiter, std::move(outcome), now);
}

void Machine::await_connection(Instant deadline, Completion done, Instant now) {
  const CallId id = add_waiter(std::move(done), deadline, Code::kUnreachable, now);
  if (phase_ == Phase::kAttached || is_over()) return release_waiter(id, now);
  connection_waiters_.push_back(id);
}

void Machine::await_room(Instant deadline, Completion done, Instant now) {
  const CallId id = add_waiter(std::move(done), deadline, Code::kTimedOut, now);
  if (has_room() || is_over()) return release_waiter(id, now);
  room_waiters_.push_back(id);
}

void Machine::wake_room_waiters(Instant now) {
  while (!room_waiters_.empty() && (has_room() || is_over())) {
    const CallId id = room_waiters_.front();
    room_waiters_.pop_front();
    release_waiter(id, now);
    // One free place, one waiter: the others would only queue up again.
    if (!is_over()) return;
  }
}

// Credentials.

void Machine::add_credential(Credential credential, Completion done, Instant deadline,
                             Instant now) {
  const CallId id = calls_.insert(
      Pending{.call = {.op = Op::kAuth, .done = std::move(done)}, .submitted_at = now});
  if (is_over() || closing_) {
    return fail(id, is_over() ? over_code_ : Code::kClosed, {}, now);
  }
  // Sent again with every connection, so one that no server takes would end them all.
  if (credential.secret.size() + credential.scheme.size() + 64 > options_.max_request_bytes) {
    return fail(id, Code::kTooLarge, size_and_limit(credential.secret.size()), now);
  }
  if (deadline <= now) return fail(id, Code::kTimedOut, {}, now);
  calls_.find(id)->id = id;
  calls_.find(id)->timer =
      timers_.add(deadline, [this, id] { fail(id, Code::kTimedOut, last_trouble_, now_); });
  // The same credential again is asked again, but kept once.
  auto identity = std::ranges::find_if(identities_, [&](const Identity& known) {
    return known.credential.scheme == credential.scheme &&
           known.credential.secret == credential.secret;
  });
  if (identity == identities_.end()) {
    identity = identities_.insert(identities_.end(), {std::move(credential), {}});
  }
  identity->waiters.push_back(id);
  if (phase_ != Phase::kAttached) return;
  send_credential(static_cast<std::size_t>(identity - identities_.begin()));
}

void Machine::send_credential(std::size_t index) {
  const Credential& credential = identities_[index].credential;
  wire::append_frame(output_, wire::RequestHeader{wire::kAuthXid, Op::kAuth},
                     wire::AuthPacket{0, credential.scheme, credential.secret});
  // It counts as nothing: Apache takes it without touching the session, and so does not tell the
  // leader that we are alive.
  auth_flights_.push_back(index);
}

// Watches.

void Machine::unwatch(CallId setter, Instant now) {
  if (base::mutated(base::Mutant::kWatchKept)) return;
  if (Pending* pending = calls_.find(setter)) pending->watch_wanted = false;
  const auto place = watches_.remove(setter);
  if (place) drop_server_watch(place->first, place->second, now);
}

void Machine::forget_watch(CallId setter) {
  if (Pending* pending = calls_.find(setter)) pending->watch_wanted = false;
  static_cast<void>(watches_.remove(setter));
}

bool Machine::is_wanted(WatchOn on, const std::string& path) const {
  return watches_.watches(on, path) || coming_watches_.contains({on, path});
}

bool Machine::is_covered(WatchOn on, const std::string& path) const {
  return is_wanted(WatchOn::kPersistent, path) ||
         (on != WatchOn::kChildren && is_wanted(WatchOn::kRecursive, path));
}

void Machine::drop_server_watch(WatchOn on, const std::string& path, Instant now) {
  if (phase_ != Phase::kAttached || closing_) return;
  // On the server one removal takes every watch of that type and path. So leave it alone if another
  // watch, or a request on its way, relies on it. A lasting watch goes only by kAny, which takes
  // all; and while there is one, the others may have none of their own there.
  const bool data = is_wanted(WatchOn::kData, path) || is_wanted(WatchOn::kExists, path);
  const bool children = is_wanted(WatchOn::kChildren, path);
  if (is_wanted(WatchOn::kPersistent, path) || is_wanted(WatchOn::kRecursive, path)) return;
  auto type = wire::WatcherType::kAny;
  if (on == WatchOn::kChildren) {
    if (children) return;
    type = wire::WatcherType::kChildren;
  } else if (on == WatchOn::kData || on == WatchOn::kExists) {
    if (data) return;
    type = wire::WatcherType::kData;
  } else if (data || children) {
    return;
  }
  // Never sent again: a new connection restores only what is in the table.
  Call call{.op = Op::kRemoveWatches, .path = path, .lets_linger = true};
  wire::append_frame(call.frame, wire::RequestHeader{0, Op::kRemoveWatches},
                     wire::PathWatcherType{path, type});
  submit(std::move(call), now);
}

// Debts.

void Machine::owe_delete(const std::string& path, Completion done, Instant now, Linger linger,
                         const std::optional<LastWord>& word) {
  const bool lingers = linger == Linger::kYes && will_linger();
  const bool says = word && !lingers && may_say(*word);
  if (!is_over() && !closing_) {
    owed_.insert(path);
    for (WatchTable::Watch& watch : watches_.take_kin(path)) {
      notices_.emplace_back(
          Fired{std::move(watch.watcher), WatchEvent{EventKind::kDeleted, relative(path)}});
    }
  }
  wire::PathVersion body{path, -1};
  Call call{.op = Op::kDelete,
            .resend = Resend::kUntilAnswered,
            .pays_debt = true,
            .done = std::move(done)};
  call.frame.reserve(path.size() + 32);
  wire::append_frame(call.frame, wire::RequestHeader{0, Op::kDelete}, body);
  call.path = std::move(body.path);
  last_debt_at_ = now;
  if (says) return submit_with(*word, std::move(call), now);
  if (!lingers) {
    submit(std::move(call), now);
    return;
  }
  bytes_ += call.frame.size();
  const CallId id = calls_.insert(Pending{.call = std::move(call), .submitted_at = now});
  calls_.find(id)->id = id;
  lingering_.push_back(id);
  leave_at_ = std::min(leave_at_, now + kPatience);
}

void Machine::settle_debt(const std::string& path, Outcome& outcome) {
  owed_.erase(path);
  const bool gone = outcome.ok || outcome.code == Code::kNoNode;
  if (!gone && !is_over() && !closing_) {
    log(LogLevel::kError, "cannot delete " + path + ": " +
                              std::string(base::explain(outcome.code)) +
                              "; it stays until the session ends");
  }
  if (!outcome.ok && outcome.code == Code::kNoNode) outcome.ok = true;
}

bool Machine::may_say(const LastWord& word) const {
  if (!says_words_ || phase_ != Phase::kAttached || closing_) return false;
  const std::string below = word.path == "/" ? word.path : word.path + '/';
  const auto other = owed_.lower_bound(below);
  return other == owed_.end() || !other->starts_with(below);
}

void Machine::submit_with(const LastWord& word, Call debt, Instant now) {
  wire::Multi body;
  body.ops.push_back({Op::kSetData, wire::SetData{word.path, word.data, word.version}});
  body.ops.push_back({Op::kDelete, wire::PathVersion{debt.path, -1}});
  Call both{.op = Op::kMulti, .path = debt.path};
  wire::append_frame(both.frame, wire::RequestHeader{0, Op::kMulti}, body);
  both.done = [this, debt = std::move(debt)](Outcome&& outcome) mutable {
    const auto* reply = std::get_if<wire::MultiReply>(&outcome.reply);
    const auto failed = [](const wire::MultiResult& result) {
      return std::holds_alternative<wire::ErrorReply>(result.body);
    };
    if (reply && reply->results.size() == 2 && std::ranges::none_of(reply->results, failed)) {
      settle_debt(debt.path, outcome);
      if (debt.done) debt.done(std::move(outcome));
      return;
    }
    if (reply && !reply->results.empty()) {
      // It would be refused every time, and whoever waits would wait for that.
      const auto* word_said = std::get_if<wire::ErrorReply>(&reply->results[0].body);
      if (word_said && word_said->err == wire::Err::kNoAuth) says_words_ = false;
    }
    submit(std::move(debt), now_);
  };
  submit(std::move(both), now);
}

std::vector<CallId>::const_iterator Machine::find_lingering(const std::string& path) const {
  return std::ranges::find_if(lingering_, [&](CallId id) {
    const Pending* pending = calls_.find(id);
    return pending != nullptr && pending->call.path == path;
  });
}

bool Machine::send_joined(CallId id, Instant now) {
  comes_again_ = now - last_debt_at_ <= kBreath;
  if (phase_ != Phase::kAttached || lingering_.empty() || !queued_.empty()) return false;
  Pending& entry = *calls_.find(id);
  const auto heir_of = find_lingering(entry.call.heir_of);
  const bool in_place = heir_of != lingering_.end();
  const CallId debt = in_place ? *heir_of : lingering_.back();
  Pending& leaving = *calls_.find(debt);
  constexpr std::size_t kHeaders = 16;  // Those of a multi's parts, beyond what frames have.
  const std::size_t bytes = leaving.call.frame.size() + entry.call.frame.size() + kHeaders;
  if (bytes > options_.max_request_bytes) return false;
  std::erase(lingering_, debt);
  // The others may have heirs of their own, and wait for them as long as this one did.
  if (!in_place) send_queued(now);
  leave_at_ = next_leave();
  const std::int32_t xid = next_xid();
  const std::size_t start = output_.size();
  wire::append_joined_frame(output_, {leaving.call.frame, entry.call.frame});
  wire::write_xid(output_, start, xid);
  for (Pending* pending : {&leaving, &entry}) {
    pending->sent = true;
    ++pending->attempts;
  }
  flights_.push_back({xid, id, Op::kMulti, now, debt, in_place});
  touched(now);
  last_proof_sent_ = now;
  return true;
}

void Machine::owe_again(CallId debt, Instant when) {
  Pending* pending = calls_.find(debt);
  if (pending == nullptr) return;
  pending->sent = false;
  unpaid_.push_back(debt);
  pay_at_ = std::min(pay_at_, when);
}

void Machine::pay_debts(Instant now) {
  pay_at_ = Instant::max();
  const std::vector<CallId> unpaid = std::exchange(unpaid_, {});
  queued_.insert(queued_.end(), unpaid.begin(), unpaid.end());
  if (phase_ == Phase::kAttached) send_queued(now);
}

// Members.

Machine::MemberId Machine::join(Member& member) {
  // A lease that ran out before anybody held under it is nobody's loss.
  if (members_.empty() && now_ >= lease_.deadline()) lease_over_told_ = true;
  const MemberId id = ++last_member_;
  members_.emplace(id, &member);
  if (is_over() || closing_) notices_.emplace_back(ForMembers{id, id, Tiding::kSessionOver});
  return id;
}

void Machine::leave(MemberId id) { members_.erase(id); }

void Machine::tell_members(Tiding tiding) {
  if (!members_.empty()) notices_.emplace_back(ForMembers{0, last_member_, tiding});
}

void Machine::announce_end() {
  if (!std::exchange(end_announced_, true)) tell_members(Tiding::kSessionOver);
}

// Closing.

void Machine::close(Instant deadline, Completion done, Instant now, Losses losses) {
  if (is_over()) {
    Outcome outcome;
    outcome.ok = end_ == Confirmed::kYes;
    // Not kTimedOut: another try would change nothing.
    outcome.code = over_code_;
    outcome.detail = "it had ended without the server's word, so its nodes go with its time-out";
    if (done) notices_.emplace_back(Finished{std::move(done), std::move(outcome)});
    return;
  }
  close_waiters_.push_back(std::move(done));
  close_until_ = std::min(close_until_, deadline);
  if (losses == Losses::kAsTheyAre) awaits_tellings_ = false;
  if (closing_) return send_close(now);
  closing_ = true;
  over_code_ = Code::kClosed;
  announce_end();
  pay_debts(now);
  for (const CallId id : std::exchange(queued_, {})) fail(id, Code::kClosed, {}, now);
  if (session_id_ == 0) return end(SessionState::kClosed, Code::kClosed, Confirmed::kYes, now);
  if (phase_ == Phase::kWaiting) connect_at_ = std::min(connect_at_, now);
  notices_.emplace_back(CloseAnnounced{});
}

/// With the session its locks pass on, so holders hear of the end first (H09).
void Machine::send_close(Instant now) {
  if (!close_announced_ || (awaits_tellings_ && tellings_ > 0) || is_over()) return;
  close_announced_ = false;
  Call call{.op = Op::kCloseSession, .resend = Resend::kUntilAnswered};
  wire::append_frame(call.frame, wire::RequestHeader{0, Op::kCloseSession});
  submit(std::move(call), now);
}

void Machine::end_telling() {
  LATCHKEY_ASSERT(tellings_ > 0);
  --tellings_;
  send_close(now_);
}

// Delivery.

void Machine::change_state(SessionState state) {
  if (state == state_) return;
  state_ = state;
  view_->state.store(state, std::memory_order_release);
  notices_.emplace_back(StateChanged{state});
}

void Machine::log(LogLevel level, std::string text) {
  notices_.emplace_back(Logged{level, std::move(text)});
}

void Machine::tell(const ForMembers& tiding) {
  // Who hears it may leave, and others with it.
  for (auto at = members_.lower_bound(tiding.first); at != members_.end();) {
    const auto& [id, member] = *at;
    const MemberId told = id;
    if (told > tiding.last) return;
    switch (tiding.tiding) {
      case Tiding::kHeartbeat: member->on_heartbeat(); break;
      case Tiding::kLeaseOver: member->on_lease_over(); break;
      case Tiding::kLeaseProven: member->on_lease_proven(); break;
      case Tiding::kSessionOver: member->on_session_over(over_code_); break;
    }
    at = members_.upper_bound(told);
  }
}

void Machine::deliver(const Hooks& hooks) {
  // What is done here may add to them.
  for (std::size_t next = 0; next < notices_.size(); ++next) {
    Notice notice = std::move(notices_[next]);
    if (auto* finished = std::get_if<Finished>(&notice)) {
      if (!finished->owed.empty()) settle_debt(finished->owed, finished->outcome);
      if (!finished->done) continue;
      finished->done(std::move(finished->outcome));
      spent_.push_back({std::move(finished->done), {}});
    } else if (auto* fired = std::get_if<Fired>(&notice)) {
      fired->watcher(fired->event);
      spent_.push_back({{}, std::move(fired->watcher)});
    } else if (auto* changed = std::get_if<StateChanged>(&notice)) {
      if (hooks.on_state) hooks.on_state(changed->state);
    } else if (auto* logged = std::get_if<Logged>(&notice)) {
      if (hooks.log) hooks.log(logged->level, std::move(logged->text));
    } else if (auto* tiding = std::get_if<ForMembers>(&notice)) {
      tell(*tiding);
    } else {
      close_announced_ = true;
      send_close(now_);
    }
  }
  // Their memory is used again, unless it was an unusual lot.
  constexpr std::size_t kOrdinary = 256;
  if (notices_.capacity() > kOrdinary) notices_ = std::vector<Notice>();
  notices_.clear();
}

}  // namespace latchkey::session
