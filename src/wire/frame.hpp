#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "wire/messages.hpp"

namespace latchkey::wire {

/// Writes the length of the frame that begins at `start` and ends `out`.
inline void write_length(std::string& out, std::size_t start) {
  const auto length = static_cast<std::uint32_t>(out.size() - start - 4);
  for (std::size_t i = 0; i < 4; ++i) {
    out[start + i] = static_cast<char>((length >> (8 * (3 - i))) & 0xFFU);
  }
}

/// Appends one frame (length, then each part in turn) to `out`.
///
///     append_frame(out, RequestHeader{7, Op::kDelete}, PathVersion{"/a", -1});
template <class... Parts>
void append_frame(std::string& out, const Parts&... parts) {
  const std::size_t start = out.size();
  out.append(4, '\0');
  Writer writer(out);
  writer(parts...);
  write_length(out, start);
}

/// Appends one multi of requests that have frames of their own already. A create2 becomes a create,
/// which is what 3.8.0 takes there.
void append_joined_frame(std::string& out, std::initializer_list<std::string_view> frames);

/// Writes `xid` into the request frame that begins at `start`: a frame is encoded once and numbered
/// each time it is sent.
inline void write_xid(std::string& out, std::size_t start, std::int32_t xid) {
  for (std::size_t i = 0; i < 4; ++i) {
    out[start + 4 + i] =
        static_cast<char>((static_cast<std::uint32_t>(xid) >> (8 * (3 - i))) & 0xFFU);
  }
}

/// Decodes a whole message; nothing if it is malformed or has bytes left over.
template <class Message>
[[nodiscard]] std::optional<Message> decode(std::string_view bytes) {
  Message message;
  Reader reader(bytes);
  reader(message);
  if (!reader.done()) return std::nullopt;
  return message;
}

/// Cuts a byte stream, fed in pieces of any size, into frames. The length is checked before
/// anything is allocated for it.
/// Thread safety: one thread at a time.
class FrameSplitter {
 public:
  explicit FrameSplitter(std::size_t max_frame) : max_frame_(max_frame) {}

  void feed(std::string_view bytes);

  /// The next whole frame's body, valid until the next call of feed() or next(). Empty optional:
  /// feed more, or, if broken() is true, give up on the stream.
  [[nodiscard]] std::optional<std::string_view> next();

  /// What was fed and not handed out, valid as long: the next frame from its length on, as much of
  /// it as has come.
  [[nodiscard]] std::string_view waiting() const { return std::string_view(buffer_).substr(used_); }

  /// next() would hand out a frame.
  [[nodiscard]] bool has_whole() const;

  /// The stream announced a negative or too large length. Nothing after it can be trusted.
  [[nodiscard]] bool broken() const { return broken_; }

 private:
  /// The length that the next frame announces, if so much of it has come.
  [[nodiscard]] std::optional<std::int32_t> next_length() const;

  std::size_t max_frame_;
  std::string buffer_;
  std::size_t used_ = 0;  ///< Bytes of buffer_ already handed out.
  bool broken_ = false;
};

/// Whether the peer's handshake message carried the trailing read-only byte (3.4 and later do);
/// the answer has to follow suit.
enum class Handshake { kOld, kWithReadOnly };

void append_connect_request(std::string& out, const ConnectRequest& request, Handshake form);
void append_connect_response(std::string& out, const ConnectResponse& response, Handshake form);

template <class Message>
struct Greeting {
  Message message;
  Handshake form = Handshake::kOld;
  bool read_only = false;
};

/// Either form; nothing if the frame is neither.
[[nodiscard]] std::optional<Greeting<ConnectRequest>> decode_connect_request(std::string_view body);
[[nodiscard]] std::optional<Greeting<ConnectResponse>> decode_connect_response(
    std::string_view body);

}  // namespace latchkey::wire
