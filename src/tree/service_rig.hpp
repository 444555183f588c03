#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "base/random.hpp"
#include "tree/input_rule.hpp"
#include "tree/service.hpp"

namespace latchkey::tree::test {

/// A create of a node that everybody may change.
[[nodiscard]] inline wire::Create node(std::string path, std::string data = "x") {
  return {std::move(path), std::move(data), *open_list(), wire::CreateMode::kPersistent};
}
[[nodiscard]] inline wire::Create node(std::string path, wire::CreateMode mode) {
  return {std::move(path), "x", *open_list(), mode};
}

/// A Service with a journal that becomes durable when the test says so, and clients that speak the
/// protocol to it without a network.
class ServiceRig {
 public:
  struct Message {
    wire::ReplyHeader header;
    std::string body;

    template <class T>
    [[nodiscard]] T as() const {
      return wire::decode<T>(body).value_or(T{});
    }
    [[nodiscard]] bool is_notice() const { return header.xid == wire::kNotificationXid; }
  };

  struct Client {
    PeerId peer = 0;
    std::int32_t xid = 0;
    wire::ConnectResponse session;
    bool greeted = false;
    std::string raw;  ///< Received, not taken apart.
    std::deque<Message> inbox;
    bool closed = false;
    bool reads = true;  ///< It takes what is sent to it.
  };

  explicit ServiceRig(ServiceOptions options = {}) {
    options.secret = [this] { return random_.next(); };
    service = std::make_unique<Service>(std::move(options));
    start();
  }

  /// A second run over what is durable.
  void restart() {
    ServiceOptions options = service->options();
    service = std::make_unique<Service>(std::move(options));
    for (const Service::Stored& entry : durable) {
      LATCHKEY_ASSERT(service->tree().replay(entry.zxid, entry.bytes));
    }
    pending.clear();
    start();
  }

  Moment moment() const { return {Instant{} + now, wall_ms}; }

  /// Everything decided so far becomes durable.
  void sync() {
    gather();
    deliver();
    while (!pending.empty()) {
      durable.insert(durable.end(), pending.begin(), pending.end());
      const std::int64_t zxid = pending.back().zxid;
      pending.clear();
      service->stored(zxid, moment());
      gather();
      deliver();
    }
  }

  /// The disk is done and the clock strikes in the same moment, before anybody is read again.
  void sync_and_strike(std::chrono::milliseconds span) {
    const std::int64_t zxid = pending.back().zxid;
    now += span;
    service->stored(zxid, moment());
    service->tick(moment());
    sync();
  }

  Client& dial(std::string address = "10.0.0.1:1") {
    Client& client = *clients.emplace_back(std::make_unique<Client>());
    const std::string ip = address.substr(0, address.find(':'));
    client.peer = service->connect({address, {{"ip", ip}}, ip}, moment());
    return client;
  }

  void greet(Client& client, int timeout_ms = 4'000, const wire::ConnectResponse& earlier = {},
             std::int64_t seen = 0) {
    std::string frame;
    wire::append_connect_request(
        frame, {0, seen, timeout_ms, earlier.session_id, earlier.password.value_or("")},
        wire::Handshake::kWithReadOnly);
    feed(client, frame);
  }

  /// A client with a durable session.
  Client& open(int timeout_ms = 4'000) {
    Client& client = dial();
    greet(client, timeout_ms);
    sync();
    return client;
  }

  template <class Body>
  std::int32_t ask(Client& client, wire::Op op, const Body& body) {
    std::string frame;
    const std::int32_t xid = op == wire::Op::kPing ? wire::kPingXid : ++client.xid;
    wire::append_frame(frame, wire::RequestHeader{xid, op}, body);
    feed(client, frame);
    return xid;
  }
  template <class Body>
  Message call(Client& client, wire::Op op, const Body& body) {
    ask(client, op, body);
    sync();
    return take(client);
  }

  void feed(Client& client, std::string_view bytes) {
    service->receive(client.peer, bytes, moment());
    deliver();
  }

  void hang_up(Client& client) {
    service->disconnect(client.peer, moment());
    client.closed = true;
  }

  void pass(std::chrono::milliseconds span) {
    now += span;
    wall_ms += span.count();
    service->tick(moment());
    deliver();
  }

  /// The next message; an impossible one if there is none.
  static Message take(Client& client) {
    if (client.inbox.empty()) return {{0, 0, wire::Err{1}}, {}};
    Message message = std::move(client.inbox.front());
    client.inbox.pop_front();
    return message;
  }

  void deliver() {
    gather();
    for (std::vector<PeerId> ready = service->take_ready(); !ready.empty();
         ready = service->take_ready()) {
      for (const PeerId peer : ready) deliver_to(peer);
    }
    for (const auto& client : clients) {
      LATCHKEY_ASSERT(client->closed || is_read_or_woken(*service, client->peer));
    }
  }

  std::unique_ptr<Service> service;
  std::vector<Service::Stored> pending;
  std::vector<Service::Stored> durable;
  std::vector<std::unique_ptr<Client>> clients;
  std::chrono::milliseconds now{1'000'000};
  std::int64_t wall_ms = 1'700'000'000'000;
  bool reads = true;  ///< Clients take what is sent to them, all of them.

 private:
  void start() {
    service->start(moment());
    sync();
  }

  void gather() {
    for (Service::Stored& entry : service->take_batch()) pending.push_back(std::move(entry));
  }

  void deliver_to(PeerId peer) {
    Client* client = nullptr;
    for (const auto& candidate : clients) {
      if (candidate->peer == peer && !candidate->closed) client = candidate.get();
    }
    if (client == nullptr) return;
    if (reads && client->reads) {
      client->raw += service->take_output(peer, moment());
      gather();
      take_apart(*client);
    }
    if (service->closing(peer) != Service::Closing::kNo) hang_up(*client);
  }

  static void take_apart(Client& client) {
    wire::FrameSplitter splitter(std::size_t{64} << 20U);
    splitter.feed(std::exchange(client.raw, {}));
    while (const auto frame = splitter.next()) {
      if (!client.greeted) {
        client.greeted = true;
        client.session = wire::decode_connect_response(*frame)->message;
        continue;
      }
      Message message;
      wire::Reader reader(frame->substr(0, 16));
      reader(message.header);
      message.body = frame->substr(16);
      client.inbox.push_back(std::move(message));
    }
  }

  base::Random random_{1};
};

}  // namespace latchkey::tree::test
