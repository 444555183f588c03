#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "session/machine.hpp"

/// For the tests of Machine: the machine, its driver, a scripted server and the time, all in the
/// test's hands.
namespace latchkey::session {

/// What a call's owner has heard.
struct Told {
  int times = 0;
  Outcome outcome;
};

struct Sent {
  CallId id = 0;
  std::shared_ptr<Told> told;

  [[nodiscard]] int times() const { return told->times; }
  [[nodiscard]] bool ok() const { return told->times == 1 && told->outcome.ok; }
  [[nodiscard]] Code code() const { return told->outcome.code; }
  [[nodiscard]] Effect effect() const { return told->outcome.effect; }
};

/// A request as the server sees it.
struct Request {
  std::int32_t xid = 0;
  wire::Op op = wire::Op::kError;
  std::string body;

  template <class Body>
  [[nodiscard]] Body as() const {
    const auto decoded = wire::decode<Body>(body);
    LATCHKEY_ASSERT(decoded);
    return *decoded;
  }
};

template <class Body>
Call make_call(wire::Op op, const Body& body) {
  Call call{.op = op, .path = body.path};
  wire::append_frame(call.frame, wire::RequestHeader{0, op}, body);
  return call;
}

inline Call get_call(const std::string& path, Watcher watcher = {}) {
  Call call = make_call(wire::Op::kGetData, wire::PathWatch{path, bool(watcher)});
  call.resend = Resend::kWithinPolicy;
  if (watcher) call.watch = WatchWish{.on = WatchOn::kData, .watcher = std::move(watcher)};
  return call;
}

inline Call exists_call(const std::string& path, Watcher watcher) {
  Call call = make_call(wire::Op::kExists, wire::PathWatch{path, true});
  call.watch = WatchWish{.on = WatchOn::kData, .watcher = std::move(watcher)};
  return call;
}

inline Call children_call(const std::string& path, Watcher watcher) {
  Call call = make_call(wire::Op::kGetChildren2, wire::PathWatch{path, true});
  call.watch = WatchWish{.on = WatchOn::kChildren, .watcher = std::move(watcher)};
  return call;
}

inline Call add_watch_call(const std::string& path, WatchOn on, Watcher watcher) {
  const auto mode = on == WatchOn::kPersistent ? wire::AddWatchMode::kPersistent
                                               : wire::AddWatchMode::kPersistentRecursive;
  Call call = make_call(wire::Op::kAddWatch, wire::AddWatch{path, mode});
  call.watch = WatchWish{.on = on, .watcher = std::move(watcher)};
  return call;
}

inline Call create_call(const std::string& path) {
  return make_call(wire::Op::kCreate2, wire::Create{path, "", {}, wire::CreateMode::kEphemeral});
}

inline Call sync_call() { return make_call(wire::Op::kSync, wire::PathOnly{"/"}); }

/// Writes down what a member hears.
struct Listener : Member {
  void on_heartbeat() override { story.emplace_back("heartbeat"); }
  void on_lease_over() override { story.emplace_back("lease over"); }
  void on_session_over(Code code) override {
    story.emplace_back("session over: " + std::string(name(code)));
  }
  std::vector<std::string> story;
};

class Rig {
 public:
  static constexpr std::int64_t kSession = 0x1234;
  static constexpr std::chrono::seconds kTimeout{10};

  explicit Rig(MachineOptions options = {}, std::uint64_t seed = 1)
      : view(std::make_shared<View>()), machine(std::move(options), seed, view) {
    hooks_.on_state = [this](SessionState state) {
      states.push_back(state);
      story.emplace_back(name(state));
    };
    hooks_.log = [this](LogLevel, const std::string& text) { logs.push_back(text); };
    machine.advance(now);
  }

  // Time.

  void start() {
    machine.start(now);
    settle();
  }
  /// Lets the time pass in one leap, as if the process had been stopped in between.
  void leap(Duration span) {
    now += span;
    machine.advance(now);
    machine.tick(now);
    settle();
  }
  /// Lets the time pass and ticks whenever the machine wants to.
  void pass(Duration span, const std::function<void()>& after_tick = {}) {
    const Instant end = now + span;
    while (machine.next_wake() <= end) {
      now = std::max(now, machine.next_wake());
      machine.advance(now);
      machine.tick(now);
      settle();
      LATCHKEY_ASSERT(machine.next_wake() > now);  // Otherwise the driver would spin.
      if (after_tick) after_tick();
    }
    now = end;
    machine.advance(now);
  }

  // The driver.

