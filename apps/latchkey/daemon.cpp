#include "daemon.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "process.hpp"

namespace latchkey::app {
namespace {

constexpr off_t kLongLog = 1 << 20;
constexpr int kKept = 3;
/// What ps shows, and how is_daemon() knows it.
constexpr const char* kName = "latchkey-daemon";

/// What exec needs, made before the fork: between the two nothing may be allocated.
struct Start {
  std::string program;
  std::vector<char*> words;
  std::vector<char*> environment;
  int output = -1;
  int log = -1;
  int keep = -1;
};

[[noreturn]] void become_daemon(const Start& start) {
  // Out of the way of the numbers it is to have.
  constexpr int kAside = 100;
  const int output = ::fcntl(start.output, F_DUPFD, kAside);
  const int log = ::fcntl(start.log, F_DUPFD, kAside);
  const int keep = start.keep < 0 ? -1 : ::fcntl(start.keep, F_DUPFD, kAside);
  const int null = ::open("/dev/null", O_RDONLY);
  ::dup2(null, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  if (keep >= 0) ::dup2(keep, kKept);
  ::close_range(keep < 0 ? kKept : kKept + 1, UINT_MAX, 0);
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::umask(S_IRWXG | S_IRWXO);
  if (::chdir("/") != 0) ::_exit(1);
  ::execve(start.program.c_str(), start.words.data(), start.environment.data());
  ::_exit(1);
}

/// Twice, so that it is nobody's child and can never get a terminal.
bool fork_away(const Start& start) {
  const pid_t middle = ::fork();
  if (middle < 0) return false;
  if (middle == 0) {
    ::setsid();
    // Returns when it has its name: whoever collects orphans never sees it without (is_daemon()).
    const pid_t last = ::vfork();
    if (last == 0) become_daemon(start);
    ::_exit(last < 0 ? 1 : 0);
  }
  int status = 0;
  while (::waitpid(middle, &status, 0) < 0 && errno == EINTR) {
  }
  return status == 0;
}

/// Of the first line, or of what there was when it ended.
Result<std::string> read_line(int fd, Deadline deadline) {
  std::string line;
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline.at() - BootClock::now());
    pollfd waiting{fd, POLLIN, 0};
    const auto ms = static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, INT_MAX));
    const int ready = ::poll(&waiting, 1, ms);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return Error(Code::kUnreachable, "it was not ready in time");
    std::array<char, 512> chunk{};
    const ssize_t size = ::read(fd, chunk.data(), chunk.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return Error(Code::kUnreachable, "it ended");
    line.append(chunk.data(), static_cast<std::size_t>(size));
    if (const std::size_t end = line.find('\n'); end != std::string::npos) {
      return line.substr(0, end);
    }
  }
}

/// The last lines that were written to the log since it was `from` bytes long.
std::string log_since(const std::string& file, off_t from) {
  constexpr std::size_t kLines = 5;
  std::ifstream log(file);
  log.seekg(from);
  std::vector<std::string> lines;
  for (std::string line; std::getline(log, line);) lines.push_back(line);
  if (lines.size() > kLines) lines.erase(lines.begin(), lines.end() - kLines);
  return fmt::format("{}", fmt::join(lines, "; "));
}

/// Whether a process runs what we run; also if that was replaced by a newer one since.
bool is_our_program(const std::string& link) {
  struct stat its {};
  struct stat ours {};
  if (::stat(link.c_str(), &its) == 0 && ::stat("/proc/self/exe", &ours) == 0 &&
      its.st_dev == ours.st_dev && its.st_ino == ours.st_ino) {
    return true;
  }
  const auto name_of = [](std::string path) {
    constexpr std::string_view kGone = " (deleted)";
    if (path.ends_with(kGone)) path.resize(path.size() - kGone.size());
    return path;
  };
  std::error_code error;
  const std::filesystem::path target = std::filesystem::read_symlink(link, error);
  return !error && name_of(target.string()) == name_of(own_path());
}

/// What is for us and not for it.
bool is_ours(std::string_view variable) {
  return variable.starts_with("NOTIFY_SOCKET=") || variable.starts_with("LISTEN_") ||
         variable.starts_with("WATCHDOG_");
}

}  // namespace

bool is_daemon(pid_t process) {
  const std::string folder = "/proc/" + std::to_string(process);
  std::ifstream words(folder + "/cmdline");
  std::string name;
  std::getline(words, name, '\0');
  return name == kName && is_our_program(folder + "/exe");
}

Result<std::string> start_daemon(const Daemon& daemon, Deadline deadline) {
  const auto failed = [&](const char* what) {
    return Error(Code::kServerError,
                 fmt::format("{}: {}", what, std::generic_category().message(errno)));
  };
  Start start;
  start.program = own_path();
  // Replaced by a newer one, or removed, while we run.
  if (start.program.ends_with(" (deleted)")) start.program = "/proc/self/exe";
  std::vector<std::string> words = daemon.words;
  words.insert(words.begin(), kName);
  for (std::string& word : words) start.words.push_back(word.data());
  start.words.push_back(nullptr);
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!is_ours(*variable)) start.environment.push_back(*variable);
  }
  start.environment.push_back(nullptr);
  start.keep = daemon.keep;

  start.log =
      ::open(daemon.log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (start.log < 0) return failed(("open " + daemon.log_file).c_str());
  off_t written = ::lseek(start.log, 0, SEEK_END);
  if (written > kLongLog && ::ftruncate(start.log, 0) == 0) written = 0;
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    ::close(start.log);
    return failed("make a pipe");
  }
  start.output = ends[1];
  const bool forked = fork_away(start);
  ::close(start.log);
  ::close(ends[1]);
  Result<std::string> line = forked ? read_line(ends[0], deadline) : failed("start a process");
  ::close(ends[0]);
  if (line) return line;
  const std::string said = log_since(daemon.log_file, written);
  return Error(line.error().code(), fmt::format("{}{}{} (its log is {})", line.error().message(),
                                                said.empty() ? "" : ": ", said, daemon.log_file));
}

}  // namespace latchkey::app
