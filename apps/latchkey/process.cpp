#include "process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace latchkey::app {
namespace {

/// In the child, between fork and exec: async-signal-safe calls only.
[[noreturn]] void become(char* const* words, int output, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // The parent died before the line above.
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  ::dup2(null, STDIN_FILENO);
  ::dup2(output >= 0 ? output : null, STDOUT_FILENO);
  if (output < 0) ::dup2(null, STDERR_FILENO);
  ::execvp(words[0], words);
  ::_exit(127);
}

}  // namespace

Process::Process(const std::vector<std::string>& command, Output output) {
  std::array<int, 2> ends{-1, -1};
  if (output == Output::kPipe && ::pipe2(ends.data(), O_CLOEXEC) != 0) return;
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) become(words.data(), ends[1], parent);
  if (ends[1] >= 0) ::close(ends[1]);
  output_ = ends[0];
  if (output_ >= 0) ::fcntl(output_, F_SETFL, O_NONBLOCK);
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      output_(std::exchange(other.output_, -1)),
      partial_(std::move(other.partial_)) {}

Process::~Process() {
  kill_and_reap();
  if (output_ >= 0) ::close(output_);
}

bool Process::read_lines(std::vector<std::string>& lines) {
  std::array<char, 4'096> chunk{};
  while (output_ >= 0) {
    const ssize_t size = ::read(output_, chunk.data(), chunk.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return true;
    if (size == 0) {
      ::close(std::exchange(output_, -1));
      break;
    }
    partial_.append(chunk.data(), static_cast<std::size_t>(size));
    for (std::size_t end = partial_.find('\n'); end != std::string::npos;
         end = partial_.find('\n')) {
      lines.push_back(partial_.substr(0, end));
      partial_.erase(0, end + 1);
    }
  }
  return false;
}

bool Process::has_ended() {
  if (pid_ < 0) return true;
  if (::waitpid(pid_, nullptr, WNOHANG) == 0) return false;
  pid_ = -1;
  return true;
}

void Process::kill_and_reap() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

std::string own_path() {
  std::array<char, 4'096> path{};
  const ssize_t size = ::readlink("/proc/self/exe", path.data(), path.size());
  return size > 0 ? std::string(path.data(), static_cast<std::size_t>(size)) : "latchkey";
}

}  // namespace latchkey::app
