#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace latchkey::app {

/// A program we started: its pid and the end of the pipe that carries its standard output.
/// It is killed by the kernel when we end, and by kill_and_reap() before.
/// Thread safety: one thread at a time.
class Process {
 public:
  /// Where its standard output goes.
  enum class Output { kPipe, kDevNull };

  /// Searches PATH. A program that cannot be started shows as one that ended with code 127.
  Process(const std::vector<std::string>& command, Output output);
  ~Process();
  Process(Process&& other) noexcept;
  Process& operator=(Process&&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  /// -1 without a pipe, and after its end was seen.
  [[nodiscard]] int output() const { return output_; }
  /// Reads what is there; whole lines are appended to `lines`. False at the end of the output.
  bool read_lines(std::vector<std::string>& lines);
  [[nodiscard]] bool has_ended();
  void kill_and_reap();

 private:
  pid_t pid_ = -1;
  int output_ = -1;
  std::string partial_;
};

/// The path of this very program.
[[nodiscard]] std::string own_path();

}  // namespace latchkey::app
