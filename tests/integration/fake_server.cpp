#include "integration/fake_server.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <chrono>

namespace latchkey::test_support {

using namespace std::chrono_literals;

std::optional<std::string> FakeServer::Guest::receive() {
  std::string bytes;
  while (!stopping_) {
    if (const auto frame = splitter_.next()) return std::string(*frame);
    if (splitter_.broken() || !fd_) return std::nullopt;
    if (!wait_ready(fd_.get(), POLLIN, deadline_in(20ms))) continue;
    bytes.clear();
    if (receive_some(fd_.get(), bytes) == Received::kEnd) return std::nullopt;
    splitter_.feed(bytes);
  }
  return std::nullopt;
}

std::optional<wire::RequestHeader> FakeServer::Guest::next_request() {
  while (const auto frame = receive()) {
    wire::RequestHeader header;
    wire::Reader reader(*frame);
    reader(header);
    if (!reader.ok()) return std::nullopt;
    if (header.op != wire::Op::kPing) return header;
    send(reply_frame(wire::kPingXid, wire::Err::kOk));
  }
  return std::nullopt;
}

bool FakeServer::Guest::send(std::string_view bytes) {
  return send_all(fd_.get(), bytes, deadline_in(5s));
}

bool FakeServer::Guest::greet(std::int64_t fresh_id, std::int32_t timeout_ms) {
  const auto frame = receive();
  if (!frame) return false;
  const auto greeting = wire::decode_connect_request(*frame);
  if (!greeting) return false;
  const std::int64_t asked = greeting->message.session_id;
  std::string answer;
  wire::append_connect_response(answer,
                                {.timeout_ms = timeout_ms,
                                 .session_id = asked == 0 ? fresh_id : asked,
                                 .password = std::string(16, 'p')},
                                greeting->form);
  return send(answer);
}

void FakeServer::Guest::refuse_everything() {
  while (const auto header = next_request()) {
    send(reply_frame(header->xid, wire::Err::kNoNode));
    if (header->op == wire::Op::kCloseSession) return;
  }
}

FakeServer::FakeServer(Script script)
    : script_(std::move(script)),
      address_(loopback(free_port())),
      listener_(listen_on(Endpoint(address_))),
      thread_([this] { run(); }) {}

FakeServer::~FakeServer() {
  stopping_ = true;
  thread_.join();
}

void FakeServer::run() {
  while (!stopping_) {
    if (!wait_ready(listener_.get(), POLLIN, deadline_in(20ms))) continue;
    Fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) continue;
    Guest guest(std::move(fd), stopping_);
    script_(guest, ++connections_);
  }
}

}  // namespace latchkey::test_support
