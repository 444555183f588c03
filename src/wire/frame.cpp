#include "wire/frame.hpp"

namespace latchkey::wire {
namespace {

/// A connection that once had a long frame does not keep memory for the next one.
constexpr std::size_t kMostKept = 4'096;

}  // namespace

void FrameSplitter::feed(std::string_view bytes) {
  // Everything handed out is dropped in one move, so the buffer stays as large as what is unread.
  if (used_ > 0) {
    buffer_.erase(0, used_);
    used_ = 0;
  }
  if (!broken_) buffer_.append(bytes);
}

std::optional<std::int32_t> FrameSplitter::next_length() const {
  if (waiting().size() < 4) return std::nullopt;
  std::int32_t length = 0;
  Reader(waiting().substr(0, 4))(length);
  return length;
}

bool FrameSplitter::has_whole() const {
  const std::optional<std::int32_t> length = next_length();
  return !broken_ && length && *length >= 0 && static_cast<std::size_t>(*length) <= max_frame_ &&
         waiting().size() - 4 >= static_cast<std::size_t>(*length);
}

std::optional<std::string_view> FrameSplitter::next() {
  if (used_ == buffer_.size() && buffer_.capacity() > kMostKept) {
    std::string().swap(buffer_);  // Assignment would keep the memory.
    used_ = 0;
  }
  const std::optional<std::int32_t> length = next_length();
  if (!length) return std::nullopt;
  if (*length < 0 || static_cast<std::size_t>(*length) > max_frame_) broken_ = true;
  if (!has_whole()) return std::nullopt;
  const std::string_view body = waiting().substr(4, static_cast<std::size_t>(*length));
  used_ += 4 + body.size();
  return body;
}

void append_joined_frame(std::string& out, std::initializer_list<std::string_view> frames) {
  constexpr std::size_t kOpAt = 8;
  constexpr std::size_t kBodyAt = 12;
  append_frame(out, RequestHeader{0, Op::kMulti});
  const std::size_t start = out.size() - kBodyAt;
  for (const std::string_view frame : frames) {
    Op op{};
    Reader(frame.substr(kOpAt))(op);
    if (op == Op::kCreate2) op = Op::kCreate;
    Writer{out}(op, false, Err{-1});
    out += frame.substr(kBodyAt);
  }
  Writer{out}(Op::kError, true, Err{-1});
  write_length(out, start);
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
