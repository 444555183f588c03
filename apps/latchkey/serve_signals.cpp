#include "serve_signals.hpp"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

namespace latchkey::app {

StartSignals::StartSignals(const sigset_t& signals)
    : signals_(signals),
      signal_fd_(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK)),
      end_fd_(::eventfd(0, EFD_CLOEXEC)) {
  hear();
  if (signal_fd_ >= 0 && end_fd_ >= 0) thread_ = std::thread([this] { listen(); });
}

void StartSignals::hear() {
  signalfd_siginfo info{};
  if (::read(signal_fd_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    source_.request_stop();
  }
}

void StartSignals::listen() {
  bool unblocked = false;
  for (;;) {
    if (source_.stop_requested() && !std::exchange(unblocked, true)) {
      // Whoever asks a second time does not want to wait.
      ::pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr);
    }
    pollfd waits[] = {{end_fd_, POLLIN, 0}, {unblocked ? -1 : signal_fd_, POLLIN, 0}};
    if (::poll(waits, 2, -1) < 0) continue;
    if (waits[0].revents != 0) return;
    hear();
  }
}

void StartSignals::end() {
  if (thread_.joinable()) {
    const std::uint64_t one = 1;
    static_cast<void>(::write(end_fd_, &one, sizeof one));
    thread_.join();
  }
  for (int* fd : {&signal_fd_, &end_fd_}) {
    if (*fd >= 0) ::close(std::exchange(*fd, -1));
  }
}

}  // namespace latchkey::app
