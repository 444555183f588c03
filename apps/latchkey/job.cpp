#include "job.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>

#include "daemon.hpp"
#include "exit_code.hpp"

namespace latchkey::app {
namespace {

/// Everything the command needs between fork and exec, where nothing may be allocated.
struct Launch {
  std::vector<char*> words;
  std::vector<char*> environment;
  const Origin* origin;
  pid_t parent;
  int terminal;  ///< -1: not to be taken.
  int report;
};

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

[[noreturn]] void become_command(const Launch& launch) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != launch.parent) ::_exit(kNotFound);  // It died before the line above.
  ::setpgid(0, 0);
  if (launch.terminal >= 0) ::tcsetpgrp(launch.terminal, ::getpid());  // SIGTTOU is blocked here.
  if (!launch.origin->ignores_pipe) ::signal(SIGPIPE, SIG_DFL);
  ::pthread_sigmask(SIG_SETMASK, &launch.origin->mask, nullptr);
  ::execvpe(launch.words[0], launch.words.data(), launch.environment.data());
  const int error = errno;
  static_cast<void>(!::write(launch.report, &error, sizeof error));
  ::_exit(kNotFound);
}

/// "NAME=value" entries, ours with `extra` instead of those of the same name.
std::vector<std::string> merged_environment(const std::vector<std::string>& extra) {
  std::vector<std::string> result = extra;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('=') + 1);
    const bool replaced = std::any_of(extra.begin(), extra.end(), [&](const std::string& own) {
      return std::string_view(own).starts_with(name);
    });
    if (!replaced) result.emplace_back(text);
  }
  return result;
}

/// Parent of a process; -1 if it is gone. The name of the program may hold anything, so what counts
/// is what follows the last parenthesis.
pid_t parent_of(const char* pid) {
  std::ifstream file("/proc/" + std::string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(')');
  char state = 0;
  int parent = -1;
  if (name_end == std::string::npos) return -1;
  if (std::sscanf(line.c_str() + name_end + 1, " %c %d", &state, &parent) != 2) return -1;
  return parent;
}

std::vector<std::pair<pid_t, pid_t>> all_processes() {
  std::vector<std::pair<pid_t, pid_t>> processes;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc"), &::closedir);
  if (!folder) return processes;
  while (const dirent* entry = ::readdir(folder.get())) {
    const auto pid = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));
    if (pid > 0) processes.emplace_back(pid, parent_of(entry->d_name));
  }
  return processes;
}

}  // namespace

Origin Origin::now() {
  Origin origin;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &origin.mask);
  origin.group = ::getpgrp();
  struct sigaction pipe {};
  ::sigaction(SIGPIPE, nullptr, &pipe);
  origin.ignores_pipe = pipe.sa_handler == SIG_IGN;
  return origin;
}

std::vector<pid_t> descendants_of(pid_t root,
                                  const std::vector<std::pair<pid_t, pid_t>>& processes) {
  std::vector<pid_t> found;
  std::vector<pid_t> parents = {root};
  while (!parents.empty()) {
    const pid_t parent = parents.back();
    parents.pop_back();
    for (const auto& [pid, its_parent] : processes) {
      if (its_parent != parent || pid == root) continue;
      if (std::find(found.begin(), found.end(), pid) != found.end()) continue;
      found.push_back(pid);
      parents.push_back(pid);
    }
  }
  return found;
}

std::vector<pid_t> contained_processes() {
  std::vector<std::pair<pid_t, pid_t>> processes = all_processes();
  for (const pid_t pid : descendants_of(::getpid(), processes)) {
    if (!is_daemon(pid)) continue;
    std::erase_if(processes, [&](const auto& one) { return one.first == pid; });
  }
  return descendants_of(::getpid(), processes);
}

void signal_processes(int number, const std::vector<pid_t>& processes, pid_t group) {
  if (group > 0) ::kill(-group, number);
  for (const pid_t pid : processes) {
    if (group <= 0 || ::getpgid(pid) != group) ::kill(pid, number);
  }
}

Job::Job(std::vector<std::string> words, Origin origin)
    : words_(std::move(words)),
      origin_(origin),
      terminal_(::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)),
      wants_terminal_(::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1) {}

Job::~Job() {
  if (terminal_ >= 0) ::close(terminal_);
  if (report_ >= 0) ::close(report_);
}

