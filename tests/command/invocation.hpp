#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "support/child.hpp"
#include "support/temp_dir.hpp"

namespace latchkey::test_support {

/// What a command came to.
struct Ran {
  ExitStatus status;
  std::string out;
  std::string err;
};

/// A user with an empty home: `latchkey` as a new machine sees it. What it leaves
/// running is killed in the end.
///
///     NewUser ann;
///     EXPECT_EQ(ann.run({"ls"}).status, (ExitStatus{0, 0}));
///
/// Thread safety: run() any thread, the rest one thread at a time.
class NewUser {
 public:
  NewUser();
  ~NewUser();

  /// `latchkey` with these words, to its end.
  Ran run(std::vector<std::string> words, std::vector<std::string> more_environment = {}) const;
  /// The words to start it with, and the environment: for those who want to do more.
  [[nodiscard]] std::vector<std::string> command(std::vector<std::string> words) const;
  [[nodiscard]] std::vector<std::string> environment() const;
  void set(const std::string& name, const std::string& value);
  /// What its configuration file says.
  void configure(const std::string& text);

  [[nodiscard]] std::filesystem::path home() const { return folder_.path(); }
  [[nodiscard]] std::filesystem::path state() const { return state_; }
  /// The processes that serve it.
  [[nodiscard]] std::vector<pid_t> servers() const;
  /// Everything of Latchkey's that runs for this user.
  [[nodiscard]] std::vector<pid_t> processes() const;
  /// "unix:..."
  [[nodiscard]] std::string address() const;

 private:
  TempDir folder_;
  std::filesystem::path state_;
  std::vector<std::string> environment_;
};

[[nodiscard]] std::string contents(const std::filesystem::path& file);

/// The processes with `part` in their command line.
[[nodiscard]] std::vector<pid_t> processes_with(const std::string& part);

}  // namespace latchkey::test_support
