#include "front.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <utility>

#include "exit_code.hpp"
#include "signals.hpp"
#include "words.hpp"

namespace latchkey::app {
namespace {

using Kind = Channel::Message::Kind;

/// A command that has not stopped by then did not listen: when it stops later, that is another
/// stop.
constexpr std::chrono::seconds kStopsWithin(5);

constexpr std::array kPassedOn = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

void set_blocked(int how, int number) {
  sigset_t one;
  ::sigemptyset(&one);
  ::sigaddset(&one, number);
  ::pthread_sigmask(how, &one, nullptr);
}

/// Ends by the signal. If it goes to the whole job, a script's shell gets it too, as it would have
/// from the terminal, and only then believes that it was meant as well.
void end_by(int number, pid_t whom) {
  ::signal(number, SIG_DFL);
  ::kill(whom, number);
  set_blocked(SIG_UNBLOCK, number);
}

class Front {
 public:
  Front(pid_t keeper, Channel channel, int signals)
      : keeper_(keeper), channel_(channel), signals_(signals) {}

  int run() {
    while (!ended_) {
      std::array<pollfd, 2> waits{
          {{signals_, POLLIN, 0}, {channel_open_ ? channel_.fd() : -1, POLLIN, 0}}};
      if (::poll(waits.data(), waits.size(), -1) < 0) continue;
      if (waits[1].revents != 0) hear_keeper();
      if (waits[0].revents != 0) hear_signals();
    }
    hear_keeper();  // The last words.
    if (WIFEXITED(status_)) {
      if (end_by_) end_by(*end_by_, ends_job_ ? 0 : ::getpid());
      return WEXITSTATUS(status_);
    }
    const bool ran = group_ != 0;
    const bool left = kill_what_is_left() || ran;
    take_terminal();
    say("latchkey: the process that kept the session was killed (signal {}); {} until the session "
        "times out.\n",
        WTERMSIG(status_),
        left   ? "what ran is killed too. The lock stays taken"
        : ran_ ? "the command had ended before. What was held or waited for then is kept"
               : "nothing was run. The place in the queue is kept");
    return kLost;
  }

 private:
  void hear_signals() {
    signalfd_siginfo info{};
    while (::read(signals_, &info, sizeof info) == sizeof info) {
      const auto number = static_cast<int>(info.ssi_signo);
      if (number == SIGCHLD) {
        look_at_keeper();
      } else if (number == SIGCONT) {
        channel_.send({Kind::kContinue});
      } else if (number == SIGTSTP) {
        channel_.send({Kind::kStop, number});
        asked_to_stop_ = BootClock::now();
      } else {
        channel_.send({Kind::kSignal, number});
      }
    }
  }

  void hear_keeper() {
    std::vector<Channel::Message> messages;
    if (channel_.receive(messages) == Channel::State::kClosed) channel_open_ = false;
    for (const auto& [kind, value] : messages) {
      switch (kind) {
        case Kind::kStarted:
          group_ = value;
          ran_ = true;
          break;
        case Kind::kEnded: group_ = 0; break;
        case Kind::kStopJob: stop(value); break;
        case Kind::kEndBy:
        case Kind::kEndJobBy:
          end_by_ = value;
          ends_job_ = kind == Kind::kEndJobBy;
          break;
        case Kind::kSignal:
        case Kind::kStop:
        case Kind::kContinue: break;
      }
    }
  }

  /// Does what the terminal would have done had the command been in our group: a script's shell is
  /// stopped as well. It returns when we are continued, or at once if a job without a shell cannot
  /// be stopped.
  void stop(int number) {
    const std::optional<Instant> asked = std::exchange(asked_to_stop_, std::nullopt);
    ::kill(asked && BootClock::now() - *asked < kStopsWithin ? ::getpid() : 0, number);
    set_blocked(SIG_UNBLOCK, number);
    set_blocked(SIG_BLOCK, number);
    channel_.send({Kind::kContinue});
  }

