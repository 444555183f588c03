#include <algorithm>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "manual.hpp"
#include "public_commands.hpp"

namespace latchkey::app {
namespace {

struct Words {
  std::vector<std::string> all;     ///< Every option.
  std::vector<std::string> files;   ///< Those that want a file.
  std::vector<std::string> valued;  ///< Those that want anything.
  bool names = false;               ///< The first argument is a lock.
};

std::vector<std::string> option_names(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

bool wants_file(const CLI::Option& option) {
  const std::string& form = option.get_option_text();
  return form == "FILE" || form == "DIR";
}

std::vector<const CLI::Option*> options_of(const CLI::App& command) {
  return command.get_options([](const CLI::Option* one) { return !one->get_group().empty(); });
}

Words words_of(const CLI::App& command) {
  Words words;
  for (const CLI::Option* option : options_of(command)) {
    const std::vector<std::string> names = option_names(*option);
    words.all.insert(words.all.end(), names.begin(), names.end());
    if (option->get_positional()) words.names = words.names || option->get_name(true) == "NAME";
    if (names.empty() || option->get_items_expected_max() == 0) continue;
    auto& list = wants_file(*option) ? words.files : words.valued;
    list.insert(list.end(), names.begin(), names.end());
  }
  return words;
}

/// For a shell's single quotes.
std::string in_quotes(std::string text) {
  for (std::size_t at = text.find('\''); at != std::string::npos; at = text.find('\'', at + 4)) {
    text.replace(at, 1, R"('\'')");
  }
  return "'" + text + "'";
}

std::string pattern(const std::vector<std::string>& words) {
  return words.empty() ? "''" : fmt::format("{}", fmt::join(words, "|"));
}

}  // namespace

std::string bash_completion(const CLI::App& root) {
  std::string cases;
  std::vector<std::string> commands;
  for (const CLI::App* command : public_commands(root)) {
    const Words words = words_of(*command);
    commands.push_back(command->get_name());
    cases += fmt::format("    {})\n      options='{}'\n", command->get_name(),
                         fmt::join(words.all, " "));
    cases += fmt::format(
        "      case $before in\n        {}) COMPREPLY=($(compgen -f -- \"$word\")); "
        "return ;;\n        {}) return ;;\n      esac\n",
        pattern(words.files), pattern(words.valued));
    if (words.names) cases += "      names=yes\n";
    cases += "      ;;\n";
  }
  return fmt::format(R"sh(# bash completion for latchkey; made by latchkey generate
_latchkey() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} options= names=
  if [ "$COMP_CWORD" = 1 ]; then
    COMPREPLY=($(compgen -W '{} --help --version' -- "$word"))
    return
  fi
  case ${{COMP_WORDS[1]}} in
{}  esac
  if [ "${{word#-}}" != "$word" ]; then
    COMPREPLY=($(compgen -W "$options" -- "$word"))
  elif [ -n "$names" ]; then
    names=$(timeout "${{LATCHKEY_COMPLETION_WAIT:-1}}" latchkey ls --names 2>/dev/null)
    COMPREPLY=($(compgen -W "$names" -- "$word"))
  fi
}}
complete -o default -F _latchkey latchkey
)sh",
                     fmt::join(commands, " "), cases);
}

std::string zsh_completion(const CLI::App& root) {
  // In brackets and with colons of its own meaning.
  const auto described = [](std::string text) {
    std::string result;
    for (const char letter : text) {
      if (letter == '[' || letter == ']' || letter == ':' || letter == '\\') result += '\\';
      result += letter;
    }
    return result;
  };
  std::string list;
  std::string cases;
  for (const CLI::App* command : public_commands(root)) {
    list += fmt::format("    {}\n", in_quotes(described(command->get_name()) + ":" +
                                              described(command->get_description())));
    cases += fmt::format("    {})\n      _arguments -s", command->get_name());
    for (const CLI::Option* option : options_of(*command)) {
      for (const std::string& name : option_names(*option)) {
        std::string spec = name + "[" + described(option->get_description()) + "]";
        if (option->get_items_expected_max() > 0) {
          spec += wants_file(*option) ? ":file:_files" : ":value: ";
        }
        cases += " \\\n        " + in_quotes(spec);
      }
    }
    if (words_of(*command).names) cases += " \\\n        '1:lock:_latchkey_locks'";
    cases += " \\\n        '*::command:_normal'\n      ;;\n";
  }
  return fmt::format(R"sh(#compdef latchkey
# zsh completion for latchkey; made by latchkey generate
_latchkey_locks() {{
  local -a locks
  locks=(${{(f)"$(timeout ${{LATCHKEY_COMPLETION_WAIT:-1}} latchkey ls --names 2>/dev/null)"}})
  compadd -a locks
}}
_latchkey() {{
  local -a commands
  commands=(
{}  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local chosen=$words[2]
  shift words
  (( CURRENT-- ))
  case $chosen in
{}  esac
}}
_latchkey "$@"
)sh",
                     list, cases);
}

std::string fish_completion(const CLI::App& root) {
  std::string text = "# fish completion for latchkey; made by latchkey generate\n";
  text +=
      "function __latchkey_locks\n"
      "  set -l wait 1\n"
      "  set -q LATCHKEY_COMPLETION_WAIT; and set wait $LATCHKEY_COMPLETION_WAIT\n"
      "  timeout $wait latchkey ls --names 2>/dev/null\n"
      "end\n"
      "complete -c latchkey -f\n";
  for (const CLI::App* command : public_commands(root)) {
    const std::string& name = command->get_name();
    text += fmt::format("complete -c latchkey -n __fish_use_subcommand -a {} -d {}\n", name,
                        in_quotes(command->get_description()));
    const std::string when = fmt::format("-n '__fish_seen_subcommand_from {}'", name);
    if (words_of(*command).names) {
      text += fmt::format("complete -c latchkey {} -a '(__latchkey_locks)'\n", when);
    }
    for (const CLI::Option* option : options_of(*command)) {
      if (option_names(*option).empty()) continue;
      std::string line = "complete -c latchkey " + when;
      for (const std::string& letter : option->get_snames()) line += " -s " + letter;
      for (const std::string& word : option->get_lnames()) line += " -l " + word;
      if (option->get_items_expected_max() > 0) line += wants_file(*option) ? " -r -F" : " -x";
      text += line + " -d " + in_quotes(option->get_description()) + "\n";
    }
  }
  return text;
}

}  // namespace latchkey::app
