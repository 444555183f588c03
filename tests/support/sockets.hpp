#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "latchkey/deadline.hpp"

namespace latchkey::test_support {

/// Owns a file descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() { reset(); }
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }

  [[nodiscard]] int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void reset();

 private:
  int fd_ = -1;
};

/// Where to listen or connect: "127.0.0.1:2181", "[::1]:2181" or "unix:/path". Numbers only; a
/// text that is none of these throws std::invalid_argument.
class Endpoint {
 public:
  explicit Endpoint(std::string text);

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] const sockaddr* address() const {
    return reinterpret_cast<const sockaddr*>(&address_);
  }
  [[nodiscard]] socklen_t length() const { return length_; }
  [[nodiscard]] int family() const { return address_.ss_family; }

 private:
  std::string text_;
  sockaddr_storage address_{};
  socklen_t length_ = 0;
};

/// A TCP port on which nobody listens, kept for this process until it ends: no other test process
/// and no later call gets the same one. It lies outside the range the kernel takes outgoing ports
/// from, so it stays free while a server is down, and a client that keeps dialling it cannot end
/// up connected to itself.
[[nodiscard]] std::uint16_t free_port();

/// The port of a free_port() as an address on the IPv4 loopback.
[[nodiscard]] std::string loopback(std::uint16_t port);

/// A server's whole answer to a four-letter word; empty if it does not come in time.
[[nodiscard]] std::string ask_word(const Endpoint& server, std::string_view word,
                                   Deadline deadline);

/// A non-blocking listening socket. Throws std::system_error.
[[nodiscard]] Fd listen_on(const Endpoint& endpoint);

/// A non-blocking socket whose connect has been started; empty if it was refused at once.
[[nodiscard]] Fd start_connect(const Endpoint& endpoint);

/// A connected non-blocking socket; empty if it could not be had by the deadline.
[[nodiscard]] Fd connect_to(const Endpoint& endpoint, Deadline deadline);

/// Milliseconds for poll(2), rounded up; -1 for never.
[[nodiscard]] int poll_timeout_ms(Deadline deadline);

/// Waits for poll(2) events. False: the deadline passed first.
[[nodiscard]] bool wait_ready(int fd, short events, Deadline deadline);

/// False: the peer is gone, or the deadline passed.
[[nodiscard]] bool send_all(int fd, std::string_view bytes, Deadline deadline);

enum class Received { kSome, kEnd, kNothing };

/// Appends what can be read right now to `out`; kEnd for end of stream or a broken connection.
[[nodiscard]] Received receive_some(int fd, std::string& out);

/// Small messages leave at once (TCP_NODELAY).
void send_at_once(int fd);

/// Makes the coming close of the socket send a reset in place of an orderly end.
void close_with_reset(int fd);

}  // namespace latchkey::test_support
