#include "support/child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <fstream>
#include <functional>
#include <iterator>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "support/eventually.hpp"

namespace latchkey::test_support {

namespace {

/// Runs jobs on one thread that lives as long as the process. The kernel's parent-death signal is
/// sent when the forking *thread* ends, so a child forked by a passing thread would die with it.
class Spawner {
 public:
  static Spawner& instance() {
    static auto* const spawner = new Spawner;  // Never destroyed: its thread never ends.
    return *spawner;
  }

  void run(const std::function<void()>& job) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return job_ == nullptr; });
    job_ = &job;
    changed_.notify_all();
    changed_.wait(lock, [&] { return job_ != &job; });
  }

 private:
  Spawner() {
    std::thread([this] { serve(); }).detach();
  }

  void serve() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return job_ != nullptr; });
      (*job_)();
      job_ = nullptr;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void()>* job_ = nullptr;
};

struct Pipe {
  Fd read;
  Fd write;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw std::system_error(errno, std::generic_category(), "pipe2");
  }
  return {Fd(ends[0]), Fd(ends[1])};
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

/// Everything the child needs between fork and exec, where it must not allocate.
struct Launch {
  std::vector<char*> argv;
  std::vector<char*> envp;
  const char* folder = nullptr;
  int in = -1;
  int out = -1;
  int err = -1;  ///< -1 keeps ours.
  int report = -1;
  pid_t parent = -1;
  bool is_job = false;
};

[[noreturn]] void become(const Launch& launch) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != launch.parent) ::_exit(127);  // The parent ended before the line above.
  if (launch.is_job) ::setpgid(0, 0);
  reset_signals();
  ::dup2(launch.in, STDIN_FILENO);
  ::dup2(launch.out, STDOUT_FILENO);
  if (launch.err >= 0) ::dup2(launch.err, STDERR_FILENO);
  ::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
  if (launch.folder == nullptr || ::chdir(launch.folder) == 0) {
    ::execvpe(launch.argv[0], launch.argv.data(), launch.envp.data());
  }
  const int error = errno;
  static_cast<void>(!::write(launch.report, &error, sizeof error));
  ::_exit(127);
}

pid_t spawn(const Launch& launch) {
  pid_t pid = -1;
  int error = 0;
  Spawner::instance().run([&] {
    pid = ::fork();
    error = errno;
    if (pid == 0) become(launch);
  });
  if (pid < 0) throw std::system_error(error, std::generic_category(), "fork");
  return pid;
}

std::vector<std::string> merged_environment(const std::vector<std::string>& extra) {
  std::vector<std::string> result = extra;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('=') + 1);
    bool replaced = false;
    for (const std::string& own : extra) replaced = replaced || own.starts_with(name);
    if (!replaced) result.emplace_back(text);
  }
  return result;
}

}  // namespace

void reset_signals() {
  sigset_t none;
  ::sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
  for (const int number : {SIGPIPE, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU}) {
    ::signal(number, SIG_DFL);
  }
}

Child::Child(const std::vector<std::string>& command, const ChildOptions& options) {
  std::vector<std::string> words = command;
  std::vector<std::string> environment = merged_environment(options.environment);
  Pipe input = make_pipe();
  Pipe output = make_pipe();
  Pipe report = make_pipe();
  Launch launch{pointers(words),
                pointers(environment),
                nullptr,
                input.read.get(),
                output.write.get(),
                -1,
                report.write.get(),
                ::getpid()};
  if (!options.folder.empty()) launch.folder = options.folder.c_str();
  launch.is_job = options.is_job;
  Fd file;
  if (!options.output_file.empty()) {
    file = Fd(::open(options.output_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    if (!file) throw std::system_error(errno, std::generic_category(), options.output_file);
    launch.out = launch.err = file.get();
  }
  pid_ = spawn(launch);
  input.read.reset();
  output.write.reset();
  report.write.reset();

  int error = 0;
  if (::read(report.read.get(), &error, sizeof error) == sizeof error) {
    ::waitpid(pid_, nullptr, 0);
    throw std::system_error(error, std::generic_category(), "cannot run " + command.at(0));
  }
  ::fcntl(output.read.get(), F_SETFL, O_NONBLOCK);
  stdin_ = std::move(input.write);
  stdout_ = std::move(output.read);
}

Child::~Child() {
  if (!running()) return;
  signal(SIGKILL);
  static_cast<void>(wait(Deadline::never()));
}

void Child::look(int wait_flags) {
  if (exit_) return;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG | wait_flags) != pid_) return;
  if (WIFSTOPPED(status)) {
    paused_ = true;
  } else {
    exit_ =
        WIFEXITED(status) ? ExitStatus{WEXITSTATUS(status), 0} : ExitStatus{-1, WTERMSIG(status)};
  }
}

