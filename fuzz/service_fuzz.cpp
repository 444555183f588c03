// A whole server without a network, fed by strangers: any bytes from three connections, in any
// pieces, mixed with well-formed requests whose fields are fuzzed, sessions that are taken up again
// or ended, hang-ups, sockets that take nothing for a while, little memory, a journal that lags and
// crashes. Whatever comes, the server must stay whole: what it stores replays to the same tree, and
// so does a snapshot of it; what it sends is frames, no watch outlives its connection, nobody gets
// a session without its password, and whoever is not read from is heard again.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tree/input_rule.hpp"
#include "tree/service.hpp"

namespace latchkey::tree {
namespace {

using wire::Op;

/// Takes the input apart; gives zeros once it is used up.
class Input {
 public:
  explicit Input(std::string_view bytes) : rest_(bytes) {}
  [[nodiscard]] bool empty() const { return rest_.empty(); }
  std::uint8_t byte() {
    if (rest_.empty()) return 0;
    const auto value = static_cast<std::uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return value;
  }
  std::string_view piece() {
    const std::size_t wanted = byte();
    const std::size_t size = std::min(wanted, rest_.size());
    const std::string_view piece = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return piece;
  }
  std::string path() {
    static constexpr std::array<const char*, 8> kPaths = {"/a",
                                                          "/b",
                                                          "/a/x",
                                                          "/a/x/y",
                                                          "/zookeeper/quota/a",
                                                          "/zookeeper/quota/a/zookeeper_limits",
                                                          "/zookeeper/quota/a/zookeeper_stats",
                                                          "/"};
    const std::uint8_t choice = byte();
    if (choice < 200) return kPaths[choice % kPaths.size()];
    return "/" + std::string(piece());
  }

 private:
  std::string_view rest_;
};

class World {
 public:
  World() { begin(); }

