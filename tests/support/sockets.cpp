#include "support/sockets.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <mutex>
#include <random>
#include <stdexcept>
#include <system_error>
#include <vector>

namespace latchkey::test_support {

namespace {

std::uint16_t parse_port(std::string_view digits, const std::string& text) {
  std::uint16_t port = 0;
  const char* end = digits.data() + digits.size();
  if (const auto parsed = std::from_chars(digits.data(), end, port);
      parsed.ec != std::errc{} || parsed.ptr != end) {
    throw std::invalid_argument("no port in " + text);
  }
  return port;
}

Fd open_socket(int family) {
  Fd fd(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) throw std::system_error(errno, std::generic_category(), "socket");
  return fd;
}

void set_option(int fd, int level, int name, int value) {
  ::setsockopt(fd, level, name, &value, sizeof value);
}

int pending_error(int fd) {
  int error = 0;
  socklen_t length = sizeof error;
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

/// On every address: somebody may have it on one of the others.
bool bindable(std::uint16_t port) {
  const Endpoint endpoint("0.0.0.0:" + std::to_string(port));
  const Fd fd = open_socket(endpoint.family());
  return ::bind(fd.get(), endpoint.address(), endpoint.length()) == 0;
}

/// A name in the abstract Unix namespace belongs to one process and vanishes with it, and like a
/// port it is private to the network namespace: just what a claim on a port has to be.
Fd claim(std::uint16_t port) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = "latchkey-test-port-" + std::to_string(port);
  name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
  Fd fd = open_socket(AF_UNIX);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) return Fd();
  return fd;
}

/// The first port the kernel may hand out by itself.
int first_ephemeral_port() {
  int first = 32768;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> first;
  return first;
}

}  // namespace

void Fd::reset() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Endpoint::Endpoint(std::string text) : text_(std::move(text)) {
  if (text_.starts_with("unix:")) {
    auto* local = reinterpret_cast<sockaddr_un*>(&address_);
    const std::string path = text_.substr(5);
    if (path.size() >= sizeof local->sun_path) throw std::invalid_argument("too long: " + text_);
    local->sun_family = AF_UNIX;
    path.copy(local->sun_path, path.size());
    length_ = sizeof *local;
    return;
  }
  const std::size_t colon = text_.rfind(':');
  if (colon == std::string::npos) throw std::invalid_argument("no port in " + text_);
  const std::uint16_t port = htons(parse_port(std::string_view(text_).substr(colon + 1), text_));
  std::string host = text_.substr(0, colon);
  int known = 0;
  if (host.starts_with('[') && host.ends_with(']')) {
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&address_);
    v6->sin6_family = AF_INET6;
    v6->sin6_port = port;
    length_ = sizeof *v6;
    known = ::inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &v6->sin6_addr);
  } else {
    auto* v4 = reinterpret_cast<sockaddr_in*>(&address_);
    v4->sin_family = AF_INET;
    v4->sin_port = port;
    length_ = sizeof *v4;
    known = ::inet_pton(AF_INET, host.c_str(), &v4->sin_addr);
  }
  if (known != 1) throw std::invalid_argument("not a numeric address: " + text_);
}

std::uint16_t free_port() {
  static std::mutex mutex;
  static std::vector<Fd> claims;
  static std::minstd_rand random{std::random_device{}()};
  const std::lock_guard lock(mutex);

  constexpr int kLowest = 10000;
  const int end = first_ephemeral_port();
  const bool has_room = end - kLowest >= 1000;
  std::uniform_int_distribution<int> pick(kLowest, has_room ? end - 1 : 65535);
  for (int attempt = 0; attempt < 10000; ++attempt) {
    const auto port = static_cast<std::uint16_t>(pick(random));
    Fd claimed = claim(port);
    if (!claimed || !bindable(port)) continue;
    claims.push_back(std::move(claimed));
    return port;
  }
  throw std::runtime_error("no free loopback port");
}

std::string loopback(std::uint16_t port) { return "127.0.0.1:" + std::to_string(port); }

Fd listen_on(const Endpoint& endpoint) {
  Fd fd = open_socket(endpoint.family());
  if (endpoint.family() == AF_UNIX) {
    ::unlink(endpoint.text().c_str() + std::strlen("unix:"));
  } else {
    set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  }
  if (::bind(fd.get(), endpoint.address(), endpoint.length()) != 0 ||
      ::listen(fd.get(), SOMAXCONN) != 0) {
    throw std::system_error(errno, std::generic_category(), "listen on " + endpoint.text());
  }
  return fd;
}

Fd start_connect(const Endpoint& endpoint) {
  Fd fd = open_socket(endpoint.family());
  send_at_once(fd.get());
  if (::connect(fd.get(), endpoint.address(), endpoint.length()) == 0) return fd;
  // On the loopback the answer is there before we can look, but connect(2) does not tell.
  if (errno != EINPROGRESS || pending_error(fd.get()) != 0) return Fd();
  return fd;
}

Fd connect_to(const Endpoint& endpoint, Deadline deadline) {
  Fd fd = start_connect(endpoint);
  if (!fd || !wait_ready(fd.get(), POLLOUT, deadline) || pending_error(fd.get()) != 0) return Fd();
  return fd;
}

int poll_timeout_ms(Deadline deadline) {
  if (deadline.is_never()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.at() - BootClock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 60'000));
}

bool wait_ready(int fd, short events, Deadline deadline) {
  while (true) {
    const bool last = deadline.has_passed(BootClock::now());
    pollfd entry{fd, events, 0};
    const int ready = ::poll(&entry, 1, poll_timeout_ms(deadline));
    if (ready > 0) return true;
    if (ready == 0 && last) return false;
  }
}

bool send_all(int fd, std::string_view bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      if (!wait_ready(fd, POLLOUT, deadline)) return false;
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

Received receive_some(int fd, std::string& out) {
  std::array<char, 65536> chunk;
  while (true) {
    const ssize_t got = ::recv(fd, chunk.data(), chunk.size(), MSG_DONTWAIT);
    if (got > 0) {
      out.append(chunk.data(), static_cast<std::size_t>(got));
      return Received::kSome;
    }
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return Received::kNothing;
    return Received::kEnd;
  }
}

void send_at_once(int fd) { set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1); }

void close_with_reset(int fd) {
  const linger at_once{1, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

std::string ask_word(const Endpoint& server, std::string_view word, Deadline deadline) {
  const Fd fd = connect_to(server, deadline);
  if (!fd || !send_all(fd.get(), word, deadline)) return {};
  std::string answer;
  while (wait_ready(fd.get(), POLLIN, deadline)) {
    if (receive_some(fd.get(), answer) == Received::kEnd) return answer;
  }
  return {};
}

}  // namespace latchkey::test_support
