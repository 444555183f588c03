#include "net/boot_timer.hpp"

#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <asio/error.hpp>
#include <asio/system_error.hpp>

namespace latchkey::net {

BootTimer::BootTimer(asio::io_context& context) : descriptor_(context) {
  const int fd = ::timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
  if (fd < 0) {
    const asio::error_code error(errno, asio::error::get_system_category());
    throw asio::system_error(error, "timerfd_create");
  }
  descriptor_.assign(fd);
}

void BootTimer::arm(Instant at) {
  if (at < armed_) set(at);
}

void BootTimer::arm(Instant at, Instant soon) {
  if (at < armed_ || (armed_ < soon && at > soon)) set(at);
}

void BootTimer::set(Instant at) {
  armed_ = at;
  // Zero would disarm it, and a moment before the boot is as good as the first one after.
  const auto since_boot = std::max<std::int64_t>(at.time_since_epoch().count(), 1);
  itimerspec when{};
  when.it_value.tv_sec = static_cast<time_t>(since_boot / 1'000'000'000);
  when.it_value.tv_nsec = static_cast<long>(since_boot % 1'000'000'000);
  ::timerfd_settime(descriptor_.native_handle(), TFD_TIMER_ABSTIME, &when, nullptr);
}

void BootTimer::clear() {
  std::uint64_t rings = 0;
  // EAGAIN only says that somebody armed it again since.
  static_cast<void>(::read(descriptor_.native_handle(), &rings, sizeof rings) < 0);
  armed_ = Instant::max();
}

void BootTimer::cancel() {
  asio::error_code ignored;
  descriptor_.close(ignored);
}

}  // namespace latchkey::net
