#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "latchkey/deadline.hpp"
#include "support/fault_plan.hpp"
#include "support/proxy_link.hpp"
#include "support/sockets.hpp"
#include "support/traffic_log.hpp"

namespace latchkey::test_support {

enum class Hold { kToServer, kToClient, kBoth };

/// What becomes of a new connection while the server is down: it is reset at once, or kept waiting
/// until the server is back, two seconds at most.
enum class Dial { kOnce, kPatiently };

struct FaultProxyOptions {
  /// Where to listen: empty for a free port on the IPv4 loopback, or any Endpoint text such as
  /// "[::1]:12345" or "unix:/path".
  std::string listen;
  Framing framing = Framing::kZooKeeper;
  Dial dial = Dial::kOnce;
};

/// A small TCP proxy in front of one server that breaks connections at an exact message, and
/// records what passes. With no fault armed it only records.
///
///     FaultProxy proxy(server.connect_string());
///     auto session = open(proxy.connect_string());
///     const int cut = proxy.cut_after_request(Op::kCreate2);
///     mutex.lock(deadline_in(10s));                      // The reply to its create is lost.
///     ASSERT_TRUE(proxy.wait_until_fired(cut));
///     EXPECT_EQ(proxy.log().count(requests_of(Op::kCreate2)), 1);
///
/// The faults (each returns a number for wait_until_fired and disarm):
/// - cut_before_request: the server never sees it, nor anything after it. Whatever was asked
///   before it on the connection is answered and delivered first, then both sides are closed.
/// - cut_after_request: the server sees and answers it, but nothing the client sent after it. The
///   reply is thrown away and both sides are closed.
/// - cut_before_reply: everything the client sends reaches the server until the reply comes back;
///   that is thrown away and both sides are closed.
/// - cut_after_reply: the reply is delivered, and nothing after it.
/// - delay_*: the message and all that follow it on its connection wait; stop_at_*: until
///   release(), so that a test can let something else happen at exactly this point.
///
/// Handshakes match Op::kCreateSession, watch events are replies of Op::kNotification.
/// Once a call of this class has returned it is in force for every byte not yet read.
///
/// Thread safety: any thread.
class FaultProxy {
 public:
  /// `server` is an Endpoint text; it need not be up yet.
  explicit FaultProxy(const std::string& server, const FaultProxyOptions& options = {});
  ~FaultProxy();

  [[nodiscard]] std::string connect_string() const;

  int cut_before_request(const Match& match);
  int cut_after_request(const Match& match);
  int cut_before_reply(const Match& match);
  int cut_after_reply(const Match& match);
  int delay_request(const Match& match, std::chrono::milliseconds delay);
  int delay_reply(const Match& match, std::chrono::milliseconds delay);
  int stop_at_request(const Match& match);
  int stop_at_reply(const Match& match);

  void disarm(int fault);
  void disarm_all();
  [[nodiscard]] int fired(int fault) const { return log_.fired(fault); }
  /// A cut has fired when the connection is closed, a delay when the message has come in.
  [[nodiscard]] bool wait_until_fired(int fault,
                                      Deadline deadline = deadline_in(std::chrono::seconds(60)));

  /// A silent partition: TCP stays up, connections are accepted, but nothing moves in that
  /// direction, not even the news that a side has closed. Holds add up until release().
  void hold(Hold which);
  /// Ends every hold, delay and stop; what waited is delivered.
  void release();

  /// Closes every connection now, in an orderly way or with a reset on both sides.
  void cut_all();
  void reset_all();

  /// New connections are refused by the kernel (existing ones stay), and taken again.
  void refuse();
  void accept();

  /// Where new connections go from now on: a session can be made to move to another server.
  void retarget(const std::string& server);

  [[nodiscard]] int connections_accepted() const;
  [[nodiscard]] std::size_t connections_open() const;

  [[nodiscard]] TrafficLog& log() { return log_; }

 private:
  class Loop;

  int arm(FaultKind kind, const Match& match, std::chrono::milliseconds delay = {});

  TrafficLog log_;
  std::unique_ptr<Loop> loop_;
};

}  // namespace latchkey::test_support
