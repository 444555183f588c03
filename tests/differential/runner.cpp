#include "differential/runner.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <limits>
#include <stdexcept>
#include <utility>

#include "support/raw_client.hpp"

namespace latchkey::differential {
namespace {

using wire::Err;
using wire::Op;

constexpr std::string_view kSystemNodes[] = {"/", "/zookeeper", "/zookeeper/quota",
                                             "/zookeeper/config"};
constexpr std::int32_t kTimeoutsMs[] = {1, 25'000'000, std::numeric_limits<std::int32_t>::max()};

std::string frame_of(std::int32_t xid, const Request& request, const Names& names) {
  std::string frame;
  const wire::RequestHeader header{xid, request.op};
  if (const auto* garbage = std::get_if<Garbage>(&request.body)) {
    const auto size = static_cast<std::int32_t>(8 + garbage->bytes.size());
    wire::Writer{frame}(size, header);
    return frame + garbage->bytes;
  }
  if (const auto* watches = std::get_if<wire::SetWatches2>(&request.body)) {
    wire::SetWatches2 sent = *watches;
    sent.relative_zxid += names.base();
    if (request.op == Op::kSetWatches) {
      const wire::SetWatches old{sent.relative_zxid, sent.data, sent.exists, sent.children};
      wire::append_frame(frame, header, old);
    } else {
      wire::append_frame(frame, header, sent);
    }
    return frame;
  }
  std::visit(
      [&](const auto& body) {
        if constexpr (!std::is_same_v<std::decay_t<decltype(body)>, Garbage>) {
          wire::append_frame(frame, header, body);
        }
      },
      request.body);
  return frame;
}

/// Whoever prepares the tree, with permission for everything.
class Janitor {
 public:
  explicit Janitor(Endpoint& endpoint) : link_(endpoint.connect()) {
    std::string greeting;
    wire::ConnectRequest request;
    request.timeout_ms = kTimeoutsMs[0];
    request.password = std::string(16, '\0');
    wire::append_connect_request(greeting, request, wire::Handshake::kWithReadOnly);
    link_->send(greeting);
    static_cast<void>(next());
    call(Op::kAuth, wire::AuthPacket{0, "digest", std::string(kSuperCredentials)});
  }

  void clean(Names& names) {
    remove_below("/");
    const std::vector<wire::WireAcl> open = test_support::create_request("/", {}).acl;
    for (const std::string_view path : kSystemNodes) {
      const std::string node(path);
      if (node != "/zookeeper/config") {
        call(Op::kSetAcl, wire::SetAcl{node, open, -1});
        call(Op::kSetData, wire::SetData{node, "", -1});
      }
      const auto stat = wire::decode<wire::StatReply>(call(Op::kExists, wire::PathWatch{node}));
      if (!stat) throw std::runtime_error("the server has no " + node);
      names.set_base(node, stat->stat);
    }
    call(Op::kCloseSession, wire::Empty{});
  }

 private:
  std::string next() {
    const Arrival arrival = link_->receive(Wait::kYes);
    if (arrival.kind != Arrival::Kind::kFrame) throw std::runtime_error("no answer to a janitor");
    return arrival.frame;
  }

  template <class Message>
  std::string call(Op op, const Message& message) {
    std::string frame;
    wire::append_frame(frame, wire::RequestHeader{1, op}, message);
    link_->send(frame);
    constexpr std::size_t kHeaderSize = 16;
    return next().substr(kHeaderSize);
  }

  void remove_below(const std::string& path) {
    const auto list =
        wire::decode<wire::ChildrenReply>(call(Op::kGetChildren, wire::PathWatch{path}));
    if (!list) return;
    for (const std::string& name : list->children) {
      const std::string child = (path == "/" ? path : path + "/") + name;
      remove_below(child);
      if (std::ranges::find(kSystemNodes, child) == std::end(kSystemNodes)) {
        call(Op::kDelete, wire::PathVersion{child, -1});
      }
    }
  }

