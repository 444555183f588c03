#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace latchkey::differential {

/// kNo: only what has arrived; with it kNothing means nothing yet.
enum class Wait : std::uint8_t { kNo, kYes };

struct Arrival {
  enum class Kind : std::uint8_t { kFrame, kClosed, kNothing };
  Kind kind = Kind::kNothing;
  std::string frame;
};

/// One connection to a server, as its client sees it. Destroying it drops the connection.
/// Thread safety: one thread at a time.
class Link {
 public:
  virtual ~Link() = default;
  virtual void send(std::string_view bytes) = 0;
  /// The next frame, or that there will be none. kNothing after Wait::kYes: the server stays silent
  /// although it had time.
  virtual Arrival receive(Wait wait) = 0;
};

/// A server under test.
///
///     auto link = endpoint.connect();
///     link->send(frame);
///     Arrival arrival = link->receive(Wait::kYes);
///
/// Thread safety: one thread at a time.
class Endpoint {
 public:
  virtual ~Endpoint() = default;
  [[nodiscard]] virtual std::unique_ptr<Link> connect() = 0;
  /// Everything sent so far has had its effect when this returns, if the server is one that can be
  /// told to hurry; others answer when they are waited for.
  virtual void settle() {}
};

/// A server behind a socket: "127.0.0.1:2181".
[[nodiscard]] std::unique_ptr<Endpoint> socket_endpoint(std::string address);

/// Apache's, set up for play(). One for all scripts: play() cleans up, and the JVM is slow to
/// start.
[[nodiscard]] Endpoint& apache_endpoint();

}  // namespace latchkey::differential
