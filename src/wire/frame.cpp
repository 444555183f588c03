#include "wire/frame.hpp"

namespace latchkey::wire {

void FrameSplitter::feed(std::string_view bytes) {
  // Everything handed out is dropped in one move, so the buffer stays as large as what is unread.
  if (used_ > 0) {
    buffer_.erase(0, used_);
    used_ = 0;
  }
  if (!broken_) buffer_.append(bytes);
}

std::optional<std::string_view> FrameSplitter::next() {
  const std::string_view unread = std::string_view(buffer_).substr(used_);
  if (broken_ || unread.size() < 4) return std::nullopt;
  std::int32_t length = 0;
  Reader(unread.substr(0, 4))(length);
  if (length < 0 || static_cast<std::size_t>(length) > max_frame_) {
    broken_ = true;
    return std::nullopt;
  }
  const auto size = static_cast<std::size_t>(length);
  if (unread.size() - 4 < size) return std::nullopt;
  used_ += 4 + size;
  return unread.substr(4, size);
}

namespace {

template <class Message>
void append_greeting(std::string& out, const Message& message, Handshake form) {
  if (form == Handshake::kWithReadOnly) {
    append_frame(out, message, false);
  } else {
    append_frame(out, message);
  }
}

template <class Message>
std::optional<Greeting<Message>> decode_greeting(std::string_view body) {
  Greeting<Message> greeting;
  Reader reader(body);
  reader(greeting.message);
  if (reader.ok() && reader.left() == 1) {
    greeting.form = Handshake::kWithReadOnly;
    reader(greeting.read_only);
  }
  if (!reader.done()) return std::nullopt;
  return greeting;
}

}  // namespace

void append_connect_request(std::string& out, const ConnectRequest& request, Handshake form) {
  append_greeting(out, request, form);
}

void append_connect_response(std::string& out, const ConnectResponse& response, Handshake form) {
  append_greeting(out, response, form);
}

std::optional<Greeting<ConnectRequest>> decode_connect_request(std::string_view body) {
  return decode_greeting<ConnectRequest>(body);
}

std::optional<Greeting<ConnectResponse>> decode_connect_response(std::string_view body) {
  return decode_greeting<ConnectResponse>(body);
}

}  // namespace latchkey::wire
