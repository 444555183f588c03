#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "latchkey/result.hpp"

namespace latchkey::server {

struct HostPort {
  std::string host;  ///< Without brackets.
  std::uint16_t port = 0;
};

/// Reads "127.0.0.1:2181", "[::1]:2181", "localhost:0". Errors: kInvalidOption.
[[nodiscard]] Result<HostPort> parse_host_port(std::string_view text);

/// A file descriptor of our own.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();

  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

/// A socket that listens, and for a Unix socket its name, which goes with it.
/// Thread safety: one thread at a time.
class Listener {
 public:
  /// The first address of the name that works.
  /// Errors: kInUse, kUnreachable, kInvalidOption.
  [[nodiscard]] static Result<Listener> open_tcp(const std::string& address);
  /// For this user only (0600). The name of a socket nobody listens on any more is taken over; that
  /// of a server that lives is kInUse, and so is a file that is no socket.
  [[nodiscard]] static Result<Listener> open_unix(const std::filesystem::path& path);
  /// One that listens already; its name stays when we go. Errors: kInvalidOption.
  [[nodiscard]] static Result<Listener> adopt(int fd);

  Listener(Listener&&) noexcept;
  Listener& operator=(Listener&&) = delete;
  ~Listener();

  [[nodiscard]] int get() const { return fd_.get(); }
  [[nodiscard]] bool is_unix() const { return unix_; }
  /// "127.0.0.1:2181", "[::1]:2181", "unix:/run/latchkey.sock".
  [[nodiscard]] const std::string& address() const { return address_; }
  [[nodiscard]] std::uint16_t port() const { return port_; }

  /// The socket for the event loop. The listener keeps the name.
  [[nodiscard]] int release() { return fd_.release(); }

 private:
  Listener(Descriptor fd, bool is_unix);

  Descriptor fd_;
  bool unix_ = false;
  std::string address_;
  std::uint16_t port_ = 0;
  std::filesystem::path owned_;  ///< To be removed, if it still is the file with this number.
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

/// Who is at the other end: "127.0.0.1:4711", or "unix:PID" for a Unix socket.
struct Remote {
  std::string address;
  std::string ip;  ///< "127.0.0.1"; that one for a Unix socket too.
  bool is_local = true;
  /// Whom connections and sessions count for: the ip, of IPv6 its first half ("2001:db8:0:1::/64"),
  /// since whoever has one address there has all of those; or "uid:1000" for a Unix socket. Empty
  /// for the loopback, where nobody can be told apart.
  std::string origin;
};
[[nodiscard]] Remote remote_of(int fd);
/// What remote_of() makes of an address.
[[nodiscard]] Remote remote_from(const sockaddr_storage& address);

}  // namespace latchkey::server
