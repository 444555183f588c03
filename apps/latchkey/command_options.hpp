#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <CLI/App.hpp>

#include "keep.hpp"
#include "latchkey/result.hpp"
#include "service.hpp"

/// What `run`, `once` and `elect` have in common.
namespace latchkey::app {

/// More than anybody has of anything that is given out in permits.
inline constexpr int kMostPermits = 1'000'000;

struct CommandOptions {
  ServiceOptions service;
  std::string name;
  std::string shell_command;  ///< -c
  std::int64_t kill_after_ms = 5'000;
  int stop_signal = SIGTERM;
  std::optional<int> status_fd;
  std::string id;
  std::string reason;
  bool verbose = false;
};

/// How long to wait, and what waiting in vain means to a script. As flock has it.
struct WaitOptions {
  bool no_wait = false;
  std::optional<std::int64_t> wait_ms;
  int conflict_code = 1;

  [[nodiscard]] bool waits() const { return !no_wait && wait_ms != 0; }
};

/// "TERM", "SIGTERM", "term" or "15". Errors: kInvalidOption.
[[nodiscard]] Result<int> parse_signal(const std::string& text);

/// A time that may be 0.
CLI::Option* add_duration_or_zero(CLI::App& command, const std::string& names, std::int64_t& ms,
                                  const char* form, const char* help);
CLI::Option* add_duration_or_zero(CLI::App& command, const std::string& names,
                                  std::optional<std::int64_t>& ms, const char* form,
                                  const char* help);

/// NAME, the options of the service and those above. `options` has to outlive it.
void add_command_options(CLI::App& command, CommandOptions& options);

/// -n, -w and -E.
void add_wait_options(CLI::App& command, WaitOptions& options);

/// How to run `words`, or the shell command. Errors: kInvalidOption, for what makes no sense.
[[nodiscard]] Result<KeepOptions> keep_options(const std::string& command,
                                               const CommandOptions& options,
                                               std::vector<std::string> words);

/// Which of `paths` the surrounding `latchkey run` holds on `service`, as it tells its command in
/// LATCHKEY_LOCK: whoever wants to have that alone, inside, waits for itself. Empty: none.
[[nodiscard]] std::string held_around(const std::string& service,
                                      const std::vector<std::string>& paths);

/// The service's name into `keep`, unless the wait would be for ourselves and for ever: then what
/// is wrong; empty if nothing is.
[[nodiscard]] std::string check_nesting(const CommandOptions& options, const WaitOptions& wait,
                                        const std::vector<std::string>& paths, KeepOptions& keep);

/// What is shown to those who look at the queue: who we are and what for.
[[nodiscard]] std::string reason_of(const CommandOptions& options, const KeepOptions& keep);

/// Says what is wrong with the way the subcommand was called; returns kUsage.
int misused(const std::string& command, const std::string& text,
            std::optional<int> status_fd = std::nullopt);

}  // namespace latchkey::app