  /// Delivers, and takes what the machine wants done.
  void settle() {
    while (machine.has_news()) {
      machine.deliver(hooks_);
      if (machine.take_hang_up()) {
        ++hang_ups;
        up_ = false;
        dialed.reset();
        server_ = wire::FrameSplitter(64U << 20U);
        requests.clear();
      }
      if (const auto endpoint = machine.take_dial()) {
        LATCHKEY_ASSERT(!up_);
        dialed = endpoint;
        dials.push_back(*endpoint);
      }
      const std::string output = machine.take_output();
      LATCHKEY_ASSERT(output.empty() || up_);
      read(output);
    }
  }
  /// The transport is there; the machine's greeting ends up in `greeting`.
  void up() {
    // After a pause between two tries, if there is one.
    for (int i = 0; i < 3 && !dialed; ++i) leap(machine.next_wake() - now);
    LATCHKEY_ASSERT(dialed);
    dialed.reset();
    up_ = true;
    greeting.reset();
    server_ = wire::FrameSplitter(64U << 20U);
    machine.transport_up(now);
    settle();
    LATCHKEY_ASSERT(greeting);
  }
  void down(const std::string& why = "cut", Code kind = Code::kUnreachable) {
    machine.transport_down(why, kind, now);
    settle();
    tick_if_due();
  }
  void feed(std::string_view bytes) {
    machine.received(bytes, now);
    settle();
    tick_if_due();
  }
  [[nodiscard]] bool is_up() const { return up_; }

  // The server.

  void greet(std::chrono::milliseconds timeout = kTimeout, std::int64_t session = kSession) {
    std::string bytes;
    wire::append_connect_response(
        bytes, {0, static_cast<std::int32_t>(timeout.count()), session, std::string(16, 'p')},
        wire::Handshake::kWithReadOnly);
    feed(bytes);
  }
  void accept(std::chrono::milliseconds timeout = kTimeout) {
    up();
    greet(timeout);
  }
  /// A machine with a session.
  void open(std::chrono::milliseconds timeout = kTimeout) {
    start();
    accept(timeout);
  }
  /// The connection breaks; the machine dials, after its pause if there is one.
  void cut() {
    down();
    if (!dialed) leap(machine.next_wake() - now);
    LATCHKEY_ASSERT(dialed);
  }
  void reconnect() {
    cut();
    accept();
  }

  template <class... Parts>
  void send(std::int32_t xid, std::int64_t zxid, wire::Err err, const Parts&... parts) {
    std::string bytes;
    wire::append_frame(bytes, wire::ReplyHeader{xid, zxid, err}, parts...);
    feed(bytes);
  }
  void event(wire::EventType type, const std::string& path) {
    send(wire::kNotificationXid, -1, wire::Err::kOk, wire::WatcherEvent{type, 3, path});
  }
  /// Takes the oldest request; asserts that there is one.
  Request take() {
    LATCHKEY_ASSERT(!requests.empty());
    Request request = std::move(requests.front());
    requests.pop_front();
    return request;
  }
  /// Answers the oldest request the way a server would.
  Request answer(wire::Err err = wire::Err::kOk, std::int64_t zxid = 0) {
    Request request = take();
    feed(reply_to(request, err, zxid == 0 ? ++zxid_ : zxid));
    return request;
  }
  void answer_all() {
    while (!requests.empty()) answer();
  }
  static std::string reply_to(const Request& request, wire::Err err, std::int64_t zxid) {
    using wire::Op;
    std::string bytes;
    const wire::ReplyHeader header{request.xid, zxid, err};
    const bool ok = err == wire::Err::kOk;
    const wire::Op op = ok ? request.op : Op::kError;
    switch (op) {
      case Op::kCreate2:
        wire::append_frame(bytes, header, wire::Create2Reply{request.as<wire::Create>().path, {}});
        break;
      case Op::kExists: wire::append_frame(bytes, header, wire::StatReply{}); break;
      case Op::kGetData: wire::append_frame(bytes, header, wire::GetDataReply{"data", {}}); break;
      case Op::kGetChildren2:
        wire::append_frame(bytes, header, wire::Children2Reply{{"a"}, {}});
        break;
      case Op::kSync: wire::append_frame(bytes, header, wire::SyncReply{"/"}); break;
      case Op::kAddWatch: wire::append_frame(bytes, header, wire::ErrorReply{}); break;
      case Op::kMulti: wire::append_frame(bytes, header, done(request.as<wire::Multi>())); break;
      default: wire::append_frame(bytes, header); break;
    }
    return bytes;
  }
  /// One part of the transaction cannot be, so none is carried out.
  static std::string refusal_of(const Request& multi, std::size_t culprit, wire::Err err,
                                std::int64_t zxid) {
    wire::MultiReply reply;
    for (std::size_t i = 0; i < multi.as<wire::Multi>().ops.size(); ++i) {
      const wire::Err behind = i < culprit ? wire::Err::kOk : wire::Err::kRuntimeInconsistency;
      reply.results.push_back({wire::Op::kError, wire::ErrorReply{i == culprit ? err : behind}});
    }
    std::string bytes;
    wire::append_frame(bytes, wire::ReplyHeader{multi.xid, zxid, wire::Err::kOk}, reply);
    return bytes;
  }
  [[nodiscard]] std::vector<wire::Op> ops() const {
    std::vector<wire::Op> result;
    for (const Request& request : requests) result.push_back(request.op);
    return result;
  }

