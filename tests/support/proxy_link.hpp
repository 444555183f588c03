#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "latchkey/deadline.hpp"
#include "support/fault_plan.hpp"
#include "support/sockets.hpp"
#include "support/traffic_log.hpp"

namespace latchkey::test_support {

/// Whether the proxy looks for ZooKeeper's client protocol in what passes. A stream that turns out
/// to be something else (TLS, a four-letter word) is passed on unread in either case.
enum class Framing { kZooKeeper, kOpaque };

/// The directions in which nothing moves for now.
struct Holds {
  bool to_server = false;
  bool to_client = false;
};

enum class Ending { kOrderly, kReset };

/// One client connection of a FaultProxy and its twin to the server: passes messages on, records
/// them and carries out the faults of the plan. Owned and driven by the proxy's loop.
/// Thread safety: one thread at a time.
class ProxyLink {
 public:
  struct Context {
    FaultPlan& plan;
    TrafficLog& log;
    Framing framing;
  };

  ProxyLink(Context context, int number, Fd client, Fd server);

  /// The poll(2) events to wait for on each socket; 0 means not to look at it at all.
  struct Interest {
    short client = 0;
    short server = 0;
  };
  [[nodiscard]] Interest interest(const Holds& holds) const;

  /// When a delayed message is due.
  [[nodiscard]] Instant next_due() const;

  [[nodiscard]] int client_fd() const { return client_.get(); }
  [[nodiscard]] int server_fd() const { return server_.get(); }

  /// Moves what can be moved, given what poll(2) reported.
  void serve(Interest reported, const Holds& holds);

  /// Makes every delayed message due.
  void release();

  /// Closes both sockets now. An orderly ending first takes in what the peers have sent, because
  /// closing a socket with unread bytes would send a reset.
  void close(Ending ending);
  [[nodiscard]] bool closed() const { return !client_; }

 private:
  struct Segment {
    std::string bytes;
    Instant due;
  };

  /// One direction: bytes come in, become messages, and wait in a queue for their time.
  struct Lane {
    std::string inbox;
    std::deque<Segment> queue;
    std::size_t queued_bytes = 0;
    std::uint64_t reads = 0;
    bool ended = false;       ///< The sender has closed its side.
    bool passed_end = false;  ///< We have closed the receiver's side in turn.
    bool greeted = false;     ///< The handshake message has passed.
    bool deaf = false;        ///< A cut is coming: what arrives now is thrown away.
  };

  struct Awaited {
    std::int32_t xid = 0;
    wire::Op op = wire::Op::kNotification;
    std::string path;
    std::optional<int> cut_instead;  ///< The fault that swallows the reply.
  };

  enum class CutWhen { kAnswered, kDelivered };
  struct Cut {
    int fault = 0;
    CutWhen when = CutWhen::kDelivered;
  };

  void take_in(Fd& from, Lane& lane, Direction direction);
  void split(Lane& lane, Direction direction);
  void pass_unread(Lane& lane);
  void on_request(std::string_view frame);
  void on_reply(std::string_view frame);
  [[nodiscard]] Awaited take_awaited(std::int32_t xid);
  void enqueue(Lane& lane, std::string_view bytes, std::chrono::milliseconds delay);
  void flush(Lane& lane, Fd& to);
  void finish_if_due();

  const Context context_;
  const int number_;
  Fd client_;
  Fd server_;
  bool opaque_;
  Lane to_server_;
  Lane to_client_;
  std::deque<Awaited> awaited_;
  std::optional<Cut> cut_;
};

}  // namespace latchkey::test_support
