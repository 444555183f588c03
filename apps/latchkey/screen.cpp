#include "screen.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "signals.hpp"
#include "terminal.hpp"

namespace latchkey::app {
namespace {

constexpr std::string_view kEnter = "\033[?1049h\033[?25l";
constexpr std::string_view kLeave = "\033[?25h\033[?1049l";

void put(std::string_view text) {
  while (!text.empty()) {
    const ssize_t size = ::write(STDOUT_FILENO, text.data(), text.size());
    if (size <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(size));
  }
}

}  // namespace

Screen::Screen(Use use) : whole_(use == Use::kWhole), news_(::eventfd(0, EFD_CLOEXEC)) {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGWINCH);
  if (whole_) ::sigaddset(&signals, SIGCONT);
  for (const int number : {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGTSTP}) {
    if (number == SIGTSTP && !whole_) continue;
    if (!is_ignored(number)) ::sigaddset(&signals, number);
  }
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signals_ = ::signalfd(-1, &signals, SFD_CLOEXEC);
  enter();
}

void Screen::enter() {
  if (!whole_) return;
  termios settings{};
  if (::tcgetattr(STDIN_FILENO, &settings) == 0) {
    old_ = settings;
    settings.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    ::tcsetattr(STDIN_FILENO, TCSANOW, &settings);
    keys_ = true;
  }
  put(kEnter);
}

void Screen::leave() {
  if (whole_) put(kLeave);
  if (old_) ::tcsetattr(STDIN_FILENO, TCSANOW, &*old_);
  old_.reset();
}

void Screen::stop() {
  leave();
  sigset_t stops;
  ::sigemptyset(&stops);
  ::sigaddset(&stops, SIGTSTP);
  ::kill(::getpid(), SIGTSTP);
  ::pthread_sigmask(SIG_UNBLOCK, &stops, nullptr);
  ::pthread_sigmask(SIG_BLOCK, &stops, nullptr);
  enter();
}

Screen::~Screen() {
  leave();
  ::close(signals_);
  ::close(news_);
}

void Screen::ring() const {
  const std::uint64_t one = 1;
  static_cast<void>(::write(news_, &one, sizeof one) > 0);
}

bool Screen::wait(int timeout_ms) {
  std::array<pollfd, 3> waiting{pollfd{news_, POLLIN, 0}, pollfd{signals_, POLLIN, 0},
                                pollfd{keys_ ? STDIN_FILENO : -1, POLLIN, 0}};
  if (::poll(waiting.data(), waiting.size(), timeout_ms) <= 0) return false;
  if (waiting[1].revents != 0) {
    signalfd_siginfo info{};
    static_cast<void>(::read(signals_, &info, sizeof info) > 0);
    if (info.ssi_signo == SIGTSTP) {
      stop();
    } else if (info.ssi_signo == SIGCONT) {
      leave();  // Whoever stopped us by SIGSTOP, the shell has used the terminal since.
      enter();
    } else if (info.ssi_signo != SIGWINCH) {
      ended_ = true;
      code_ = 128 + static_cast<int>(info.ssi_signo);
    }
  }
  if (waiting[2].revents != 0) {
    char key = 0;
    if (::read(STDIN_FILENO, &key, 1) <= 0) keys_ = false;
    if (key == 'q' || key == 'Q') ended_ = true;
  }
  if (waiting[0].revents == 0) return false;
  std::uint64_t count = 0;
  static_cast<void>(::read(news_, &count, sizeof count) > 0);
  return true;
}

void Screen::draw(const std::vector<std::string>& lines) const {
  const std::size_t room = std::max<std::size_t>(terminal_height(), 2);
  std::string text = "\033[H";
  for (std::size_t i = 0; i < std::min(lines.size(), room); ++i) {
    text += (i == 0 ? "" : "\r\n") + lines[i] + "\033[K";
  }
  put(text + "\033[J");
}

}  // namespace latchkey::app
