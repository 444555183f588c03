#include "command/terminal_child.hpp"

#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <utility>

namespace latchkey::test_support {

TerminalChild::TerminalChild(const std::vector<std::string>& command,
                             const std::vector<std::string>& environment) {
  winsize size{};
  size.ws_row = 24;
  size.ws_col = 100;
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  pid_ = ::forkpty(&master_, nullptr, nullptr, &size);
  if (pid_ != 0) return;
  reset_signals();
  ::setenv("TERM", "xterm", 1);
  for (const std::string& variable : environment) ::putenv(const_cast<char*>(variable.c_str()));
  ::execvp(words[0], words.data());
  ::_exit(127);
}

TerminalChild::~TerminalChild() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  hang_up();
}

void TerminalChild::hang_up() {
  if (master_ >= 0) ::close(std::exchange(master_, -1));
}

void TerminalChild::type(std::string_view keys) {
  static_cast<void>(::write(master_, keys.data(), keys.size()) > 0);
}

bool TerminalChild::read_some(Deadline deadline) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline.at() - BootClock::now()).count();
  pollfd waiting{master_, POLLIN, 0};
  const auto ms = static_cast<int>(std::clamp<std::int64_t>(left, 0, INT_MAX));
  if (::poll(&waiting, 1, ms) <= 0) return false;
  std::array<char, 4'096> chunk{};
  const ssize_t size = ::read(master_, chunk.data(), chunk.size());
  if (size <= 0) return false;  // EIO: the last one on the terminal has gone.
  output_.append(chunk.data(), static_cast<std::size_t>(size));
  return true;
}

bool TerminalChild::shows(std::string_view part, Deadline deadline) {
  while (true) {
    const std::size_t at = output_.find(part, seen_);
    if (at != std::string::npos) {
      seen_ = at + part.size();
      return true;
    }
    if (!read_some(deadline)) return false;
  }
}

std::optional<ExitStatus> TerminalChild::wait(Deadline deadline) {
  while (read_some(deadline)) {
  }
  if (deadline.has_passed(BootClock::now())) return std::nullopt;
  int status = 0;
  if (::waitpid(pid_, &status, 0) != pid_) return std::nullopt;
  pid_ = -1;
  if (WIFSIGNALED(status)) return ExitStatus{-1, WTERMSIG(status)};
  return ExitStatus{WEXITSTATUS(status), 0};
}

}  // namespace latchkey::test_support