  void look_at_keeper() {
    int status = 0;
    while (::waitpid(keeper_, &status, WNOHANG | WUNTRACED) == keeper_) {
      if (WIFSTOPPED(status)) {
        ::kill(keeper_, SIGCONT);  // It is the one that must not be stopped.
        continue;
      }
      status_ = status;
      ended_ = true;
      return;
    }
    // Without a command only daemons of ours come to us. The keeper may have ended just now, and
    // that is for the next turn.
    siginfo_t other{};
    while (group_ == 0 && ::waitid(P_ALL, 0, &other, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           other.si_pid != 0 && other.si_pid != keeper_) {
      ::waitpid(std::exchange(other.si_pid, 0), nullptr, 0);
    }
  }

  /// Whether there was anything.
  bool kill_what_is_left() {
    bool found = false;
    while (true) {
      const std::vector<pid_t> left = contained_processes();
      signal_processes(SIGKILL, left, std::exchange(group_, 0));
      if (left.empty()) return found;
      found = true;
      ::waitpid(-1, nullptr, 0);  // One of them: daemons of ours that end meanwhile do no harm.
    }
  }

  /// From a group that is gone, as the command's is by now, whether we ever heard of it or not. One
  /// that lives is somebody else's. SIGTTOU is blocked here.
  static void take_terminal() {
    while (::waitpid(-1, nullptr, WNOHANG) > 0) continue;  // The dead are members until then.
    const int terminal = ::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (terminal < 0) return;
    const pid_t holder = ::tcgetpgrp(terminal);
    const bool is_gone = holder > 0 && ::kill(-holder, 0) < 0 && errno == ESRCH;
    if (is_gone) ::tcsetpgrp(terminal, ::getpgrp());
    ::close(terminal);
  }

  const pid_t keeper_;
  const Channel channel_;
  const int signals_;
  bool channel_open_ = true;
  bool ended_ = false;
  int status_ = 0;
  pid_t group_ = 0;   ///< As long as the command's process lives.
  bool ran_ = false;  ///< There was one.
  std::optional<int> end_by_;
  bool ends_job_ = false;
  std::optional<Instant> asked_to_stop_;  ///< We were, and not the command.
};

}  // namespace

void Channel::send(Message message) const {
  // Whoever has gone needs no answer, so an error is none.
  static_cast<void>(!::send(fd_, &message, sizeof message, MSG_NOSIGNAL));
}

Channel::State Channel::receive(std::vector<Message>& messages) const {
  while (true) {
    Message message{};
    const ssize_t size = ::recv(fd_, &message, sizeof message, MSG_DONTWAIT);
    if (size == sizeof message) {
      messages.push_back(message);
    } else if (size == 0 || (size < 0 && errno != EINTR)) {
      return size < 0 && errno == EAGAIN ? State::kOpen : State::kClosed;
    }
  }
}

sigset_t watched_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : kPassedOn) {
    if (!is_ignored(number)) ::sigaddset(&set, number);
  }
  if (!is_ignored(SIGTSTP)) ::sigaddset(&set, SIGTSTP);
  ::sigaddset(&set, SIGCONT);
  ::sigaddset(&set, SIGCHLD);
  return set;
}

int stand_in_front(const std::function<int(Channel, const Origin&)>& keep) {
  const Origin origin = Origin::now();
  // Whoever reads our words or the status may go; that is no reason to end.
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGCHLD, SIG_DFL);  // Ignored, as some leave it, it would hide how a command ended.
  const sigset_t watched = watched_signals();
  sigset_t blocked = watched;
  ::sigaddset(&blocked, SIGTTOU);
  ::sigaddset(&blocked, SIGTTIN);
  ::pthread_sigmask(SIG_BLOCK, &blocked, nullptr);

  std::array<int, 2> ends{-1, -1};
  const int signals = ::signalfd(-1, &watched, SFD_NONBLOCK | SFD_CLOEXEC);
  if (signals < 0 || ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    say("latchkey: no descriptors: {}\n", std::strerror(errno));
    return kOsError;
  }
  // Before there is a command: should the keeper be killed, whatever it ran comes to us.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  std::fflush(nullptr);
  const pid_t keeper = ::fork();
  if (keeper < 0) {
    say("latchkey: cannot fork: {}\n", std::strerror(errno));
    return kOsError;
  }
  if (keeper == 0) {
    ::close(ends[0]);
    ::close(signals);
    ::setpgid(0, 0);  // The terminal's signals are not for this one.
    const int code = keep(Channel(ends[1]), origin);
    std::fflush(nullptr);
    ::_exit(code);
  }
  ::setpgid(keeper, keeper);
  ::close(ends[1]);
  return Front(keeper, Channel(ends[0]), signals).run();
}

}  // namespace latchkey::app
