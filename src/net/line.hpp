#pragma once

#include <cstdint>
#include <system_error>
#include <utility>

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>

namespace latchkey::net {

/// A socket, and what of it wakes the I/O thread. Asio would hear of every byte of a socket that it
/// knows; it knows only the epoll set that this one is in, and what the set waits for can be
/// changed. Thread safety: one thread at a time.
class Line {
 public:
  explicit Line(asio::io_context& context) : set_(context) {}
  ~Line();
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  /// Takes the socket over, also if it fails.
  [[nodiscard]] std::error_code open(int socket);

  [[nodiscard]] int socket() const noexcept { return socket_; }

  /// EPOLLIN, EPOLLOUT, both or neither; neither at first. A broken connection is always told.
  void watch(std::uint32_t events);

  /// Calls `handler(error_code)` once, when there is something of what is watched for.
  template <class Handler>
  void async_wait(Handler&& handler) {
    set_.async_wait(asio::posix::stream_descriptor::wait_read, std::forward<Handler>(handler));
  }

 private:
  asio::posix::stream_descriptor set_;
  int socket_ = -1;
  std::uint32_t events_ = 0;
};

}  // namespace latchkey::net