bool Job::is_ours_to_give() const {
  return terminal_ >= 0 && ::tcgetpgrp(terminal_) == origin_.group;
}

std::optional<Job::Failure> Job::start(const std::vector<std::string>& environment) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  std::array<int, 2> report{-1, -1};
  if (::pipe2(report.data(), O_CLOEXEC | O_NONBLOCK) != 0) return Failure{kOsError, errno};
  was_in_foreground_ = wants_terminal_ && is_ours_to_give();
  const std::vector<std::string> merged = merged_environment(environment);
  const Launch launch{
      pointers(words_), pointers(merged), &origin_, ::getpid(), was_in_foreground_ ? terminal_ : -1,
      report[1]};
  pid_ = ::fork();
  const int fork_error = errno;
  if (pid_ == 0) become_command(launch);
  ::close(report[1]);
  if (pid_ < 0) {
    ::close(report[0]);
    return Failure{kOsError, fork_error};
  }
  ::setpgid(pid_, pid_);  // On both sides, so that neither has to wait for the other.
  report_ = report[0];
  leader_lives_ = true;
  return std::nullopt;
}

std::string Job::why(const std::string& word, int error) {
  const std::string reason = std::strerror(error);
  const bool searched = word.find('/') == std::string::npos;
  struct stat found {};
  const bool exists = !searched && ::stat(word.c_str(), &found) == 0;
  if (error == ENOENT && searched) return reason + "; it is in no folder of PATH";
  if (error == ENOENT && exists) return reason + ": what its first line names, to run it with";
  if (error != EACCES || !exists) return reason;
  if (S_ISDIR(found.st_mode)) return reason + "; it is a directory";
  if ((found.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)) != 0U) return reason;
  return reason + "; it may not be executed: chmod +x";
}

void Job::signal_group(int number) const {
  if (leader_lives_) ::kill(-pid_, number);
}

void Job::signal_all(int number) const {
  signal_processes(number, contained_processes(), leader_lives_ ? pid_ : 0);
}

std::vector<keeping::Event> Job::reap() {
  std::vector<keeping::Event> events;
  if (pid_ < 0) return events;
  while (true) {
    int status = 0;
    const pid_t pid = ::waitpid(-1, &status, WNOHANG | WUNTRACED);
    if (pid < 0 && errno == EINTR) continue;
    if (pid < 0 || (pid == 0 && !leader_lives_ && contained_processes().empty())) {
      events.emplace_back(keeping::AllGone{});
      pid_ = -1;
      return events;
    }
    if (pid == 0) return events;
    if (pid != pid_) continue;
    if (WIFSTOPPED(status)) {
      events.emplace_back(keeping::CommandStopped{WSTOPSIG(status)});
      continue;
    }
    events.push_back(end_of_leader(status));
    if (pid_ < 0) return events;
  }
}

keeping::Event Job::end_of_leader(int status) {
  take_terminal();
  leader_lives_ = false;
  if (const int error = take_report(); error != 0) {
    failure_ = {error == ENOENT ? kNotFound : kCannotExecute, error};
    pid_ = -1;
    return keeping::StartFailed{failure_.code};
  }
  return keeping::CommandEnded{WIFEXITED(status) ? keeping::Ending{WEXITSTATUS(status), 0}
                                                 : keeping::Ending{-1, WTERMSIG(status)},
                               was_in_foreground_};
}

int Job::take_report() {
  int error = 0;
  if (::read(report_, &error, sizeof error) != sizeof error) error = 0;
  ::close(std::exchange(report_, -1));
  return error;
}

void Job::give_terminal() {
  if (pid_ < 0 || !wants_terminal_ || !is_ours_to_give()) return;
  if (::tcsetpgrp(terminal_, pid_) == 0) was_in_foreground_ = true;
}

bool Job::claim_terminal() {
  wants_terminal_ = true;
  give_terminal();
  return terminal_ >= 0 && ::tcgetpgrp(terminal_) == pid_;
}

void Job::take_terminal() const {
  if (pid_ > 0 && terminal_ >= 0 && ::tcgetpgrp(terminal_) == pid_) {
    ::tcsetpgrp(terminal_, origin_.group);
  }
}

}  // namespace latchkey::app
