#pragma once

#include <string>

#include <CLI/App.hpp>

/// How the command line is explained: the same words in the help, in the manual and in complaints.
namespace latchkey::app {

/// How a subcommand is called, with what it cannot do without.
///
///     usage_of(hold);  // "latchkey hold [OPTIONS] --for TIME NAME"
[[nodiscard]] std::string usage_of(const CLI::App& command);

/// What is wrong with the words that `command` got, for whoever typed them.
///
///     there is no option --reson; did you mean --reason?
[[nodiscard]] std::string explain(const CLI::App& command, const CLI::ParseError& error);

/// The form of every help text. For the root, before it gets its subcommands.
class HelpForm : public CLI::Formatter {
 public:
  HelpForm() { label("Positionals", "Arguments"); }

  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
};

}  // namespace latchkey::app
