#include <algorithm>

#include "base/mutant.hpp"
#include "session/machine.hpp"

/// What a Machine makes of the server's bytes. Nothing in them is trusted: whatever does not fit
/// ends the connection, never the process (H65).
namespace latchkey::session {

using wire::Err;
using wire::Op;

namespace {

/// In a failed multi 0 stands before the part that failed, and -2 behind it.
bool is_culprit(Err err) { return err != Err::kOk && err != Err::kRuntimeInconsistency; }

/// What it came to. A multi whose header is fine may have failed, and then the error of the part
/// that failed is that of all: one of an expired session says so in there.
Err verdict(Err err, const Reply& reply) {
  const auto* multi = std::get_if<wire::MultiReply>(&reply);
  if (err != Err::kOk || multi == nullptr) return err;
  for (const wire::MultiResult& result : multi->results) {
    const auto* error = std::get_if<wire::ErrorReply>(&result.body);
    if (error != nullptr && is_culprit(error->err)) return error->err;
  }
  return Err::kOk;
}

/// Is it the answer to a delete and a create, either both done or both with an error?
bool answers_joined(const Reply& reply) {
  const auto* multi = std::get_if<wire::MultiReply>(&reply);
  if (multi == nullptr || multi->results.size() != 2) return false;
  const auto& [debt, entry] = std::tie(multi->results[0].body, multi->results[1].body);
  if (std::holds_alternative<wire::ErrorReply>(debt)) {
    return std::holds_alternative<wire::ErrorReply>(entry);
  }
  return std::holds_alternative<wire::Empty>(debt) &&
         std::holds_alternative<wire::CreateReply>(entry);
}

}  // namespace

void Machine::received(std::string_view bytes, Instant now) {
  advance(now);
  if (phase_ != Phase::kHandshaking && phase_ != Phase::kAttached) return;
  splitter_.feed(bytes);
  while (phase_ == Phase::kHandshaking || phase_ == Phase::kAttached) {
    const auto frame = splitter_.next();
    if (!frame) {
      if (splitter_.broken()) detach("the server sent a frame of impossible length", now);
      return;
    }
    if (phase_ == Phase::kHandshaking) {
      handle_greeting(*frame, now);
    } else {
      handle_frame(*frame, now);
    }
  }
}

void Machine::handle_frame(std::string_view body, Instant now) {
  wire::ReplyHeader header;
  wire::Reader reader(body);
  reader(header);
  if (!reader.ok()) return detach("the server sent a frame without a header", now);
  read_until_ = now + timeout() * 2 / 3;
  const std::string_view rest = body.substr(body.size() - reader.left());
  switch (header.xid) {
    case wire::kNotificationXid: return handle_event(rest, now);
    case wire::kPingXid:
      if (pings_.empty()) return detach("the server answered a ping we never sent", now);
      lease_.answered(pings_.front(), now);
      pings_.pop_front();
      return heard();
    case wire::kAuthXid: return handle_auth(header.err, now);
    case wire::kSetWatchesXid: return handle_restored(header.err, now);
    default: return handle_reply(header, rest, now);
  }
}

void Machine::heard() {
  failures_ = 0;
  give_up_at_ = Instant::max();
}

void Machine::handle_restored(Err err, Instant now) {
  if (restores_ == 0) return detach("the server answered a setWatches we never sent", now);
  --restores_;
  lease_.answered(restored_at_, now);
  // Without its watches a waiter would sleep for ever: rather start over.
  if (err != Err::kOk) detach("the server refused to restore our watches", now);
}

void Machine::handle_event(std::string_view body, Instant now) {
  const auto event = wire::decode<wire::WatcherEvent>(body);
  if (!event) return detach("the server sent a malformed event", now);
  if (event->type == wire::EventType::kNone) return;
  EventKind kind = EventKind::kUnknown;
  switch (event->type) {
    case wire::EventType::kCreated: kind = EventKind::kCreated; break;
    case wire::EventType::kDeleted: kind = EventKind::kDeleted; break;
    case wire::EventType::kDataChanged: kind = EventKind::kDataChanged; break;
    case wire::EventType::kChildrenChanged: kind = EventKind::kChildrenChanged; break;
    default: break;
  }
  // What a restored watch has to tell comes before the restore's answer, in the order of the
  // watches and not in that of the changes.
  const bool missed = restores_ > 0;
  const WatchEvent told{kind, relative(event->path), missed};
  for (Watcher& watcher : watches_.fire(event->type, event->path)) {
    notices_.emplace_back(Fired{std::move(watcher), told});
  }
  std::string parent;
  for (WatchTable::Watch& watch : watches_.take_hidden(event->type, event->path, parent)) {
    notices_.emplace_back(Fired{std::move(watch.watcher),
                                WatchEvent{EventKind::kChildrenChanged, relative(parent), missed}});
  }
}

void Machine::handle_auth(Err err, Instant now) {
  if (auth_flights_.empty()) return detach("the server answered an auth we never sent", now);
  if (err != Err::kOk) {
    last_trouble_ = "the server refused a credential";
    // The server drops the connection, not the session.
    return end(SessionState::kAuthFailed, Code::kAuthFailed, Confirmed::kNo, now);
  }
  Identity& identity = identities_[auth_flights_.front()];
  auth_flights_.pop_front();
  for (const CallId id : std::exchange(identity.waiters, {})) {
    std::optional<Pending> waiter = take_call(id);
    if (!waiter) continue;
    Outcome outcome;
    outcome.ok = true;
    finish(*waiter, std::move(outcome), now);
    wake_room_waiters(now);
  }
}

std::optional<Reply> Machine::decode_reply(Op op, std::string_view body) {
  const auto as = [&]<class Body>(std::type_identity<Body>) -> std::optional<Reply> {
    auto decoded = wire::decode<Body>(body);
    if (!decoded) return std::nullopt;
    return Reply(std::move(*decoded));
  };
  switch (op) {
    case Op::kCreate: return as(std::type_identity<wire::CreateReply>{});
    case Op::kCreate2:
    case Op::kCreateContainer:
    case Op::kCreateTtl: return as(std::type_identity<wire::Create2Reply>{});
    case Op::kExists:
    case Op::kSetData:
    case Op::kSetAcl: return as(std::type_identity<wire::StatReply>{});
    case Op::kGetData: return as(std::type_identity<wire::GetDataReply>{});
    case Op::kGetAcl: return as(std::type_identity<wire::GetAclReply>{});
    case Op::kGetChildren: return as(std::type_identity<wire::ChildrenReply>{});
    case Op::kGetChildren2: return as(std::type_identity<wire::Children2Reply>{});
    case Op::kSync: return as(std::type_identity<wire::SyncReply>{});
    case Op::kMulti:
    case Op::kMultiRead: return as(std::type_identity<wire::MultiReply>{});
    case Op::kGetEphemerals: return as(std::type_identity<wire::EphemeralsReply>{});
    case Op::kGetAllChildrenNumber: return as(std::type_identity<wire::ChildrenNumberReply>{});
    case Op::kWhoAmI: return as(std::type_identity<wire::WhoAmIReply>{});
    default: return Reply(std::monostate{});
  }
}

void Machine::handle_reply(const wire::ReplyHeader& header, std::string_view body, Instant now) {
  if (flights_.empty() || flights_.front().xid != header.xid) {
    return detach("the server answered out of turn (xid " + std::to_string(header.xid) + ")", now);
  }
  const Flight flight = flights_.front();
  Reply reply;
  if (header.err == Err::kOk) {
    auto decoded = decode_reply(flight.op, body);
    if (!decoded) {
      return detach("the server's answer to " + std::string(name(flight.op)) + " is malformed",
                    now);
    }
    reply = std::move(*decoded);
    if (flight.debt != 0 && !answers_joined(reply)) {
      return detach("the server's answer to a multi has the wrong parts", now);
    }
  }
  // Not the zxid of a ping or an event: it may be ahead of events still to come, and a watch
  // restored relative to it would miss them.
  last_zxid_ = std::max(last_zxid_, header.zxid);
  heard();
  Pending* pending = calls_.find(flight.id);
  if (header.err == Err::kSessionMoved) {
    constexpr std::string_view kMoved = "the session has moved to another server";
    // What may be sent again is left in flight for the detach to pick up.
    if (pending == nullptr || pending->call.resend == Resend::kNever) {
      flights_.pop_front();
      owe_again(flight.debt, now);
      settle(flight, header, {}, body.size(), now);
    }
    return detach(std::string(kMoved), now);
  }
  flights_.pop_front();
  lease_.answered(flight.sent_at, now);
  const Err err = verdict(header.err, reply);
  if (is_proof(flight.op, err)) {
    const bool was_short = !lease_.lasts(now);
    lease_.proven(base::mutated(base::Mutant::kReceiveTime) ? now : flight.sent_at);
    // A proof that comes too late to help is not the start of a new lease.
    if (lease_.deadline() > now) lease_over_told_ = false;
    const bool is_news = was_short && lease_.lasts(now);
    if (is_news && !base::mutated(base::Mutant::kProofNewsLost)) tell_members(Tiding::kLeaseProven);
    publish_lease();
  }
  if (err == Err::kSessionExpired) announce_end();
  const bool owed = pending != nullptr && pending->call.resend == Resend::kUntilAnswered;
  if (owed && flight.op != Op::kCloseSession && !is_final(header.err)) {
    expect_watch_no_more(*pending);
    return owe_again(flight.id, now + options_.retry.cap);
  }
  if (flight.debt != 0) {
    settle_joined(flight, header, reply, body.size(), now);
  } else {
    settle(flight, header, std::move(reply), body.size(), now);
  }
  if (err == Err::kSessionExpired) {
    end(SessionState::kExpired, Code::kSessionLost, Confirmed::kYes, now);
  } else if (flight.op == Op::kCloseSession) {
    end(SessionState::kClosed, Code::kClosed, Confirmed::kYes, now);
  }
}

/// A delete and an entry that were one transaction. If it failed nothing was done: the delete is
/// settled if it says so itself and sent alone otherwise, and whoever wants the entry asks for it
/// alone, to hear what is wrong with it.
void Machine::settle_joined(const Flight& flight, const wire::ReplyHeader& header, Reply& reply,
                            std::size_t bytes, Instant now) {
  const Flight entry{flight.xid, flight.id, Op::kCreate2, flight.sent_at, 0, flight.in_place};
  const Flight debt{flight.xid, flight.debt, Op::kDelete, flight.sent_at};
  if (header.err != Err::kOk) {
    owe_again(flight.debt, is_final(header.err) ? now : now + options_.retry.cap);
    return settle(entry, header, {}, bytes, now);
  }
  auto& results = std::get<wire::MultiReply>(reply).results;
  if (auto* made = std::get_if<wire::CreateReply>(&results[1].body)) {
    settle(debt, header, {}, 0, now);
    wire::Create2Reply created{std::move(made->path), {}};
    created.stat.czxid = header.zxid;
    return settle(entry, header, std::move(created), bytes, now);
  }
  const Err of_debt = std::get<wire::ErrorReply>(results[0].body).err;
  if (is_culprit(of_debt) && is_final(of_debt)) {
    settle(debt, {header.xid, header.zxid, of_debt}, {}, 0, now);
  } else {
    owe_again(flight.debt, now);
    pay_debts(now);  // Ahead of the entry, which may need the room.
  }
  std::optional<Pending> undone = take_call(flight.id);
  if (!undone) return;
  Outcome outcome;
  outcome.code = Code::kRolledBack;
  outcome.bytes_received = bytes;
  finish(*undone, std::move(outcome), now);
  wake_room_waiters(now);
}

void Machine::settle(const Flight& flight, const wire::ReplyHeader& header, Reply reply,
                     std::size_t bytes, Instant now) {
  // Out of the table first: what follows may submit, and a reference into it would not survive
  // that.
  std::optional<Pending> pending = take_call(flight.id);
  if (!pending) return;
  if (pending->call.watch) settle_watch(*pending, header.err, now);
  bury(*pending);
  if (pending->call.removes && header.err == Err::kOk) {
    const std::string& path = pending->call.path;
    for (WatchTable::Watch& watch : watches_.remove_all(path, *pending->call.removes)) {
      notices_.emplace_back(
          Fired{std::move(watch.watcher), WatchEvent{EventKind::kWatchRemoved, relative(path)}});
    }
  }
  Outcome outcome;
  outcome.ok = header.err == Err::kOk;
  outcome.code = code_of(header.err);
  if (outcome.code == Code::kNoNode) outcome.detail = chroot_hint();
  outcome.effect = effect_of(flight.op, Progress::kAnswered, header.err);
  outcome.reply = std::move(reply);
  outcome.zxid = header.zxid;
  outcome.in_place = outcome.ok && flight.in_place;
  outcome.bytes_received = bytes;
  if (outcome.code == Code::kServerError) {
    outcome.detail = "error " + std::to_string(static_cast<std::int32_t>(header.err));
  }
  finish(*pending, std::move(outcome), now);
  wake_room_waiters(now);
}

void Machine::expect_watch_no_more(const Pending& pending) {
  if (!pending.call.watch) return;
  const auto coming = coming_watches_.find({pending.call.watch->on, pending.call.path});
  if (coming != coming_watches_.end() && --coming->second == 0) coming_watches_.erase(coming);
}

void Machine::settle_watch(Pending& pending, Err err, Instant now) {
  WatchWish& wish = *pending.call.watch;
  const std::string& path = pending.call.path;
  expect_watch_no_more(pending);

  WatchOn on = wish.on;
  bool is_set = err == Err::kOk;
  if (pending.call.op == Op::kExists && err == Err::kNoNode) {
    on = WatchOn::kExists;
    is_set = true;
  }
  if (!is_set) return;
  if (pending.watch_wanted) {
    watches_.add(path, {pending.id, on, wish.kin, std::move(wish.watcher)});
  } else {
    drop_server_watch(on, path, now);
  }
}

}  // namespace latchkey::session
