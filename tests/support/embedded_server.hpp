#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "latchkey/deadline.hpp"
#include "support/child.hpp"
#include "support/temp_dir.hpp"

namespace latchkey::test_support {

struct EmbeddedOptions {
  std::vector<std::string> prefix;       ///< A program, with its words, that becomes the server.
  std::vector<std::string> arguments;    ///< On top of those that every server of a test gets.
  std::vector<std::string> environment;  ///< "NAME=value", on top of our own.
  std::filesystem::path data;            ///< Empty: in the folder that goes with the object.
};

/// `latchkey serve` as a process of its own, with a folder and a port that stay the same over kills
/// and restarts; it grants the time-outs the Apache servers of the tests grant. Every word is
/// answered.
///
///     EmbeddedServer server(command);
///     server.start();
///     auto session = Session::open(server.connect_string(), deadline_in(5s));
///     server.kill();
///     server.start();  // Same port, same data.
///
/// The destructor kills the process and removes the folder.
/// Thread safety: one thread at a time, except connect_string() and word(): any thread.
class EmbeddedServer {
 public:
  /// `command` is the program.
  explicit EmbeddedServer(std::string command, EmbeddedOptions options = {});

  /// Returns when it serves; nothing to do if it runs. Throws std::runtime_error if it does not.
  void start(Deadline deadline = deadline_in(std::chrono::seconds(60)));
  /// Starts the process and does not wait.
  void launch();
  void kill();
  /// The process stands still but its sockets stay open.
  void pause();
  void resume();
  [[nodiscard]] bool running() { return process_ && process_->running(); }
  /// Of the process that launch() or start() made.
  [[nodiscard]] pid_t pid() const { return process_->pid(); }
  /// How it ended by itself; nothing if it runs on.
  [[nodiscard]] std::optional<ExitStatus> wait(Deadline deadline) {
    return process_->wait(deadline);
  }

  /// The most that the process ever held in memory, in MiB.
  [[nodiscard]] std::size_t most_memory_mb() const;

  [[nodiscard]] std::filesystem::path data() const;
  /// Everything that its processes have said since the last launch().
  [[nodiscard]] std::string log() const;
  [[nodiscard]] std::string connect_string() const;
  [[nodiscard]] std::string word(std::string_view word) const;

 private:
  [[nodiscard]] std::filesystem::path log_file() const { return folder_.path() / "log"; }

  std::string command_;
  EmbeddedOptions options_;
  TempDir folder_;
  std::uint16_t port_;
  std::unique_ptr<Child> process_;
};

}  // namespace latchkey::test_support
