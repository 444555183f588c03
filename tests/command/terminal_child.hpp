#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "latchkey/deadline.hpp"
#include "support/child.hpp"

namespace latchkey::test_support {

/// Keys.
inline constexpr std::string_view kCtrlC = "\x03";
inline constexpr std::string_view kCtrlZ = "\x1a";

/// A program on a terminal of its own, 24 lines of 100 columns.
///
///     TerminalChild watch({command, "watch"});
///     ASSERT_TRUE(watch.shows("2 locks", deadline_in(20s)));
///     watch.type("q");
///     EXPECT_EQ(watch.wait(deadline_in(20s)), (ExitStatus{0, 0}));
///
/// The destructor kills it. Thread safety: one thread at a time.
class TerminalChild {
 public:
  /// `environment` is "NAME=value", on top of our own.
  explicit TerminalChild(const std::vector<std::string>& command,
                         const std::vector<std::string>& environment = {});
  ~TerminalChild();
  TerminalChild(const TerminalChild&) = delete;
  TerminalChild& operator=(const TerminalChild&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  /// The terminal is gone, as when its window is closed.
  void hang_up();
  void type(std::string_view keys);
  /// Reads until `part` has come after what an earlier call has found. False at the deadline.
  [[nodiscard]] bool shows(std::string_view part, Deadline deadline);
  /// Everything so far.
  [[nodiscard]] const std::string& output() const { return output_; }
  /// Nothing: still running at the deadline. Reads to the end of the output.
  [[nodiscard]] std::optional<ExitStatus> wait(Deadline deadline);

 private:
  /// False: nothing more will come, or not in time.
  bool read_some(Deadline deadline);

  pid_t pid_ = -1;
  int master_ = -1;
  std::string output_;
  std::size_t seen_ = 0;
};

}  // namespace latchkey::test_support
