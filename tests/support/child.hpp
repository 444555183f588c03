#pragma once

#include <sys/types.h>

#include <csignal>
#include <deque>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "latchkey/deadline.hpp"
#include "support/sockets.hpp"

namespace latchkey::test_support {

struct ExitStatus {
  int code = -1;   ///< What the program returned; -1 if a signal ended it.
  int signal = 0;  ///< The signal that ended it, or 0.

  friend bool operator==(const ExitStatus&, const ExitStatus&) = default;
};
inline constexpr ExitStatus kFine{0, 0};
inline constexpr ExitStatus kKilled{-1, SIGKILL};

struct ChildOptions {
  std::filesystem::path folder;          ///< Working folder; empty means ours.
  std::filesystem::path output_file;     ///< Takes stdout and stderr instead of the capture.
  std::vector<std::string> environment;  ///< "NAME=value", on top of our own.
  /// A process group of its own, as a shell gives to each job: without one SIGTSTP does nothing
  /// where the tests themselves are nobody's job.
  bool is_job = false;
};

/// A program started by a test.
///
///     Child worker({program, "--path", "/locks/a"});
///     ASSERT_TRUE(worker.wait_for_line("held", deadline_in(5s)));
///     worker.signal(SIGKILL);
///     EXPECT_EQ(worker.wait(deadline_in(5s)), (ExitStatus{-1, SIGKILL}));
///
/// The kernel kills the program when this process ends in any way, so nothing is left behind by a
/// crash; the destructor kills it too. stdin is a pipe, stdout is captured, stderr is ours.
/// Captured output is read only inside the calls below: a program that writes more than a pipe
/// holds waits until the test looks.
///
/// Thread safety: one thread at a time. The thread that starts a child may end before it.
class Child {
 public:
  /// The program is looked up in PATH. Throws std::system_error if it cannot be executed.
  explicit Child(const std::vector<std::string>& command, const ChildOptions& options = {});
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] bool running();

  /// Does nothing once the program has been seen to end.
  void signal(int number);

  /// SIGSTOP, and returns when every thread of the program has come to a halt; SIGCONT.
  void pause();
  void resume();

  /// Writes to the program's stdin. False: it has closed it.
  bool write(std::string_view text);
  void close_stdin() { stdin_.reset(); }

  /// The next line of stdout without its end. Nothing: the deadline passed or the output ended.
  [[nodiscard]] std::optional<std::string> next_line(Deadline deadline);

  /// Takes lines until one contains `part`, and returns that one.
  [[nodiscard]] std::optional<std::string> wait_for_line(std::string_view part, Deadline deadline);

  /// Nothing: still running at the deadline.
  [[nodiscard]] std::optional<ExitStatus> wait(Deadline deadline);

 private:
  bool collect_output();
  void look(int wait_flags);

  pid_t pid_ = -1;
  Fd stdin_;
  Fd stdout_;
  std::string partial_line_;
  std::deque<std::string> lines_;
  std::optional<ExitStatus> exit_;
  bool paused_ = false;
};

/// Between fork and exec: nothing is blocked or ignored, although the tests may run below nohup or
/// in the background of a script.
void reset_signals();

/// Runs a program to its end. Throws std::runtime_error with its output unless it returns 0.
void run_to_end(const std::vector<std::string>& command, const std::filesystem::path& folder);

}  // namespace latchkey::test_support
