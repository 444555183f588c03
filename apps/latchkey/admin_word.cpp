#include "admin_word.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <memory>

namespace latchkey::app {
namespace {

bool wait_for(int fd, short events, Deadline deadline) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline.at() - BootClock::now()).count();
  pollfd waiting{fd, events, 0};
  return ::poll(&waiting, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, INT_MAX))) > 0;
}

/// A socket that is connected, or -1.
int connect_to(const sockaddr* address, socklen_t size, Deadline deadline) {
  const int fd = ::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  int error = ::connect(fd, address, size) == 0 ? 0 : errno;
  if (error == EINPROGRESS && wait_for(fd, POLLOUT, deadline)) {
    socklen_t length = sizeof error;
    ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
  }
  if (error == 0) return fd;
  ::close(fd);
  return -1;
}

int connect_to(const session::Endpoint& server, Deadline deadline) {
  if (!server.socket_path.empty()) {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    if (server.socket_path.size() >= sizeof name.sun_path) return -1;
    std::memcpy(name.sun_path, server.socket_path.data(), server.socket_path.size());
    return connect_to(reinterpret_cast<const sockaddr*>(&name), sizeof name, deadline);
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(server.host.c_str(), std::to_string(server.port).c_str(), &hints, &found) !=
      0) {
    return -1;
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> list(found, ::freeaddrinfo);
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    if (const int fd = connect_to(one->ai_addr, one->ai_addrlen, deadline); fd >= 0) return fd;
  }
  return -1;
}

}  // namespace

std::string ask_word(const session::Endpoint& server, std::string_view word, Deadline deadline) {
  constexpr std::size_t kMost = 65'536;
  const int fd = connect_to(server, deadline);
  if (fd < 0) return {};
  std::string answer;
  if (::send(fd, word.data(), word.size(), MSG_NOSIGNAL) > 0) {
    while (answer.size() < kMost && wait_for(fd, POLLIN, deadline)) {
      std::array<char, 4'096> chunk{};
      const ssize_t size = ::read(fd, chunk.data(), chunk.size());
      if (size <= 0) break;
      answer.append(chunk.data(), static_cast<std::size_t>(size));
    }
  }
  ::close(fd);
  return answer;
}

}  // namespace latchkey::app
