#include "systemd.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

namespace latchkey::app {

void notify_systemd(std::string_view state) {
  const char* path = std::getenv("NOTIFY_SOCKET");
  sockaddr_un name{};
  if (path == nullptr || (path[0] != '/' && path[0] != '@')) return;
  const std::size_t length = std::strlen(path);
  if (length >= sizeof name.sun_path) return;
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, path, length);
  if (name.sun_path[0] == '@') name.sun_path[0] = '\0';  // In the abstract name space.
  const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return;
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length);
  static_cast<void>(::sendto(fd, state.data(), state.size(), MSG_NOSIGNAL,
                             reinterpret_cast<const sockaddr*>(&name), size));
  ::close(fd);
}

std::vector<int> take_systemd_sockets() {
  constexpr int kFirst = 3;
  std::vector<int> sockets;
  const char* pid = std::getenv("LISTEN_PID");
  const char* count = std::getenv("LISTEN_FDS");
  if (pid != nullptr && count != nullptr && std::to_string(::getpid()) == pid) {
    const int last = kFirst + std::atoi(count);
    for (int fd = kFirst; fd < last; ++fd) sockets.push_back(fd);
  }
  // Not for our children.
  ::unsetenv("LISTEN_PID");
  ::unsetenv("LISTEN_FDS");
  ::unsetenv("LISTEN_FDNAMES");
  return sockets;
}

}  // namespace latchkey::app
