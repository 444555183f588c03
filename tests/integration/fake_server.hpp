#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "support/sockets.hpp"
#include "wire/frame.hpp"
#include "wire/messages.hpp"

namespace latchkey::test_support {

/// A server that says whatever a test wants, to one connection after the other.
///
///     FakeServer server([](FakeServer::Guest& guest, int connection) {
///       guest.greet();
///       guest.send("nonsense");
///     });
///     auto session = Session::start(server.connect_string());
///
/// The script runs on the server's thread, once for each connection, which is closed when it
/// returns. Thread safety: one thread at a time, except connections(): any thread.
class FakeServer {
 public:
  class Guest {
   public:
    Guest(Fd fd, const std::atomic<bool>& stopping) : fd_(std::move(fd)), stopping_(stopping) {}

    /// The next frame's body. Nothing: the client has gone, or the server is being destroyed.
    std::optional<std::string> receive();
    /// The next request that is no ping; pings are answered on the way.
    std::optional<wire::RequestHeader> next_request();
    /// False: the client has gone.
    bool send(std::string_view bytes);
    /// Takes the client's greeting and accepts the session it names, or `fresh_id` if it has none.
    bool greet(std::int64_t fresh_id = 0x1234, std::int32_t timeout_ms = 10'000);
    /// Says "no such node" to every request until the client goes.
    void refuse_everything();

   private:
    Fd fd_;
    const std::atomic<bool>& stopping_;
    wire::FrameSplitter splitter_{4U << 20U};
  };
  using Script = std::function<void(Guest&, int connection)>;

  explicit FakeServer(Script script);
  ~FakeServer();

  [[nodiscard]] std::string connect_string() const { return address_; }
  [[nodiscard]] int connections() const { return connections_; }

 private:
  void run();

  const Script script_;
  const std::string address_;
  const Fd listener_;
  std::atomic<bool> stopping_ = false;
  std::atomic<int> connections_ = 0;
  std::thread thread_;
};

/// A reply's frame: header and whatever is given after it.
template <class... Parts>
[[nodiscard]] std::string reply_frame(std::int32_t xid, wire::Err err, const Parts&... parts) {
  std::string frame;
  wire::append_frame(frame, wire::ReplyHeader{.xid = xid, .zxid = 1, .err = err}, parts...);
  return frame;
}

}  // namespace latchkey::test_support
