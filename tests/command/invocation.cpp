#include "command/invocation.hpp"

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <fstream>
#include <sstream>

#include "support/eventually.hpp"

namespace latchkey::test_support {

std::string contents(const std::filesystem::path& file) {
  const std::ifstream input(file);
  std::ostringstream text;
  text << input.rdbuf();  // A process that goes while its file is read is no reason to throw.
  return text.str();
}

std::vector<pid_t> processes_with(const std::string& part) {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    pid_t pid = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ec != std::errc()) continue;
    std::string words = contents(entry.path() / "cmdline");
    std::ranges::replace(words, '\0', ' ');
    if (words.find(part) != std::string::npos) found.push_back(pid);
  }
  return found;
}

NewUser::NewUser() : state_(folder_.path() / ".local/state/latchkey") {
  environment_ = {"HOME=" + folder_.path().string(),
                  "XDG_STATE_HOME=",
                  "XDG_RUNTIME_DIR=",
                  "XDG_CONFIG_HOME=",
                  "LATCHKEY_CONFIG=",
                  "LATCHKEY_CONNECT="};
}

NewUser::~NewUser() {
  // A keeper whose server has gone starts another, so all of them, until there is none.
  const auto end_all = [&] {
    const std::vector<pid_t> left = processes();
    for (const pid_t pid : left) ::kill(pid, SIGKILL);
    return left.empty();
  };
  static_cast<void>(eventually(end_all, deadline_in(std::chrono::seconds(20))));
}

std::vector<pid_t> NewUser::processes() const {
  std::vector<pid_t> found;
  for (const pid_t pid : processes_with("latchkey")) {
    const std::string variables = contents("/proc/" + std::to_string(pid) + "/environ");
    if (variables.find("HOME=" + folder_.path().string() + '\0') != std::string::npos) {
      found.push_back(pid);
    }
  }
  return found;
}

void NewUser::set(const std::string& name, const std::string& value) {
  std::erase_if(environment_, [&](const auto& one) { return one.starts_with(name + "="); });
  environment_.push_back(name + "=" + value);
  if (name == "XDG_STATE_HOME") state_ = std::filesystem::path(value) / "latchkey";
}

void NewUser::configure(const std::string& text) {
  const auto file = folder_.path() / "latchkey.conf";
  std::ofstream(file) << text;
  set("LATCHKEY_CONFIG", file.string());
}

std::vector<std::string> NewUser::environment() const { return environment_; }

std::vector<std::string> NewUser::command(std::vector<std::string> words) const {
  words.insert(words.begin(), LATCHKEY_COMMAND);
  return words;
}

Ran NewUser::run(std::vector<std::string> words, std::vector<std::string> more) const {
  static std::atomic<int> number = 0;
  const std::string name = "run-" + std::to_string(++number);
  const auto out = folder_.path() / (name + ".out");
  const auto err = folder_.path() / (name + ".err");
  std::vector<std::string> shell = {
      "sh", "-c",         R"(out=$1 err=$2; shift 2; "$@" >"$out" 2>"$err")",
      "sh", out.string(), err.string()};
  const std::vector<std::string> all = command(std::move(words));
  shell.insert(shell.end(), all.begin(), all.end());
  ChildOptions options;
  options.environment = environment_;
  options.environment.insert(options.environment.end(), more.begin(), more.end());
  Child child(shell, options);
  Ran ran;
  // Longer than any command here is told to wait.
  ran.status = child.wait(deadline_in(std::chrono::seconds(120))).value_or(ExitStatus{});
  ran.out = contents(out);
  ran.err = contents(err);
  return ran;
}

std::vector<pid_t> NewUser::servers() const {
  return processes_with("serve --data " + state_.string() + "/data");
}

std::string NewUser::address() const {
  const std::string note = contents(state_ / "server.lock");
  return note.substr(0, note.find('\n'));
}

}  // namespace latchkey::test_support
