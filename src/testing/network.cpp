#include "testing/network.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "testing/sim_host.hpp"
#include "wire/frame.hpp"

namespace latchkey::testing {
namespace {

constexpr std::size_t index(Way way) { return static_cast<std::size_t>(way); }
constexpr Way other(Way way) { return way == Way::kRequest ? Way::kReply : Way::kRequest; }

std::uint32_t length_at(std::string_view bytes, std::size_t at) {
  std::uint32_t length = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    length = (length << 8U) | static_cast<unsigned char>(bytes[at + i]);
  }
  return length;
}

}  // namespace

Network::Network(Timeline& timeline, const WorldOptions& options,
                 const std::vector<Observer*>& observers)
    : timeline_(timeline), options_(options), observers_(observers) {}

Network::Link* Network::find(LinkId id) {
  const auto found = links_.find(id);
  return found == links_.end() ? nullptr : &found->second;
}

Network::Pair& Network::pair(const Process& process, const Server& server) {
  return pairs_[{process.id(), server.index()}];
}

bool Network::is_quiet(LinkId id) const {
  const auto link = links_.find(id);
  return link != links_.end() && std::ranges::all_of(link->second.streams, [](const Stream& one) {
           return one.open && !one.ended && one.chunks.empty();
         });
}

// What the ends do.

LinkId Network::dial(SimHost& host, Process& process, Server& server) {
  const LinkId id = ++last_link_;
  Link& link = links_[id];
  link.host = &host;
  link.process = &process;
  link.server = &server;
  link.pair = &pair(process, server);
  link.streams[index(Way::kReply)].open = true;
  link.streams[index(Way::kRequest)].open = true;
  put(id, link, Way::kRequest, {.kind = Chunk::Kind::kOpen});
  return id;
}

void Network::send(LinkId id, Way way, std::string bytes) {
  Link* link = find(id);
  if (link == nullptr || link->streams[index(way)].ended) return;
  if (way == Way::kRequest && !link->streams[index(way)].open && link->server->is_listening()) {
    // The machine at the other end is up again and knows nothing of this connection.
    return put(id, *link, Way::kReply, {.kind = Chunk::Kind::kClose});
  }
  const Passing passing = inspect(id, *link, way, bytes);
  const bool lost = passing.bytes < bytes.size();
  if (lost) bytes.resize(passing.bytes);
  if (!bytes.empty()) put_bytes(id, *link, way, std::move(bytes), passing);
  if (lost) cut(id);
}

void Network::hang_up(LinkId id, Way from) {
  Link* link = find(id);
  if (link == nullptr) return;
  Stream& inward = link->streams[index(other(from))];
  inward.open = false;
  inward.chunks.clear();
  if (from == Way::kRequest && link->host != nullptr) {
    tell_over(id, link->host->process().is_alive() ? Over::kGivenUp : Over::kAbandoned);
    link->host = nullptr;
  }
  if (!link->streams[index(from)].ended) put(id, *link, from, {.kind = Chunk::Kind::kClose});
  forget_if_over(id);
}

void Network::abandon(LinkId id, Tell server_hears) {
  Link* link = find(id);
  if (link == nullptr) return;
  tell_over(id, Over::kAbandoned);
  link->host = nullptr;
  if (server_hears == Tell::kYes) return hang_up(id, Way::kRequest);
  link->streams[index(Way::kReply)].open = false;
  // What has left the process still arrives; then there is silence.
  link->streams[index(Way::kRequest)].ended = true;
}

void Network::server_ended(const Server& server, Tell clients_hear) {
  for (const LinkId id : links_where([&](const Link& link) { return link.server == &server; })) {
    Link& link = *find(id);
    Stream& requests = link.streams[index(Way::kRequest)];
    requests.open = false;
    requests.chunks.clear();
    requests.scheduled = false;  // The event died with the process.
    if (clients_hear == Tell::kYes && !link.streams[index(Way::kReply)].ended) {
      put(id, link, Way::kReply, {.kind = Chunk::Kind::kClose});
    }
    forget_if_over(id);
  }
}

// Faults.

void Network::cut(LinkId id) {
  for (const Way way : {Way::kRequest, Way::kReply}) {
    Link* link = find(id);
    if (link == nullptr) return;
    Stream& stream = link->streams[index(way)];
    if (stream.ended) continue;
    if (timeline_.chance(500)) {
      // The event for the first of them finds what comes next.
      std::erase_if(stream.chunks, [](const Chunk& c) { return c.kind == Chunk::Kind::kBytes; });
    }
    put(id, *link, way, {.kind = Chunk::Kind::kClose});
  }
}

