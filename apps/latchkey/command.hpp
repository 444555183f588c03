#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <CLI/App.hpp>

namespace latchkey::app {

/// One subcommand: its place on the command line, and what it does when it was chosen. Its options
/// live as long as `run`.
///
///     Command add_who(CLI::App& app);
struct Command {
  CLI::App* app = nullptr;
  std::function<int()> run;  ///< Returns the exit code.
  /// For those that run a command: its words, which are cut off before the options are parsed.
  std::shared_ptr<std::vector<std::string>> words = nullptr;
};

}  // namespace latchkey::app
