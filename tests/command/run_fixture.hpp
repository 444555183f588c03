#pragma once

#include <signal.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "command/invocation.hpp"
#include "command/terminal_child.hpp"
#include "latchkey/mutex.hpp"
#include "support/eventually.hpp"
#include "support/shared_servers.hpp"
#include "support/temp_dir.hpp"

namespace latchkey::test_support {

using namespace std::chrono_literals;

enum class RunService { kApache, kEmbedded };

/// `latchkey run` and its kin against real servers, each test with a lock of its own.
class RunCommand : public testing::TestWithParam<RunService> {
 protected:
  RunCommand()
      : connect_(GetParam() == RunService::kApache ? shared_server().connect_string()
                                                   : shared_embedded().connect_string()) {
    user_.set("LATCHKEY_CONNECT", connect_);
    user_.configure("session-timeout = 40s\n");  // A busy machine takes no lock away.
  }

  static Deadline soon() { return deadline_in(60s); }
  static ExitStatus code(int code) { return {code, 0}; }

  Ran run(const std::vector<std::string>& words) const { return user_.run(words); }
  std::unique_ptr<Child> start(const std::vector<std::string>& words) const {
    ChildOptions options;
    options.environment = user_.environment();
    options.is_job = true;
    return std::make_unique<Child>(user_.command(words), options);
  }
  /// The same below a shell, which runs `shell` with the command as "$@".
  std::unique_ptr<Child> start_in(const std::string& shell,
                                  const std::vector<std::string>& words) const {
    std::vector<std::string> all = {"sh", "-c", shell, "sh"};
    for (const std::string& word : user_.command(words)) all.push_back(word);
    return std::make_unique<Child>(all, ChildOptions{.environment = user_.environment()});
  }
  TerminalChild on_terminal(const std::vector<std::string>& command) const {
    return TerminalChild(command, user_.environment());
  }
  /// A terminal with an interactive shell that has job control.
  TerminalChild shell() const {
    return on_terminal({"bash", "--norc", "--noprofile", "--noediting", "-i"});
  }
  /// `latchkey` with these words, for a shell.
  std::string line(const std::vector<std::string>& words) const {
    std::string text;
    for (const std::string& word : user_.command(words)) text += "'" + word + "' ";
    return text;
  }

  [[nodiscard]] std::string file(const std::string& name) const {
    return (folder_.path() / name).string();
  }
  /// Waits until the file holds a number, and returns it.
  [[nodiscard]] pid_t pid_in(const std::string& path) const {
    if (!eventually([&] { return contents(path).ends_with('\n'); }, soon())) {
      throw std::runtime_error("nobody has written " + path);  // 0 would be all of us.
    }
    return std::stoi(contents(path));
  }
  [[nodiscard]] static bool is_gone(pid_t pid) { return ::kill(pid, 0) != 0; }
  [[nodiscard]] static bool goes(pid_t pid) {
    return eventually([&] { return is_gone(pid); }, soon());
  }
  /// As /proc has it: 'S', 'T', ...; 0 if there is no such process.
  [[nodiscard]] static char state_of(pid_t pid) {
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::string text;
    std::getline(stat, text);
    const std::size_t end = text.rfind(')');
    return end == std::string::npos ? '\0' : text.at(end + 2);
  }
  [[nodiscard]] static bool comes_to(pid_t pid, char state) {
    return eventually([&] { return state_of(pid) == state; }, soon());
  }
  /// The process that keeps the session of the one that was started.
  [[nodiscard]] static pid_t keeper_of(pid_t front) {
    const std::string file =
        "/proc/" + std::to_string(front) + "/task/" + std::to_string(front) + "/children";
    std::string children;  // It may be gone at the next look.
    if (!eventually([&] { return !(children = contents(file)).empty(); }, soon())) {
      throw std::runtime_error("there is no keeper");  // 0 would be all of us.
    }
    return std::stoi(children);
  }

  /// Nobody has the lock, or will have it in a moment.
  [[nodiscard]] bool is_free() const { return run({"run", "-n", name_, "true"}).status == code(0); }
  /// The same for those who have just seen it end: a queue may be told of a little later.
  [[nodiscard]] bool comes_free() const {
    return eventually([&] { return is_free(); }, soon());
  }
  /// A time-out that runs out soon, though not on somebody whom a busy machine keeps waiting.
  static constexpr const char* kQuickTimeout = "5s";
  /// For longer than that somebody else has it.
  [[nodiscard]] bool is_kept() const {
    return run({"run", "-w", "11", "-E", "99", name_, "true"}).status == code(99);
  }
  /// A command that writes its pid down and stays.
  [[nodiscard]] std::unique_ptr<Child> hold(std::vector<std::string> options = {}) const {
    std::vector<std::string> words = {"run"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(),
                 {name_, "--", "sh", "-c", "echo $$ > " + file("pid") + "; exec sleep 1000"});
    return start(words);
  }
  pid_t held_by() const { return pid_in(file("pid")); }

  [[nodiscard]] Session open(SessionOptions options = {}) const {
    options.timeout = 60s;  // A busy machine ends none of them.
    return Session::open(connect_, std::move(options), soon()).value();
  }
  /// The entries in the lock's directory.
  [[nodiscard]] static std::size_t entries(Session& session, const std::string& path) {
    const auto children = session.children(path, soon());
    return children ? children->names.size() : 0;
  }

  NewUser user_;
  const std::string connect_;
  const std::string name_ = fresh_path();
  const TempDir folder_;
};

}  // namespace latchkey::test_support
