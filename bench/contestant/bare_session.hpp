#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report.hpp"
#include "support/sockets.hpp"
#include "wire/frame.hpp"

namespace latchkey::bench {

/// A session of ZooKeeper's protocol on a blocking socket and nothing else: no thread, no ping, no
/// reconnection. What is added leaves with the next flush(), in one piece. Errors are thrown.
///
///     BareSession session("127.0.0.1:2181");
///     session.add(wire::Op::kDelete, wire::PathVersion{"/a", -1});
///     session.flush();
///     auto reply = session.receive();
///
/// Thread safety: one thread at a time.
class BareSession {
 public:
  struct Reply {
    wire::ReplyHeader header;
    std::string_view body;  ///< Good until the next call.
  };

  explicit BareSession(const std::string& endpoint, int timeout_ms = 30'000);

  template <class Message>
  std::int32_t add(wire::Op op, const Message& message) {
    wire::append_frame(unsent_, wire::RequestHeader{++last_xid_, op}, message);
    return last_xid_;
  }
  void flush();

  /// Waits for the next reply.
  Reply receive();
  /// The next reply, if it has been read from the socket already.
  std::optional<Reply> take();
  /// One recv(2), which waits if there is nothing. Throws at the end of the connection.
  void read_some();

  /// add, flush and receive; throws if the server refuses, unless with `also_good`.
  template <class Message>
  Reply call(wire::Op op, const Message& message, wire::Err also_good = wire::Err::kOk) {
    add(op, message);
    flush();
    const Reply reply = receive();
    check(reply, also_good);
    return reply;
  }

  static void check(const Reply& reply, wire::Err also_good = wire::Err::kOk);

  /// Ends the session, and waits until the server has.
  void close();

  /// Makes a path and what is above it.
  void make_path(const std::string& path);

  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  /// False: the connection has ended.
  bool read_more();

  test_support::Fd fd_;
  std::string unsent_;
  wire::FrameSplitter splitter_{64U << 20U};
  std::int32_t last_xid_ = 0;
};

/// Create of an open node.
[[nodiscard]] wire::Create open_node(const std::string& path, wire::CreateMode mode,
                                     std::string data = "");

}  // namespace latchkey::bench
