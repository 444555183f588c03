#pragma once

#include <string>
#include <vector>

#include <CLI/App.hpp>

#include "command.hpp"

/// Manual pages and completions, made from the same options and texts as the help: whatever is
/// added to a subcommand is in all of them.
namespace latchkey::app {

struct GeneratedFile {
  std::string name;
  std::string text;
};

/// "latchkey.1" and "latchkey-run.1" and so on, for man(1). `root` has every subcommand.
[[nodiscard]] std::vector<GeneratedFile> man_pages(const CLI::App& root);

/// For each of the shells: subcommands, options, and names of locks where one is wanted.
[[nodiscard]] std::string bash_completion(const CLI::App& root);
[[nodiscard]] std::string zsh_completion(const CLI::App& root);
[[nodiscard]] std::string fish_completion(const CLI::App& root);

/// `latchkey generate DIR`: writes them all, below DIR/man1, DIR/bash, DIR/zsh and DIR/fish. For
/// the build, not for people.
Command add_generate(CLI::App& app);

}  // namespace latchkey::app
