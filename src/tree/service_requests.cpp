#include <algorithm>
#include <utility>

#include "tree/answer_read.hpp"
#include "tree/parse.hpp"
#include "tree/service.hpp"

namespace latchkey::tree {
namespace {

using wire::Err;
using wire::Op;

/// The statistics must not grow with what strangers make up.
bool is_op(Op op) { return op >= Op::kCloseSession && op <= Op::kWhoAmI; }

/// More than any client has to prove. Each may cost as much in every permission list that is made
/// of them, so that many would make a lot out of little (H94).
constexpr std::size_t kMostIdentities = 100;
constexpr std::size_t kMostIdentityBytes = 16'384;

bool fit_one_peer(const std::vector<Identity>& identities) {
  std::size_t bytes = 0;
  for (const Identity& identity : identities) bytes += identity.scheme.size() + identity.id.size();
  return identities.size() <= kMostIdentities && bytes <= kMostIdentityBytes;
}

/// Only to tell a malformed one from one that is refused.
struct Reconfig {
  wire::Buffer joining;
  wire::Buffer leaving;
  wire::Buffer members;
  std::int64_t version = 0;
  template <class Self, class Archive>
  static void fields(Self& self, Archive& archive) {
    archive(self.joining, self.leaving, self.members, self.version);
  }
};

template <class Body>
std::optional<Write> as_write(Op op, std::string_view bytes) {
  std::optional<Body> body = parse<Body>(bytes);
  if (!body) return std::nullopt;
  return Write{op, std::move(*body)};
}

bool is_read_part(const wire::MultiOp& part) {
  return std::holds_alternative<wire::PathWatch>(part.body);
}

std::optional<Write> decode_write(Op op, std::string_view bytes) {
  switch (op) {
    case Op::kCreate:
    case Op::kCreate2:
    case Op::kCreateContainer: return as_write<wire::Create>(op, bytes);
    case Op::kCreateTtl: return as_write<wire::CreateTtl>(op, bytes);
    case Op::kDelete:
    case Op::kCheck: return as_write<wire::PathVersion>(op, bytes);
    case Op::kSetData: return as_write<wire::SetData>(op, bytes);
    case Op::kSetAcl: return as_write<wire::SetAcl>(op, bytes);
    default: break;
  }
  std::optional<Write> multi = as_write<wire::Multi>(op, bytes);
  if (!multi) return std::nullopt;
  for (const wire::MultiOp& part : std::get<wire::Multi>(multi->body).ops) {
    if (is_read_part(part)) return std::nullopt;
  }
  return multi;
}

std::size_t parts_of(const Write& write) {
  const auto* multi = std::get_if<wire::Multi>(&write.body);
  return multi == nullptr ? 0 : multi->ops.size();
}

wire::MultiResult result_of(const Change& change, const wire::WireStat& stat) {
  switch (change.kind) {
    case Change::Kind::kCreate:
      if (Owner::is_container(change.owner) || Owner::is_ttl(change.owner)) {
        return {Op::kCreate2, wire::Create2Reply{change.path, stat}};
      }
      // A create2 inside a multi is answered like a create, as 3.8.0 does.
      return {Op::kCreate, wire::CreateReply{change.path}};
    case Change::Kind::kDelete: return {Op::kDelete, wire::Empty{}};
    case Change::Kind::kSetData: return {Op::kSetData, wire::StatReply{stat}};
    case Change::Kind::kSetAcl:
    case Change::Kind::kCheck: break;
  }
  return {Op::kCheck, wire::Empty{}};
}

wire::MultiReply multi_reply(const Record& record, const std::vector<wire::WireStat>& stats) {
  wire::MultiReply reply;
  reply.results.reserve(record.changes.size());
  for (std::size_t i = 0; i < record.changes.size(); ++i) {
    reply.results.push_back(result_of(record.changes[i], stats[i]));
  }
  return reply;
}

/// Everything before the culprit would have been fine, everything after it was not looked at.
wire::MultiReply refused_multi(std::size_t parts, std::size_t culprit, Err err) {
  wire::MultiReply reply;
  for (std::size_t i = 0; i < parts; ++i) {
    const Err part = i < culprit ? Err::kOk : i == culprit ? err : Err::kRuntimeInconsistency;
    reply.results.push_back({Op::kError, wire::ErrorReply{part}});
  }
  return reply;
}

}  // namespace

void Service::take_request(Peer& peer, std::string_view body, Moment moment) {
  wire::RequestHeader header;
  constexpr std::size_t kHeaderSize = 8;
  if (body.size() < kHeaderSize) return close(peer, Closing::kNow);
  wire::Reader reader(body.substr(0, kHeaderSize));
  reader(header);
  body.remove_prefix(kHeaderSize);
  ++statistics_.requests[is_op(header.op) ? header.op : Op::kError];
  switch (header.op) {
    case Op::kAuth: return take_auth(peer, header, body);
    case Op::kSasl:
      send(peer, wire::ReplyHeader{header.xid, 0, Err::kAuthFailed});
      return close(peer, Closing::kAfterOutput);
    case Op::kCloseSession: return take_close(peer, header, moment);
    case Op::kCreate:
    case Op::kCreate2:
    case Op::kCreateContainer:
    case Op::kCreateTtl:
    case Op::kDelete:
    case Op::kCheck:
    case Op::kSetData:
    case Op::kSetAcl:
    case Op::kMulti: return take_write(peer, header, body, moment);
    case Op::kReconfig:
      if (!parse<Reconfig>(body)) return refuse(peer, header, Err::kMarshallingError, 0, moment);
      return refuse(peer, header, Err::kReconfigDisabled, tree_.spend_zxid(), moment);
    case Op::kSync: break;
    default:
      if (is_read(header.op)) return take_read(peer, header, body, moment);
      // Its answer comes in its turn, and nothing is read after it.
      peer.state = Peer::State::kLeaving;
      refuse(peer, header, Err::kUnimplemented, 0, moment);
      return close(peer, Closing::kAfterOutput);
  }
  const auto sync = parse<wire::PathOnly, NullPath::kIsEmpty>(body);
  if (!sync) return refuse(peer, header, Err::kMarshallingError, 0, moment);
  Turn turn;
  turn.kind = Turn::Kind::kReply;
  turn.peer = peer.id;
  turn.xid = header.xid;
  turn.op = header.op;
  turn.path = sync->path;
  enqueue(std::move(turn), moment);
}

void Service::take_auth(Peer& peer, wire::RequestHeader header, std::string_view body) {
  const std::optional<wire::AuthPacket> packet = parse<wire::AuthPacket>(body);
  if (!packet) return close(peer, Closing::kNow);
  std::optional<std::vector<Identity>> proven;
  if (packet->scheme == "ip") {
    proven.emplace();  // Known from the start.
  } else if (options_.authenticate) {
    proven =
        options_.authenticate(packet->scheme, packet->auth ? *packet->auth : std::string_view());
  }
  if (!proven) {
    send(peer, wire::ReplyHeader{header.xid, 0, Err::kAuthFailed});
    return close(peer, Closing::kAfterOutput);
  }
  std::vector<Identity> all = peer.identities;
  for (Identity& identity : *proven) {
    if (std::ranges::find(all, identity) == all.end()) all.push_back(std::move(identity));
  }
  if (!fit_one_peer(all)) {
    send(peer, wire::ReplyHeader{header.xid, 0, Err::kAuthFailed});
    return close(peer, Closing::kAfterOutput);
  }
  peer.identities = std::move(all);
  send(peer, wire::ReplyHeader{header.xid, 0, Err::kOk});
}

void Service::take_write(Peer& peer, wire::RequestHeader header, std::string_view body,
                         Moment moment) {
  const std::optional<Write> write = decode_write(header.op, body);
  if (!write) return refuse(peer, header, Err::kMarshallingError, tree_.spend_zxid(), moment);
  const std::uint64_t before = tree_.work();
  Verdict verdict = tree_.decide({peer.session, peer.identities}, *write, moment.wall_ms);
  peer.work += tree_.work() - before;
  Turn turn;
  turn.kind = Turn::Kind::kReply;
  turn.peer = peer.id;
  turn.xid = header.xid;
  turn.op = header.op;
  turn.zxid = verdict.zxid;
  turn.err = verdict.err;
  turn.parts = parts_of(*write);
  turn.refused_part = verdict.refused_part;
  turn.record = std::move(verdict.record);
  enqueue(std::move(turn), moment);
}

void Service::refuse(Peer& peer, wire::RequestHeader header, Err err, std::int64_t zxid,
                     Moment moment) {
  Turn turn;
  turn.kind = Turn::Kind::kReply;
  turn.peer = peer.id;
  turn.xid = header.xid;
  turn.op = header.op;
  turn.zxid = zxid;
  turn.err = err;
  enqueue(std::move(turn), moment);
}

void Service::take_close(Peer& peer, wire::RequestHeader header, Moment moment) {
  Turn turn;
  turn.kind = Turn::Kind::kReply;
  turn.peer = peer.id;
  turn.xid = header.xid;
  turn.op = header.op;
  turn.session = peer.session;
  turn.record = tree_.close_session(peer.session, moment.wall_ms);
  // No record: it is running out this very moment, and the reply comes after that.
  if (turn.record) turn.zxid = turn.record->zxid;
  expiry_.remove(peer.session);
  peer.state = Peer::State::kLeaving;
  enqueue(std::move(turn), moment);
}

void Service::reply(Peer& peer, const Turn& turn, const std::vector<wire::WireStat>& stats,
                    Moment moment) {
  const wire::RequestHeader request{turn.xid, turn.op};
  wire::ReplyHeader header{turn.xid, tree_.applied_zxid(), turn.err};
  if (turn.err == Err::kUnimplemented) header.zxid = -1;
  if (turn.op == Op::kMulti && turn.err != Err::kMarshallingError) {
    header.err = Err::kOk;
    send(peer, header,
         turn.record ? multi_reply(*turn.record, stats)
                     : refused_multi(turn.parts, turn.refused_part, turn.err));
  } else if (turn.err != Err::kOk) {
    ++statistics_.refused;
    send(peer, header);
  } else {
    switch (turn.op) {
      case Op::kCreate:
        send(peer, header, wire::CreateReply{turn.record->changes.front().path});
        break;
      case Op::kCreate2:
      case Op::kCreateContainer:
      case Op::kCreateTtl:
        send(peer, header, wire::Create2Reply{turn.record->changes.front().path, stats.front()});
        break;
      case Op::kSetData:
      case Op::kSetAcl:
      case Op::kCheck: send(peer, header, wire::StatReply{stats.front()}); break;
      case Op::kSync: send(peer, header, wire::SyncReply{turn.path}); break;
      default: send(peer, header); break;
    }
  }
  count_answer(peer, request, turn.since, moment, statistics_.writes);
  if (turn.op == Op::kCloseSession) {
    if (turn.record) ++statistics_.sessions_closed;
    detach(peer);
  }
}

void Service::count_answer(Peer& peer, wire::RequestHeader header, Instant since, Moment moment,
                           Latency& latency) {
  latency.add(moment.now - since);
  peer.statistics.latency.add(moment.now - since);
  peer.statistics.last_op = header.op;
  peer.statistics.last_xid = header.xid;
  peer.statistics.last_zxid = tree_.applied_zxid();
  peer.statistics.last_response = moment.now;
  peer.statistics.last_latency_ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(moment.now - since).count();
}

}  // namespace latchkey::tree
