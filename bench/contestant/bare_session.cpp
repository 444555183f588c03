#include "bare_session.hpp"

#include <fcntl.h>

#include <array>
#include <stdexcept>
#include <utility>

namespace latchkey::bench {

using namespace std::chrono_literals;

BareSession::BareSession(const std::string& endpoint, int timeout_ms)
    : fd_(test_support::connect_to(test_support::Endpoint(endpoint), deadline_in(20s))) {
  if (!fd_) throw std::runtime_error("no connection to " + endpoint);
  test_support::send_at_once(fd_.get());
  ::fcntl(fd_.get(), F_SETFL, 0);
  wire::ConnectRequest request;
  request.timeout_ms = timeout_ms;
  request.password = std::string(16, '\0');
  wire::append_connect_request(unsent_, request, wire::Handshake::kWithReadOnly);
  flush();
  while (true) {
    if (const auto frame = splitter_.next()) {
      const auto greeting = wire::decode_connect_response(*frame);
      if (!greeting || greeting->message.timeout_ms <= 0) throw std::runtime_error("no session");
      return;
    }
    read_some();
  }
}

void BareSession::flush() {
  std::string_view left = unsent_;
  while (!left.empty()) {
    const ssize_t sent = ::send(fd_.get(), left.data(), left.size(), MSG_NOSIGNAL);
    if (sent <= 0) throw std::runtime_error("the server hung up");
    left.remove_prefix(static_cast<std::size_t>(sent));
  }
  unsent_.clear();
}

bool BareSession::read_more() {
  std::array<char, 65'536> bytes;
  const ssize_t count = ::recv(fd_.get(), bytes.data(), bytes.size(), 0);
  if (count <= 0) return false;
  splitter_.feed({bytes.data(), static_cast<std::size_t>(count)});
  return true;
}

void BareSession::read_some() {
  if (!read_more()) throw std::runtime_error("the server hung up");
}

/// Who hangs up in the middle of its answers may take the request back; a member of an ensemble may
/// hang up without an answer to it.
void BareSession::close() {
  const std::int32_t last = add(wire::Op::kCloseSession, wire::Empty{});
  flush();
  do {
    while (const auto reply = take()) {
      if (reply->header.xid == last) return;
    }
  } while (read_more());
}

std::optional<BareSession::Reply> BareSession::take() {
  const auto frame = splitter_.next();
  if (!frame) return std::nullopt;
  Reply reply;
  wire::Reader reader(*frame);
  reader(reply.header);
  reply.body = frame->substr(frame->size() - reader.left());
  return reply;
}

BareSession::Reply BareSession::receive() {
  while (true) {
    if (const auto reply = take()) return *reply;
    read_some();
  }
}

void BareSession::check(const Reply& reply, wire::Err also_good) {
  if (reply.header.err == wire::Err::kOk || reply.header.err == also_good) return;
  throw std::runtime_error("refused: " + std::to_string(static_cast<int>(reply.header.err)));
}

void BareSession::make_path(const std::string& path) {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    call(wire::Op::kCreate, open_node(path.substr(0, end), wire::CreateMode::kPersistent),
         wire::Err::kNodeExists);
    if (end == std::string::npos) return;
  }
}

wire::Create open_node(const std::string& path, wire::CreateMode mode, std::string data) {
  wire::WireAcl open;
  open.permissions = 31;
  open.scheme = "world";
  open.id = "anyone";
  wire::Create request;
  request.path = path;
  request.data = std::move(data);
  request.acl = {open};
  request.mode = mode;
  return request;
}

}  // namespace latchkey::bench