  // Users of the session.

  Sent submit(Call call) {
    Sent sent{.told = std::make_shared<Told>()};
    call.done = completion(sent);
    sent.id = machine.submit(std::move(call), now);
    settle();
    return sent;
  }
  Sent owe_delete(const std::string& path, const std::optional<LastWord>& word = {}) {
    Sent sent{.told = std::make_shared<Told>()};
    machine.owe_delete(path, completion(sent), now, Linger::kYes, word);
    settle();
    return sent;
  }
  Sent close(Duration patience = std::chrono::seconds(2)) {
    Sent sent{.told = std::make_shared<Told>()};
    machine.close(now + patience, completion(sent), now);
    settle();
    return sent;
  }
  Sent await_room(Duration patience) {
    Sent sent{.told = std::make_shared<Told>()};
    machine.await_room(now + patience, completion(sent), now);
    settle();
    return sent;
  }
  Sent await_connection(Duration patience) {
    Sent sent{.told = std::make_shared<Told>()};
    machine.await_connection(now + patience, completion(sent), now);
    settle();
    return sent;
  }
  Sent add_credential(const std::string& secret, Duration patience = std::chrono::seconds(100)) {
    Sent sent{.told = std::make_shared<Told>()};
    machine.add_credential({"digest", secret}, completion(sent), now + patience, now);
    settle();
    return sent;
  }
  static Completion completion(const Sent& sent) {
    return [told = sent.told](Outcome&& outcome) {
      ++told->times;
      told->outcome = std::move(outcome);
    };
  }
  /// A watcher that writes its events into `events`.
  Watcher watcher(const std::string& who = "") {
    return [this, who](const WatchEvent& event) {
      events.push_back(who + std::string(name(event.kind)) + " " + event.path);
      story.push_back(events.back());
    };
  }

  Instant now{std::chrono::seconds(1'000)};
  std::shared_ptr<View> view;
  Machine machine;
  std::optional<wire::ConnectRequest> greeting;
  std::deque<Request> requests;  ///< Unanswered, oldest first; pings and restores too.
  std::optional<std::size_t> dialed;
  std::vector<std::size_t> dials;
  int hang_ups = 0;
  std::vector<SessionState> states;
  std::vector<std::string> logs;
  std::vector<std::string> events;
  std::vector<std::string> story;  ///< States and events, in order.

 private:
  static wire::MultiReply done(const wire::Multi& multi) {
    wire::MultiReply reply;
    for (const wire::MultiOp& one : multi.ops) {
      if (const auto* create = std::get_if<wire::Create>(&one.body)) {
        reply.results.push_back({wire::Op::kCreate, wire::CreateReply{create->path}});
      } else if (one.op == wire::Op::kSetData) {
        reply.results.push_back({one.op, wire::StatReply{}});
      } else {
        reply.results.push_back({one.op, wire::Empty{}});
      }
    }
    return reply;
  }

  void tick_if_due() {
    if (machine.next_wake() > now) return;
    machine.tick(now);
    settle();
  }

  void read(const std::string& output) {
    server_.feed(output);
    while (const auto frame = server_.next()) {
      if (!greeting) {
        const auto decoded = wire::decode_connect_request(*frame);
        LATCHKEY_ASSERT(decoded);
        LATCHKEY_ASSERT(!decoded->read_only);
        greeting = decoded->message;
        continue;
      }
      wire::RequestHeader header;
      wire::Reader reader(*frame);
      reader(header);
      LATCHKEY_ASSERT(reader.ok());
      requests.push_back({header.xid, header.op, std::string(frame->substr(8))});
    }
  }

  Machine::Hooks hooks_;
  bool up_ = false;
  wire::FrameSplitter server_{64U << 20U};
  std::int64_t zxid_ = 100;
};

}  // namespace latchkey::session