  std::unique_ptr<Link> link_;
};

struct Actor {
  std::unique_ptr<Link> link;
  std::int64_t session = 0;  ///< 0: none, the next connection opens one.
  std::string password;
  std::int32_t timeout_ms = 0;  ///< What it was opened with.
  int sessions = 0;
  std::deque<std::pair<std::int32_t, Request>> asked;
};

class Play {
 public:
  Play(Endpoint& endpoint, Pace pace) : endpoint_(endpoint), pace_(pace) {}

  Transcript run(const Script& script) {
    Janitor(endpoint_).clean(names_);
    for (std::size_t actor = 0; actor < kActors; ++actor) {
      begin(0);
      attach(actor, 0, wire::Handshake::kWithReadOnly);
    }
    find_base();
    transcript_.steps.clear();
    for (const Step& step : script) take(step);
    if (!script.empty()) finish();
    for (Actor& actor : actors_) {
      if (actor.link) actor.link->send(frame_of(1, {Op::kCloseSession, wire::Empty{}}, names_));
    }
    for (Actor& actor : actors_) {
      if (actor.link) static_cast<void>(actor.link->receive(Wait::kYes));
    }
    return std::move(transcript_);
  }

 private:
  void begin(std::size_t step) {
    transcript_.steps.resize(step + 1);
    step_ = step;
  }

  void write(std::size_t actor, Line line) {
    line.step = step_;
    transcript_.steps.back()[actor].push_back(std::move(line));
  }

  void write(std::size_t actor, std::string text) {
    write(actor, Line{Line::Kind::kConnection, std::move(text)});
  }

  void find_base() {
    Link& link = *actors_[0].link;
    link.send(frame_of(wire::kPingXid, {Op::kPing, wire::Empty{}}, names_));
    wire::ReplyHeader header;
    const Arrival arrival = link.receive(Wait::kYes);
    wire::Reader{arrival.frame}(header);
    names_.set_base(header.zxid);
  }

  void take(const Step& step) {
    const auto* request = std::get_if<Request>(&step.action);
    const bool careful = request == nullptr || ends_connection(step) || request->op == Op::kAuth ||
                         std::holds_alternative<Garbage>(request->body);
    if (pace_ == Pace::kPiledUp && (careful || (!takes_turn(step) && writer_ != step.actor))) {
      settle();
    }
    begin(transcript_.steps.size());
    if (request != nullptr) {
      ask(step, *request);
    } else if (const auto* how = std::get_if<Return>(&step.action)) {
      come_back(step.actor, *how);
    } else {
      ensure_attached(step.actor);
      if (actors_[step.actor].link) {
        actors_[step.actor].link->send(std::get<BadFrame>(step.action).bytes);
        await_end(step.actor);
      }
    }
    if (pace_ == Pace::kStepByStep) {
      barrier();
    } else {
      if (careful) settle();
      collect();
    }
    if (request != nullptr && request->op == Op::kCloseSession) sort_events();
  }

  void finish() {
    if (pace_ == Pace::kPiledUp) settle();
  }

  void settle() {
    endpoint_.settle();
    if (!transcript_.steps.empty()) collect();
    writer_ = kActors;
  }

  /// What has arrived by now.
  void collect() {
    for (std::size_t actor = 0; actor < kActors; ++actor) {
      while (actors_[actor].link && read(actor, Wait::kNo)) {
      }
    }
  }

  void ask(const Step& step, const Request& request) {
    ensure_attached(step.actor);
    Actor& actor = actors_[step.actor];
    if (!actor.link) return;
    std::int32_t xid = static_cast<std::int32_t>(step_) + 1;
    if (request.op == Op::kAuth) xid = wire::kAuthXid;
    if (request.op == Op::kSetWatches || request.op == Op::kSetWatches2) xid = wire::kSetWatchesXid;
    actor.asked.emplace_back(xid, request);
    actor.link->send(frame_of(xid, request, names_));
    if (takes_turn(step)) writer_ = step.actor;
    if (pace_ == Pace::kPiledUp && !ends_connection(step) && request.op != Op::kAuth) return;
    while (actor.link && !actor.asked.empty()) {
      if (!read(step.actor, Wait::kYes)) break;
    }
    if (!actor.link) return;
    const std::vector<Line>& seen = transcript_.steps.back()[step.actor];
    const bool refused = !seen.empty() && (seen.back().err == Err::kAuthFailed ||
                                           seen.back().err == Err::kUnimplemented);
    if (ends_connection(step) || refused) await_end(step.actor);
  }