void Network::set_silence(Process& process, Server& server, bool requests, bool replies) {
  Pair& between = pair(process, server);
  between.silent[index(Way::kRequest)] = requests;
  between.silent[index(Way::kReply)] = replies;
  prepare(between, Fault::kPartition, requests || replies);
  kick(between);
}

void Network::set_refusal(Process& process, Server& server, Refusal refusal) {
  Pair& between = pair(process, server);
  between.refusal = refusal;
  prepare(between, Fault::kRefuse, refusal == Refusal::kOn);
}

void Network::set_delay(Process& process, Server& server, Duration delay) {
  Pair& between = pair(process, server);
  between.delay = delay;
  prepare(between, Fault::kSlow, delay > Duration::zero());
}

void Network::prepare(Pair& pair, Fault fault, bool on) {
  std::erase(pair.waiting, fault);
  if (on) pair.waiting.push_back(fault);
}

void Network::meets(const Link& link, Fault fault) {
  if (std::erase(link.pair->waiting, fault) > 0 && struck) struck(fault, *link.process);
}

bool Network::is_silent(const Link& link, Way way) {
  if (!link.pair->silent[index(way)]) return false;
  meets(link, Fault::kPartition);
  return true;
}

void Network::drop_next(Process& process, Way way, std::vector<wire::Op> ops) {
  rules_.push_back({&process, way, std::move(ops), {}});
}

void Network::hold_next(Process& process, Way way, wire::Op op, Duration span) {
  rules_.push_back({&process, way, {op}, span});
}

void Network::heal_everything() {
  rules_.clear();
  for (auto& [between, state] : pairs_) {
    state = {};
    kick(state);
  }
}

std::vector<LinkId> Network::links_where(base::FunctionRef<bool(const Link&)> fits) const {
  std::vector<LinkId> ids;
  for (const auto& [id, link] : links_) {
    if (fits(link)) ids.push_back(id);
  }
  std::ranges::sort(ids);
  return ids;
}

void Network::kick(const Pair& between) {
  for (const LinkId id : links_where([&](const Link& link) { return link.pair == &between; })) {
    for (const Way way : {Way::kRequest, Way::kReply}) schedule(id, *find(id), way);
  }
}

// Streams.

void Network::put(LinkId id, Link& link, Way way, Chunk chunk, Duration more) {
  Stream& stream = link.streams[index(way)];
  if (chunk.kind == Chunk::Kind::kClose) stream.ended = true;
  if (!stream.open) return;  // Nobody is there to read it.
  meets(link, Fault::kSlow);
  const Duration latency = timeline_.draw(options_.latency.least, options_.latency.most);
  stream.last = std::max(stream.last, timeline_.now() + latency + link.pair->delay + more);
  chunk.at = stream.last;
  stream.chunks.push_back(std::move(chunk));
  schedule(id, link, way);
}

void Network::put_bytes(LinkId id, Link& link, Way way, std::string bytes, const Passing& passing) {
  while (bytes.size() > 1 && timeline_.chance(options_.split_permille)) {
    const auto first = 1 + static_cast<std::size_t>(timeline_.luck().below(bytes.size() - 1));
    put(id, link, way, {.bytes = bytes.substr(0, first)}, passing.hold);
    bytes.erase(0, first);
  }
  put(id, link, way, {.bytes = std::move(bytes), .messages = passing.messages}, passing.hold);
}

void Network::schedule(LinkId id, Link& link, Way way) {
  Stream& stream = link.streams[index(way)];
  if (stream.scheduled || stream.chunks.empty() || is_silent(link, way)) return;
  stream.scheduled = true;
  Process* reader = way == Way::kRequest ? &link.server->process() : link.process;
  // A reader that is dead has to be got rid of all the same.
  if (!reader->is_alive()) reader = nullptr;
  timeline_.at(stream.chunks.front().at, reader, Happens::kDelivery,
               [this, id, way] { deliver(id, way); });
}

void Network::deliver(LinkId id, Way way) {
  Link* link = find(id);
  if (link == nullptr) return;
  Stream& stream = link->streams[index(way)];
  stream.scheduled = false;
  if (stream.chunks.empty() || is_silent(*link, way)) return;
  if (stream.chunks.front().at > timeline_.now()) return schedule(id, *link, way);
  Chunk chunk = std::move(stream.chunks.front());
  stream.chunks.pop_front();
  schedule(id, *link, way);
  timeline_.note(id * 2 + index(way));
  timeline_.note(chunk.bytes);
  if (way == Way::kRequest) {
    arrive_at_server(id, *link, std::move(chunk));
  } else {
    arrive_at_client(id, *link, std::move(chunk));
  }
  forget_if_over(id);
}

