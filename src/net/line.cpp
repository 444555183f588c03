#include "net/line.hpp"

#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>

namespace latchkey::net {

Line::~Line() {
  if (socket_ >= 0) ::close(socket_);
}

std::error_code Line::open(int socket) {
  socket_ = socket;
  const int set = ::epoll_create1(EPOLL_CLOEXEC);
  if (set < 0) return {errno, std::generic_category()};
  asio::error_code error;
  set_.assign(set, error);
  if (error) {
    ::close(set);
    return {error.value(), std::generic_category()};
  }
  epoll_event none{};
  if (::epoll_ctl(set, EPOLL_CTL_ADD, socket_, &none) == 0) return {};
  return {errno, std::generic_category()};
}

void Line::watch(std::uint32_t events) {
  if (events == events_) return;
  events_ = events;
  epoll_event wanted{};
  wanted.events = events;
  ::epoll_ctl(set_.native_handle(), EPOLL_CTL_MOD, socket_, &wanted);
}

}  // namespace latchkey::net
