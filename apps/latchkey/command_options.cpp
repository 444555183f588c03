#include "command_options.hpp"

#include <fcntl.h>
#include <string.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <limits>
#include <string_view>

#include <CLI/CLI.hpp>

#include "exit_code.hpp"
#include "lock_name.hpp"
#include "options.hpp"
#include "status_line.hpp"
#include "table.hpp"
#include "values.hpp"
#include "words.hpp"

namespace latchkey::app {
namespace {

constexpr int kSignals = 65;

CLI::Option* add_parsed_duration(CLI::App& command, const std::string& names, const char* form,
                                 const char* help, std::function<void(std::int64_t)> set) {
  const std::string name = names.substr(0, names.find(','));
  const auto take = [name, set = std::move(set)](const std::string& text) {
    const auto ms = parse_duration_or_zero(text);
    if (!ms) throw CLI::ValidationError(name, ms.error().message());
    set(*ms);
  };
  return command.add_option_function<std::string>(names, take, help)->option_text(form);
}

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

Result<int> parse_signal(const std::string& text) {
  std::string name = text;
  std::ranges::transform(name, name.begin(),
                         [](unsigned char letter) { return std::toupper(letter); });
  if (name.starts_with("SIG")) name.erase(0, 3);
  for (int number = 1; number < kSignals; ++number) {
    const char* known = ::sigabbrev_np(number);
    if (name == std::to_string(number) || (known != nullptr && name == known)) return number;
  }
  return Error(Code::kInvalidOption, '"' + text + "\" is no signal; write TERM, INT, HUP or 15");
}

CLI::Option* add_duration_or_zero(CLI::App& command, const std::string& names, std::int64_t& ms,
                                  const char* form, const char* help) {
  return add_parsed_duration(command, names, form, help, [&ms](std::int64_t value) { ms = value; });
}

CLI::Option* add_duration_or_zero(CLI::App& command, const std::string& names,
                                  std::optional<std::int64_t>& ms, const char* form,
                                  const char* help) {
  return add_parsed_duration(command, names, form, help, [&ms](std::int64_t value) { ms = value; });
}

void add_command_options(CLI::App& command, CommandOptions& options) {
  command.add_option("NAME", options.name, "The lock: a name under /locks, or a path from /")
      ->required();
  command.add_option("-c,--command", options.shell_command, "Run this with $SHELL -c")
      ->option_text("STRING");
  constexpr const char* kGroup = "The command's end";
  add_duration_or_zero(command, "--kill-after", options.kill_after_ms, "TIME [5s]",
                       "From the signal to SIGKILL, when a command has to be stopped")
      ->group(kGroup);
  command
      .add_option_function<std::string>(
          "--signal",
          [&options](const std::string& text) {
            const auto number = parse_signal(text);
            if (!number) throw CLI::ValidationError("--signal", number.error().message());
            options.stop_signal = *number;
          },
          "The signal that asks a command to end")
      ->option_text("SIG [TERM]")
      ->group(kGroup);
  add_number(command, "--status-fd", options.status_fd, 0, std::numeric_limits<int>::max(), "N",
             "Write one line of JSON to this descriptor in the end");
  command.add_option("--id", options.id, "Who we are, for those who look")->option_text("TEXT");
  command.add_flag("-v,--verbose", options.verbose, "Say what happens, on standard error");
  add_service_options(command, options.service);
}

void add_wait_options(CLI::App& command, WaitOptions& options) {
  CLI::Option* no_wait = command.add_flag("-n,--nb,--nonblock", options.no_wait,
                                          "Do not wait for others; -v says who is in the way");
  add_duration_or_zero(command, "-w,--wait,--timeout", options.wait_ms, "TIME",
                       "Wait no longer; 5 is five seconds, 0 is -n")
      ->excludes(no_wait);
  add_number(command, "-E,--conflict-exit-code", options.conflict_code, 0, 255, "CODE [1]",
             "The exit code if the lock is not to be had in time");
}

Result<KeepOptions> keep_options(const std::string& command, const CommandOptions& options,
                                 std::vector<std::string> words) {
  const auto wrong = [](std::string text) { return Error(Code::kInvalidOption, std::move(text)); };
  if (!options.shell_command.empty() && !words.empty()) {
    return wrong("-c has the command already; leave out \"" + words.front() + "\"");
  }
  if (!options.shell_command.empty()) {
    const char* shell = std::getenv("SHELL");
    words = {shell != nullptr && *shell != '\0' ? shell : "/bin/sh", "-c", options.shell_command};
  }
  if (words.empty() || words.front().empty()) {
    // Whoever forgets the name has given us the command instead.
    const std::string name = lock_path(options.name) ? options.name : "backup";
    return wrong("what is to be run? The lock's name comes first, then the command: latchkey " +
                 command + " " + name + " -- ./backup.sh");
  }
  if (options.status_fd && ::fcntl(*options.status_fd, F_GETFD) < 0) {
    return wrong("--status-fd " + std::to_string(*options.status_fd) + " is not open");
  }
  KeepOptions keep;
  keep.command = command;
  keep.words = std::move(words);
  keep.rules.stop_signal = options.stop_signal;
  keep.rules.kill_after = std::chrono::milliseconds(options.kill_after_ms);
  keep.status_fd = options.status_fd;
  keep.verbose = options.verbose;
  return keep;
}

std::string held_around(const std::string& service, const std::vector<std::string>& paths) {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  if (service.empty() || variable("LATCHKEY_SERVICE") != service) return {};
  // Several locks have this between them.
  constexpr std::string_view kBetween = ", /";
  std::string held = variable("LATCHKEY_LOCK");
  for (std::size_t at = held.find(kBetween); at != std::string::npos; at = held.find(kBetween)) {
    held.replace(at, kBetween.size(), "\n/");
  }
  held = '\n' + held + '\n';
  for (const std::string& path : paths) {
    if (held.find('\n' + path + '\n') != std::string::npos) return path;
  }
  return {};
}

std::string check_nesting(const CommandOptions& options, const WaitOptions& wait,
                          const std::vector<std::string>& paths, KeepOptions& keep) {
  keep.service = service_name(options.service).value_or(std::string());
  const bool for_ever = wait.waits() && !wait.wait_ms;
  const std::string held = for_ever ? held_around(keep.service, paths) : std::string();
  if (held.empty()) return {};
  return held + " is held by the latchkey run that this one was started in: it would wait for " +
         "itself. Leave out one of them; -n or -w TIME try all the same";
}

std::string reason_of(const CommandOptions& options, const KeepOptions& keep) {
  // The program's name only: its arguments may hold what not everybody should read.
  const std::string what = options.reason.empty() ? file_name(keep.words.front()) : options.reason;
  return options.id.empty() ? what : options.id + ": " + what;
}

int misused(const std::string& command, const std::string& text, std::optional<int> status_fd) {
  say("latchkey {0}: {1}\nSee latchkey {0} --help.\n", command, printable(text));
  if (status_fd) write_status(*status_fd, {.code = kUsage, .error = text});
  return kUsage;
}

}  // namespace latchkey::app