void Network::arrive_at_server(LinkId id, Link& link, Chunk chunk) {
  Server& server = *link.server;
  Stream& stream = link.streams[index(Way::kRequest)];
  switch (chunk.kind) {
    case Chunk::Kind::kOpen:
      if (!server.is_listening()) return hang_up(id, Way::kReply);
      if (link.pair->refusal == Refusal::kOn) {
        meets(link, Fault::kRefuse);
        return hang_up(id, Way::kReply);
      }
      put(id, link, Way::kReply, {.kind = Chunk::Kind::kOpen});
      return server.accepted(id);
    case Chunk::Kind::kBytes:
      if (!stream.open) return;
      for (Observer* observer : observers_) observer->on_arrived(id, Way::kRequest, chunk.messages);
      return server.received(id, chunk.bytes);
    case Chunk::Kind::kClose:
      if (!std::exchange(stream.open, false)) return;
      link.streams[index(Way::kReply)].ended = true;
      return server.hung_up(id);
  }
}

void Network::arrive_at_client(LinkId id, Link& link, Chunk chunk) {
  Stream& stream = link.streams[index(Way::kReply)];
  SimHost* host = link.host;
  if (host == nullptr || !stream.open) return;
  switch (chunk.kind) {
    case Chunk::Kind::kOpen: return host->connected(id);
    case Chunk::Kind::kBytes:
      for (Observer* observer : observers_) observer->on_arrived(id, Way::kReply, chunk.messages);
      return host->received(id, chunk.bytes);
    case Chunk::Kind::kClose:
      stream.open = false;
      link.streams[index(Way::kRequest)].ended = true;
      tell_over(id, Over::kHeard);
      link.host = nullptr;
      return host->disconnected(id, "the connection was closed");
  }
}

void Network::tell_over(LinkId id, Over how) {
  for (Observer* observer : observers_) observer->on_over(id, how);
}

void Network::forget_if_over(LinkId id) {
  Link* link = find(id);
  if (link == nullptr) return;
  for (const Stream& stream : link->streams) {
    if (stream.open || !stream.chunks.empty()) return;
  }
  links_.erase(id);
}

// What passes.

Message Network::read_header(LinkId id, Link& link, Way way, std::string_view body) {
  Message message;
  message.way = way;
  message.host = link.host;
  message.link = id;
  message.server = link.server->index();
  if (!std::exchange(link.greeted[index(way)], true)) {
    message.op = wire::Op::kCreateSession;
    message.body = body;
    return message;
  }
  wire::Reader reader(body);
  if (way == Way::kRequest) {
    wire::RequestHeader header;
    reader(header);
    message.xid = header.xid;
    message.op = header.op;
    message.body = body.substr(std::min<std::size_t>(8, body.size()));
    if (header.xid != wire::kPingXid && header.xid != wire::kAuthXid) {
      link.asked.emplace_back(header.xid, header.op);
    }
    return message;
  }
  wire::ReplyHeader header;
  reader(header);
  message.xid = header.xid;
  message.zxid = header.zxid;
  message.err = header.err;
  message.body = body.substr(std::min<std::size_t>(16, body.size()));
  if (header.xid == wire::kNotificationXid) {
    message.op = wire::Op::kNotification;
  } else if (header.xid == wire::kPingXid) {
    message.op = wire::Op::kPing;
  } else if (header.xid == wire::kAuthXid) {
    message.op = wire::Op::kAuth;
  } else if (!link.asked.empty()) {
    message.op = link.asked.front().second;
    link.asked.pop_front();
  }
  return message;
}

const Network::Rule* Network::match(const Link& link, Way way, wire::Op op) const {
  for (const Rule& rule : rules_) {
    if (rule.process != link.process || rule.way != way) continue;
    if (std::ranges::find(rule.ops, op) != rule.ops.end()) return &rule;
  }
  return nullptr;
}

Network::Passing Network::inspect(LinkId id, Link& link, Way way, std::string_view bytes) {
  Passing passing;
  while (passing.bytes + 4 <= bytes.size()) {
    const std::size_t length = length_at(bytes, passing.bytes);
    const Message message = read_header(id, link, way, bytes.substr(passing.bytes + 4, length));
    if (const Rule* rule = match(link, way, message.op)) {
      const Duration span = rule->hold;
      const Fault drop = way == Way::kRequest ? Fault::kDropRequest : Fault::kDropReply;
      if (struck) struck(span == Duration::zero() ? drop : Fault::kHold, *link.process);
      rules_.erase(rules_.begin() + (rule - rules_.data()));
      if (span == Duration::zero()) {
        for (Observer* observer : observers_) observer->on_lost(message);
        return passing;
      }
      passing.hold += span;
    }
    for (Observer* observer : observers_) observer->on_sent(message);
    passing.bytes += 4 + length;
    ++passing.messages;
  }
  passing.bytes = bytes.size();
  return passing;
}

}  // namespace latchkey::testing
