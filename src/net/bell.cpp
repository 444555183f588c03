#include "net/bell.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

#include "base/time_left.hpp"
#include "net/threads.hpp"

namespace latchkey::net {

namespace {

/// The thread's bell is gone. Apart from it, because other thread-local objects may still ask.
thread_local bool bell_is_gone = false;

}  // namespace

struct BellOfThread {
  ~BellOfThread() {
    delete bell;
    bell_is_gone = true;
  }

  Bell* get() {
    if (bell != nullptr && owner == process_id()) return bell;
    delete bell;
    bell = nullptr;
    owner = process_id();
    const int event = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (event >= 0) bell = new Bell(event);
    return bell;
  }

  pid_t owner = 0;
  Bell* bell = nullptr;
};

Bell* Bell::of_this_thread() {
  if (bell_is_gone) return nullptr;
  thread_local BellOfThread mine;
  return mine.get();
}

Bell::~Bell() { ::close(event_); }

void Bell::ring() const noexcept {
  const std::uint64_t once = 1;
  static_cast<void>(::write(event_, &once, sizeof once) < 0);
}

void Bell::wait(int socket, Deadline deadline) const noexcept {
  const timespec left = deadline.is_never() ? timespec{} : base::time_left(deadline);
  pollfd both[] = {{socket, POLLIN, 0}, {event_, POLLIN, 0}};
  if (::ppoll(both, 2, deadline.is_never() ? nullptr : &left, nullptr) <= 0) return;
  if (both[1].revents == 0) return;
  std::uint64_t rings = 0;
  static_cast<void>(::read(event_, &rings, sizeof rings) < 0);
}

}  // namespace latchkey::net
