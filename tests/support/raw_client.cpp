#include "support/raw_client.hpp"

#include <poll.h>

#include <utility>

namespace latchkey::test_support {

RawClient::RawClient(std::string endpoint, Duration patience)
    : endpoint_(std::move(endpoint)), patience_(patience) {}

bool RawClient::dial() {
  splitter_ = wire::FrameSplitter(64U << 20U);
  unsent_.clear();
  fd_ = connect_to(Endpoint(endpoint_), deadline_in(patience_));
  return static_cast<bool>(fd_);
}

std::optional<wire::ConnectResponse> RawClient::connect(int timeout_ms,
                                                        const wire::ConnectResponse& earlier,
                                                        std::int64_t seen_zxid,
                                                        std::int32_t version) {
  if (!dial()) return std::nullopt;
  return greet(timeout_ms, earlier, seen_zxid, version);
}

std::optional<wire::ConnectResponse> RawClient::greet(int timeout_ms,
                                                      const wire::ConnectResponse& earlier,
                                                      std::int64_t seen_zxid,
                                                      std::int32_t version) {
  wire::ConnectRequest request;
  request.protocol_version = version;
  request.timeout_ms = timeout_ms;
  request.last_zxid_seen = seen_zxid;
  request.session_id = earlier.session_id;
  request.password = earlier.password.value_or(std::string(16, '\0'));
  wire::append_connect_request(unsent_, request, wire::Handshake::kWithReadOnly);
  if (!flush()) return std::nullopt;
  const std::optional<std::string> frame = receive_frame();
  if (!frame) return std::nullopt;
  auto greeting = wire::decode_connect_response(*frame);
  if (!greeting) return std::nullopt;
  return std::move(greeting->message);
}

bool RawClient::flush() { return send(std::exchange(unsent_, {})); }

bool RawClient::send(std::string_view bytes) {
  return fd_ && send_all(fd_.get(), bytes, deadline_in(patience_));
}

std::optional<RawClient::Reply> RawClient::receive() {
  const std::optional<std::string> frame = receive_frame();
  if (!frame) return std::nullopt;
  Reply reply;
  wire::Reader reader(*frame);
  reader(reply.header);
  reply.body = frame->substr(frame->size() - reader.left());
  return reply;
}

std::optional<std::string> RawClient::receive_frame() {
  const Deadline deadline = deadline_in(patience_);
  while (fd_) {
    if (const auto frame = splitter_.next()) return std::string(*frame);
    std::string bytes;
    if (splitter_.broken() || !wait_ready(fd_.get(), POLLIN, deadline)) return std::nullopt;
    if (receive_some(fd_.get(), bytes) == Received::kEnd) return std::nullopt;
    splitter_.feed(bytes);
  }
  return std::nullopt;
}

bool RawClient::ended() {
  const Deadline deadline = deadline_in(patience_);
  std::string ignored;
  while (fd_ && wait_ready(fd_.get(), POLLIN, deadline)) {
    if (receive_some(fd_.get(), ignored) == Received::kEnd) return true;
  }
  return !fd_;
}

wire::Create create_request(const std::string& path, wire::CreateMode mode) {
  wire::Create request;
  request.path = path;
  request.data = "";
  wire::WireAcl open;
  open.permissions = 31;
  open.scheme = "world";
  open.id = "anyone";
  request.acl = {open};
  request.mode = mode;
  return request;
}

}  // namespace latchkey::test_support