  /// Reads one frame and writes it down; false if there is none now or ever.
  bool read(std::size_t number, Wait wait) {
    Actor& actor = actors_[number];
    const Arrival arrival = actor.link->receive(wait);
    if (arrival.kind == Arrival::Kind::kNothing) {
      if (wait == Wait::kYes) write(number, "silence");
      return false;
    }
    if (arrival.kind == Arrival::Kind::kClosed) {
      write(number, "closed");
      actor.link.reset();
      actor.asked.clear();
      return false;
    }
    wire::ReplyHeader header;
    wire::Reader reader(arrival.frame);
    reader(header);
    const std::string_view body =
        std::string_view(arrival.frame).substr(arrival.frame.size() - reader.left());
    if (header.xid == wire::kNotificationXid) {
      write_event(number, header, body);
    } else if (header.xid == wire::kPingXid) {
      write(number, Line{Line::Kind::kPing, "ping zxid=" + names_.zxid(header.zxid), Op::kPing,
                         header.err});
    } else if (actor.asked.empty() || actor.asked.front().first != header.xid) {
      write(number, "an answer to nothing, xid " + std::to_string(header.xid));
    } else {
      const Request request = std::move(actor.asked.front().second);
      actor.asked.pop_front();
      write(number,
            Line{Line::Kind::kReply, names_.reply(request, header, body), request.op, header.err});
      if (request.op == Op::kCloseSession && header.err == Err::kOk) actor.session = 0;
    }
    return true;
  }

  void write_event(std::size_t actor, const wire::ReplyHeader& header, std::string_view body) {
    const auto event = wire::decode<wire::WatcherEvent>(body);
    std::string text = "malformed event";
    if (event) {
      text = "event " + std::to_string(static_cast<int>(event->type)) +
             " state=" + std::to_string(event->state) + " " + printable(event->path);
    }
    text += " zxid=" + names_.zxid(header.zxid) +
            " err=" + std::to_string(static_cast<int>(header.err));
    write(actor, Line{Line::Kind::kEvent, std::move(text)});
  }

  void barrier() {
    const std::string ping = frame_of(wire::kPingXid, {Op::kPing, wire::Empty{}}, names_);
    for (Actor& actor : actors_) {
      if (actor.link) actor.link->send(ping);
    }
    for (std::size_t actor = 0; actor < kActors; ++actor) {
      while (actors_[actor].link && read(actor, Wait::kYes)) {
        if (transcript_.steps.back()[actor].back().kind == Line::Kind::kPing) break;
      }
    }
  }

  /// The end of a session removes its nodes in any order.
  void sort_events() {
    for (std::vector<Line>& lines : transcript_.steps.back()) {
      const auto is_event = [](const Line& line) { return line.kind == Line::Kind::kEvent; };
      const auto first = std::find_if(lines.begin(), lines.end(), is_event);
      const auto end = std::find_if_not(first, lines.end(), is_event);
      std::sort(first, end, [](const Line& a, const Line& b) { return a.text < b.text; });
    }
  }

  void await_end(std::size_t actor) {
    while (actors_[actor].link && read(actor, Wait::kYes)) {
    }
  }

  void ensure_attached(std::size_t number) {
    if (actors_[number].link) return;
    if (attach(number, 0, wire::Handshake::kWithReadOnly)) return;
    actors_[number].session = 0;
    attach(number, 0, wire::Handshake::kWithReadOnly);
  }

