#pragma once

#include <string>

#include "server/status.hpp"
#include "wire/frame.hpp"

namespace latchkey::server {

/// A service with one client on it, for tests of what words and metrics say.
class StatusRig {
 public:
  StatusRig() : service_(service_options()) {
    service_.start(moment());
    store();
    peer_ = service_.connect({"127.0.0.1:4711", {}}, moment());
    std::string bytes;
    wire::append_connect_request(bytes, {.timeout_ms = 10'000}, wire::Handshake::kWithReadOnly);
    receive(bytes);
    options_.words = {"all"};
  }

  template <class Message>
  void request(wire::Op op, const Message& message) {
    std::string bytes;
    wire::append_frame(bytes, wire::RequestHeader{++xid_, op}, message);
    receive(bytes);
  }

  /// The same, and the disk takes its time.
  template <class Message>
  void request_unstored(wire::Op op, const Message& message) {
    std::string bytes;
    wire::append_frame(bytes, wire::RequestHeader{++xid_, op}, message);
    service_.receive(peer_, bytes, moment());
  }
  void pass(std::chrono::milliseconds span) { passed_ += span; }

  ServerOptions& options() { return options_; }
  CommitStatistics& commits() { return commits_; }
  [[nodiscard]] tree::SessionId session() const {
    return service_.peers().begin()->second->session;
  }
  [[nodiscard]] Status status() const {
    return {.service = service_,
            .options = options_,
            .commits = commits_,
            .around = around_,
            .moment = moment(),
            .started = Instant(),
            .addresses = {"127.0.0.1:2181"},
            .port = 2181,
            .connections = 1,
            .accepted = 1};
  }

 private:
  static tree::ServiceOptions service_options() {
    tree::ServiceOptions options;
    options.secret = [next = std::uint64_t{1} << 40U]() mutable { return next += 4; };
    return options;
  }
  /// 7.5 seconds after the start, at the beginning of 2026.
  [[nodiscard]] tree::Moment moment() const {
    return {Instant(std::chrono::milliseconds(7'500) + passed_),
            1'767'225'600'000 + passed_.count()};
  }
  void receive(const std::string& bytes) {
    service_.receive(peer_, bytes, moment());
    store();
  }
  void store() {
    const auto batch = service_.take_batch();
    if (!batch.empty()) service_.stored(batch.back().zxid, moment());
  }

  tree::Service service_;
  ServerOptions options_;
  CommitStatistics commits_;
  Surroundings around_{"ann", "/home/ann", "/srv"};
  tree::PeerId peer_ = 0;
  std::int32_t xid_ = 0;
  std::chrono::milliseconds passed_{};
};

}  // namespace latchkey::server