bool Child::running() {
  look(0);
  return !exit_;
}

void Child::signal(int number) {
  if (running()) ::kill(pid_, number);
}

void Child::pause() {
  paused_ = false;
  signal(SIGSTOP);
  static_cast<void>(eventually([&] {
    look(WUNTRACED);
    return paused_ || exit_;
  }));
}

void Child::resume() { signal(SIGCONT); }

bool Child::write(std::string_view text) {
  // A program that is gone must not take the test with it, so SIGPIPE is swallowed here.
  sigset_t pipe_signal;
  sigset_t before;
  ::sigemptyset(&pipe_signal);
  ::sigaddset(&pipe_signal, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
  bool written = true;
  while (written && !text.empty()) {
    const ssize_t count = ::write(stdin_.get(), text.data(), text.size());
    if (count > 0) text.remove_prefix(static_cast<std::size_t>(count));
    written = count > 0 || (count < 0 && errno == EINTR);
  }
  const timespec at_once{0, 0};
  if (!written) ::sigtimedwait(&pipe_signal, nullptr, &at_once);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return written;
}

bool Child::collect_output() {
  std::array<char, 4096> chunk;
  while (stdout_) {
    const ssize_t got = ::read(stdout_.get(), chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return true;
    if (got <= 0) {
      stdout_.reset();
      if (!partial_line_.empty()) lines_.push_back(std::exchange(partial_line_, {}));
      break;
    }
    for (const char c : std::string_view(chunk.data(), static_cast<std::size_t>(got))) {
      if (c == '\n') {
        lines_.push_back(std::exchange(partial_line_, {}));
      } else {
        partial_line_.push_back(c);
      }
    }
  }
  return false;
}

std::optional<std::string> Child::next_line(Deadline deadline) {
  while (lines_.empty()) {
    const bool open = collect_output();
    if (!lines_.empty()) break;
    if (!open || !wait_ready(stdout_.get(), POLLIN, deadline)) return std::nullopt;
  }
  std::string line = std::move(lines_.front());
  lines_.pop_front();
  return line;
}

std::optional<std::string> Child::wait_for_line(std::string_view part, Deadline deadline) {
  while (true) {
    std::optional<std::string> line = next_line(deadline);
    if (!line || line->find(part) != std::string::npos) return line;
  }
}

std::optional<ExitStatus> Child::wait(Deadline deadline) {
  static_cast<void>(eventually(
      [&] {
        collect_output();
        return !running();
      },
      deadline));
  return exit_;
}

void run_to_end(const std::vector<std::string>& command, const std::filesystem::path& folder) {
  ChildOptions options;
  options.folder = folder;
  options.output_file =
      folder / (std::filesystem::path(command.at(0)).filename().string() + ".log");
  Child child(command, options);
  child.close_stdin();
  const std::optional<ExitStatus> status = child.wait(deadline_in(std::chrono::seconds(60)));
  if (status == ExitStatus{0, 0}) return;
  std::string message = "failed:";
  for (const std::string& word : command) message += ' ' + word;
  std::ifstream output(options.output_file);
  message.append("\n").append(std::istreambuf_iterator<char>(output), {});
  throw std::runtime_error(message);
}

}  // namespace latchkey::test_support