  void come_back(std::size_t number, Return how) {
    Actor& actor = actors_[number];
    const std::string password = actor.password;
    const std::int64_t session = actor.session;
    std::unique_ptr<Link> old = std::move(actor.link);
    actor.asked.clear();
    if (how != Return::kOverLive) old.reset();
    std::int64_t seen = 0;
    auto form = wire::Handshake::kWithReadOnly;
    switch (how) {
      case Return::kAfterDrop:
      case Return::kOverLive: break;
      case Return::kOldForm: form = wire::Handshake::kOld; break;
      case Return::kWrongPassword: actor.password.assign(16, 'x'); break;
      case Return::kAheadOfServer: seen = names_.base() + 1'000'000'000; break;
      case Return::kUnknownSession: actor.session = 0x1234'5678'9abc; break;
      case Return::kNewSession: actor.session = 0; break;
    }
    attach(number, seen, form);
    if (how != Return::kNewSession) {
      actor.password = password;
      actor.session = session;
    }
    if (old) {
      while (true) {
        const Arrival arrival = old->receive(Wait::kYes);
        write(number, arrival.kind == Arrival::Kind::kFrame    ? "a frame on the old connection"
                      : arrival.kind == Arrival::Kind::kClosed ? kOldConnectionClosed
                                                               : kOldConnectionKept);
        if (arrival.kind != Arrival::Kind::kFrame) break;
      }
    }
  }

  bool attach(std::size_t number, std::int64_t seen, wire::Handshake form) {
    Actor& actor = actors_[number];
    actor.link = endpoint_.connect();
    actor.asked.clear();
    wire::ConnectRequest request;
    request.last_zxid_seen = seen;
    request.timeout_ms = kTimeoutsMs[step_ % std::size(kTimeoutsMs)];
    // More than that is granted by Apache only.
    if (actor.session != 0) request.timeout_ms = std::min(request.timeout_ms, actor.timeout_ms);
    request.session_id = actor.session;
    request.password = actor.session == 0 ? std::string(16, '\0') : actor.password;
    std::string bytes;
    wire::append_connect_request(bytes, request, form);
    actor.link->send(bytes);
    const Arrival arrival = actor.link->receive(Wait::kYes);
    if (arrival.kind != Arrival::Kind::kFrame) {
      write(number, arrival.kind == Arrival::Kind::kClosed ? "closed" : "silence");
      actor.link.reset();
      return false;
    }
    const auto greeting = wire::decode_connect_response(arrival.frame);
    if (!greeting) {
      write(number, "malformed greeting " + printable(arrival.frame));
      actor.link.reset();
      return false;
    }
    const wire::ConnectResponse& response = greeting->message;
    const bool opened = actor.session == 0 && response.session_id != 0;
    if (opened) {
      actor.session = response.session_id;
      actor.password = response.password.value_or(std::string());
      actor.timeout_ms = response.timeout_ms;
      std::string name = "session " + std::to_string(number);
      name += "." + std::to_string(++actor.sessions);
      names_.add_session(actor.session, std::move(name));
    }
    write(number, "attached to " + names_.session(response.session_id) + " for " +
                      std::to_string(response.timeout_ms) + " ms, password of " +
                      std::to_string(response.password.value_or("").size()) + " bytes, version " +
                      std::to_string(response.protocol_version) +
                      (greeting->form == wire::Handshake::kOld ? ", old form" : "") +
                      (greeting->read_only ? ", read only" : ""));
    if (response.session_id != 0) return true;
    await_end(number);
    return false;
  }

  Endpoint& endpoint_;
  const Pace pace_;
  Names names_;
  std::array<Actor, kActors> actors_;
  std::size_t writer_ = kActors;  ///< Who wrote last; kActors: nothing is on the way.
  std::size_t step_ = 0;
  Transcript transcript_;
};

}  // namespace

Transcript play(const Script& script, Endpoint& endpoint, Pace pace) {
  return Play(endpoint, pace).run(script);
}

}  // namespace latchkey::differential