  void step(Input& input) {
    const std::uint8_t choice = input.byte();
    PeerId& peer = peers_[choice % peers_.size()];
    switch (choice / 16) {
      case 0: service_->receive(peer, input.piece(), moment_); break;
      case 1: hang_up(peer); break;
      case 2: greet(peer, {0, 0, 4'000, 0, std::string(16, '\0')}); break;
      case 3: store(); break;
      case 4: pass(input.byte()); break;
      case 5: crash(); break;
      case 6: reads_[choice % peers_.size()] = !reads_[choice % peers_.size()]; break;
      case 14: come_back(peer, input); break;
      case 15: service_->expire(known_session(input).session_id, moment_); break;
      default: request(peer, input); break;
    }
    deliver();
  }

  void finish() {
    do {
      store();
      deliver();
      gather();
    } while (!pending_.empty());
    for (const auto& [id, peer] : service_->peers()) check(!peer->in_line);
    for (PeerId& peer : peers_) service_->disconnect(peer, moment_);
    check(service_->tree().watches().size() == 0);
    check_same(service_->tree(), *replayed());
    check_same(service_->tree(), *loaded());
  }

 private:
  static void check(bool condition) {
    if (!condition) std::abort();
  }

  static std::string saved(const Tree& tree) {
    std::string bytes;
    tree.save([&](std::string_view item) { bytes += item; });
    return bytes;
  }

  /// Also in what is known of a tree and not saved.
  void check_same(const Tree& tree, const Tree& other) const {
    check(saved(tree) == saved(other));
    for (const std::int64_t time_ms : {moment_.wall_ms, moment_.wall_ms + 1'000}) {
      check(tree.reapable(time_ms, SIZE_MAX) == other.reapable(time_ms, SIZE_MAX));
    }
    check(tree.nodes().bytes() == other.nodes().bytes());
    tree.nodes().visit([&](std::string_view path, const Node&) {
      check(tree.nodes().count_below(path) == other.nodes().count_below(path));
    });
    for (const auto& [id, session] : tree.sessions()) {
      check(tree.nodes().ephemerals(id) == other.nodes().ephemerals(id));
    }
  }

  [[nodiscard]] std::unique_ptr<Tree> loaded() const {
    auto tree = std::make_unique<Tree>();
    service_->tree().save(
        [&](std::string_view item) { check(static_cast<bool>(tree->load(item))); });
    return tree;
  }

  [[nodiscard]] std::unique_ptr<Tree> replayed() const {
    auto tree = std::make_unique<Tree>();
    for (const Service::Stored& entry : durable_) {
      check(static_cast<bool>(tree->replay(entry.zxid, entry.bytes)));
    }
    // A refusal moves the zxid that is shown without leaving a record.
    tree->show_refusal(service_->tree().applied_zxid());
    return tree;
  }

  void begin() {
    ServiceOptions options;
    options.secret = [this] { return ++secret_ * 0x9E3779B97F4A7C15U; };
    options.max_output_per_peer = 4'096;
    options.max_requests_per_peer = 20;
    options.max_request_bytes = 2'000;
    options.max_buffered = kMostBuffered;
    options.limits.nodes = 200;
    options.authenticate =
        [](std::string_view scheme,
           std::string_view credentials) -> std::optional<std::vector<Identity>> {
      if (scheme != "digest") return std::nullopt;
      return std::vector{Identity{"digest", std::string(credentials)}};
    };
    service_ = std::make_unique<Service>(std::move(options));
    for (const Service::Stored& entry : durable_) {
      check(static_cast<bool>(service_->tree().replay(entry.zxid, entry.bytes)));
    }
    service_->start(moment_);
    store();
    for (PeerId& peer : peers_) peer = service_->connect({"10.0.0.1:1", {}}, moment_);
    unwritten_ = {};
    greetings_ = {};
  }

  void crash() {
    pending_.clear();
    begin();
  }

  void hang_up(PeerId& peer) {
    unwritten_[index_of(peer)] = 0;
    greetings_[index_of(peer)] = {};
    service_->disconnect(peer, moment_);
    peer = service_->connect({"10.0.0.1:1", {{"ip", "10.0.0.1"}}}, moment_);
  }

  void greet(PeerId peer, const wire::ConnectRequest& request) {
    std::string frame;
    wire::append_connect_request(frame, request, wire::Handshake::kWithReadOnly);
    service_->receive(peer, frame, moment_);
  }

  /// One of those that were given out, whether it is still there or not.
  [[nodiscard]] const wire::ConnectResponse& known_session(Input& input) const {
    static const wire::ConnectResponse kNone;
    const std::uint8_t choice = input.byte();
    return known_.empty() ? kNone : known_[choice % known_.size()];
  }

  void come_back(PeerId& peer, Input& input) {
    const wire::ConnectResponse& session = known_session(input);
    const std::int64_t seen = std::int64_t{input.byte()} << 32U;
    wire::ConnectRequest request{0, seen, 4'000, session.session_id, session.password.value_or("")};
    const std::uint8_t how = input.byte();
    if (how % 2 == 0) hang_up(peer);
    if (how % 8 == 0 && !request.password->empty()) {
      request.password->back() ^= 1;
      greetings_[index_of(peer)].guessed = request.session_id;
    }
    greet(peer, request);
  }

  void hear_greeting(std::size_t i, std::string_view frame) {
    const auto reply = wire::decode_connect_response(frame);
    check(reply.has_value());
    const wire::ConnectResponse& session = reply->message;
    if (session.session_id == 0) return;
    check(session.session_id != greetings_[i].guessed);
    known_.push_back(session);
  }

  void gather() {
    for (Service::Stored& entry : service_->take_batch()) pending_.push_back(std::move(entry));
  }

  void store() {
    for (gather(); !pending_.empty(); gather()) {
      const std::int64_t zxid = pending_.back().zxid;
      for (Service::Stored& entry : pending_) durable_.push_back(std::move(entry));
      pending_.clear();
      service_->stored(zxid, moment_);
    }
  }

  void pass(std::uint8_t units) {
    moment_.now += std::chrono::milliseconds(100) * units;
    moment_.wall_ms += 100 * units;
    service_->tick(moment_);
  }

  template <class Body>
  void send(PeerId peer, Op op, const Body& body) {
    std::string frame;
    wire::append_frame(frame, wire::RequestHeader{++xid_, op}, body);
    service_->receive(peer, frame, moment_);
  }

  wire::Create create(Input& input) {
    return {input.path(), std::string(input.piece()), *open_list(),
            static_cast<wire::CreateMode>(input.byte() % 8)};
  }

  /// Operations of every kind that a multi may have, and under names that it may not: a multi
  /// inside of one, among others.
  wire::Multi multi(Input& input) {
    wire::Multi all;
    for (std::size_t left = input.byte() % 6; left > 0; --left) {
      const std::uint8_t kind = input.byte();
      switch (kind % 6) {
        case 0: all.ops.push_back({Op::kCreate, create(input)}); break;
        case 1: all.ops.push_back({Op::kDelete, wire::PathVersion{input.path(), -1}}); break;
        case 2:
          all.ops.push_back({Op::kSetData, wire::SetData{input.path(), "m", input.byte()}});
          break;
        case 3: all.ops.push_back({Op::kCheck, wire::PathVersion{input.path(), 0}}); break;
        case 4: all.ops.push_back({Op::kGetData, wire::PathWatch{input.path(), false}}); break;
        default:
          all.ops.push_back({kind < 128 ? Op::kMulti : static_cast<Op>(input.byte()),
                             wire::PathVersion{input.path(), -1}});
      }
    }
    return all;
  }

  static wire::WatcherType watcher_type(Input& input) {
    return static_cast<wire::WatcherType>(input.byte() % 5);
  }

  void rarer_request(PeerId peer, std::uint8_t kind, Input& input) {
    switch (kind % 3) {
      case 0:
        return send(peer, Op::kMultiRead,
                    wire::Multi{{{Op::kGetData, wire::PathWatch{input.path(), false}},
                                 {Op::kGetChildren, wire::PathWatch{input.path(), false}}}});
      case 1:
        return send(peer, Op::kSetWatches2,
                    wire::SetWatches2{input.byte(),
                                      {input.path()},
                                      {input.path()},
                                      {input.path()},
                                      {input.path()},
                                      {input.path()}});
      default:
        return send(peer, Op::kCheckWatches,
                    wire::PathWatcherType{input.path(), watcher_type(input)});
    }
  }

  void request(PeerId peer, Input& input) {
    const std::uint8_t kind = input.byte();
    if (kind >= 208) return rarer_request(peer, kind, input);
    switch (kind % 16) {
      case 0: return send(peer, Op::kCreate, create(input));
      case 1: return send(peer, Op::kCreateContainer, create(input));
      case 2: return send(peer, Op::kDelete, wire::PathVersion{input.path(), -1});
      case 3:
        return send(peer, Op::kSetData,
                    wire::SetData{input.path(), std::string(input.piece()), -1});
      case 4: return send(peer, Op::kExists, wire::PathWatch{input.path(), true});
      case 5: return send(peer, Op::kGetChildren2, wire::PathWatch{input.path(), true});
      case 6:
        return send(
            peer, Op::kAddWatch,
            wire::AddWatch{input.path(), static_cast<wire::AddWatchMode>(input.byte() % 3)});
      case 7:
        return send(peer, Op::kRemoveWatches,
                    wire::PathWatcherType{input.path(), watcher_type(input)});
      case 8: return send(peer, input.byte() % 8 == 0 ? Op::kMultiRead : Op::kMulti, multi(input));
      case 9:
        return send(peer, Op::kCreateTtl,
                    wire::CreateTtl{input.path(),
                                    {},
                                    *open_list(),
                                    static_cast<wire::CreateMode>(input.byte() % 8),
                                    input.byte()});
      case 10: return send(peer, Op::kSetAcl, wire::SetAcl{input.path(), *read_only_list(), -1});
      case 11: return send(peer, Op::kSync, wire::PathOnly{input.path()});
      case 12:
        return send(peer, Op::kSetWatches,
                    wire::SetWatches{input.byte(), {input.path()}, {input.path()}, {input.path()}});
      case 13:
        return send(peer, Op::kAuth,
                    wire::AuthPacket{0, input.byte() % 2 == 0 ? "digest" : "x", "u:p"});
      case 14: return send(peer, static_cast<Op>(input.byte()), wire::PathOnly{input.path()});
      default: return send(peer, Op::kCloseSession, wire::Empty{});
    }
  }

  [[nodiscard]] std::size_t index_of(PeerId id) const {
    return static_cast<std::size_t>(std::ranges::find(peers_, id) - peers_.begin());
  }

  /// Whose socket takes nothing has one piece of output that is not written.
  void deliver() {
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      if (reads_[i] && unwritten_[i] > 0) take_from(i);
    }
    for (auto ready = service_->take_ready(); !ready.empty(); ready = service_->take_ready()) {
      for (const PeerId id : ready) {
        const std::size_t i = index_of(id);
        if (i == peers_.size()) continue;
        if (unwritten_[i] == 0) take_from(i);
        if (service_->closing(id) == Service::Closing::kNow || may_part(i)) hang_up(peers_[i]);
      }
    }
    for (const PeerId id : peers_) check(test::is_read_or_woken(*service_, id));
    check(service_->buffered_bytes() <= kMostBuffered);
  }

  [[nodiscard]] bool may_part(std::size_t i) const {
    return unwritten_[i] == 0 && service_->closing(peers_[i]) == Service::Closing::kAfterOutput;
  }

  void take_from(std::size_t i) {
    while (true) {
      const std::string output = service_->take_output(peers_[i], moment_);
      unwritten_[i] = 0;
      if (output.empty()) return;
      wire::FrameSplitter splitter(std::size_t{1} << 30U);
      splitter.feed(output);
      std::size_t used = 0;
      while (const auto frame = splitter.next()) {
        used += 4 + frame->size();
        if (!std::exchange(greetings_[i].heard, true)) hear_greeting(i, *frame);
      }
      check(used == output.size());
      if (reads_[i]) continue;
      unwritten_[i] = output.size();
      return service_->left_unwritten(peers_[i], output.size(), moment_);
    }
  }

  static constexpr std::size_t kMostBuffered = 1'500;

  struct Greeting {
    bool heard = false;     ///< The answer to the handshake has come.
    SessionId guessed = 0;  ///< Asked for on this connection with a wrong password.
  };

  std::unique_ptr<Service> service_;
  std::array<PeerId, 3> peers_{};
  std::array<bool, 3> reads_{true, true, true};
  std::array<std::size_t, 3> unwritten_{};
  std::array<Greeting, 3> greetings_{};
  std::vector<wire::ConnectResponse> known_;  ///< Sessions that were given out.
  std::vector<Service::Stored> pending_;
  std::vector<Service::Stored> durable_;
  Moment moment_{Instant{} + std::chrono::hours(1), 1'700'000'000'000};
  std::uint64_t secret_ = 0;
  std::int32_t xid_ = 0;
};

}  // namespace
}  // namespace latchkey::tree

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kMostSteps = 200;
  latchkey::tree::Input input({reinterpret_cast<const char*>(data), size});
  latchkey::tree::World world;
  for (std::size_t i = 0; i < kMostSteps && !input.empty(); ++i) world.step(input);
  world.finish();
  return 0;
}
