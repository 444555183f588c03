#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "latchkey/deadline.hpp"
#include "support/sockets.hpp"
#include "wire/frame.hpp"

namespace latchkey::test_support {

/// ZooKeeper's protocol by hand over a blocking socket: for tests of servers and proxies, and as a
/// second client that shares no code with Session above the wire.
///
///     RawClient client(server.connect_string());
///     client.connect(4000);
///     auto reply = client.call(Op::kDelete, PathVersion{"/a", -1});
///     EXPECT_EQ(reply->header.err, Err::kOk);
///
/// It sends no pings, so it is gone after its session time-out unless it is used.
/// Thread safety: one thread at a time.
class RawClient {
 public:
  struct Reply {
    wire::ReplyHeader header;
    std::string body;

    template <class Message>
    [[nodiscard]] std::optional<Message> as() const {
      return wire::decode<Message>(body);
    }
  };

  explicit RawClient(std::string endpoint, Duration patience = std::chrono::seconds(30));

  /// Only the connection. False: there is none to be had.
  bool dial();

  /// Opens a session, or, with an answer of an earlier connect(), attaches to that one again. A
  /// server that has seen less than `seen_zxid` hangs up. Everybody's `version` is 0, but for
  /// base::process_mark().
  /// Nothing: no connection, or it was closed before an answer.
  std::optional<wire::ConnectResponse> connect(int timeout_ms,
                                               const wire::ConnectResponse& earlier = {},
                                               std::int64_t seen_zxid = 0,
                                               std::int32_t version = 0);
  /// The same over the connection that dial() has made.
  std::optional<wire::ConnectResponse> greet(int timeout_ms,
                                             const wire::ConnectResponse& earlier = {},
                                             std::int64_t seen_zxid = 0, std::int32_t version = 0);

  /// Adds a request to the next flush() and returns its xid.
  template <class Message>
  std::int32_t add(wire::Op op, const Message& message) {
    wire::append_frame(unsent_, wire::RequestHeader{++last_xid_, op}, message);
    return last_xid_;
  }

  /// Sends what was added, in one piece.
  bool flush();

  /// The next message from the server. Nothing: the connection ended, or patience did.
  std::optional<Reply> receive();

  /// add, flush and receive.
  template <class Message>
  std::optional<Reply> call(wire::Op op, const Message& message) {
    add(op, message);
    if (!flush()) return std::nullopt;
    return receive();
  }

  /// Waits for the peer to close the connection and throws away what it says before.
  bool ended();

  /// Sends bytes as they are.
  bool send(std::string_view bytes);

  void close() { fd_.reset(); }

 private:
  std::optional<std::string> receive_frame();

  const std::string endpoint_;
  const Duration patience_;
  Fd fd_;
  std::string unsent_;
  wire::FrameSplitter splitter_{64U << 20U};
  std::int32_t last_xid_ = 0;
};

/// A create of an open node, the most common request of all.
[[nodiscard]] wire::Create create_request(const std::string& path, wire::CreateMode mode);

}  // namespace latchkey::test_support
