#include "usage.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "values.hpp"

namespace latchkey::app {
namespace {

std::vector<std::string> names_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

/// What others call it.
constexpr std::array<std::array<std::string_view, 2>, 10> kSynonyms{{
    {"--timeout", "--wait"},
    {"--port", "--listen"},
    {"--host", "--listen"},
    {"--bind", "--listen"},
    {"--address", "--listen"},
    {"--socket", "--unix"},
    {"--data-dir", "--data"},
    {"--server", "--connect"},
    {"--host", "--connect"},
    {"--zookeeper", "--connect"},
}};

/// The option that was probably meant, or nothing.
std::string meant_by(const CLI::App& command, const std::string& name) {
  for (const auto& [theirs, ours] : kSynonyms) {
    if (name == theirs && command.get_option_no_throw(std::string(ours)) != nullptr) {
      return std::string(ours);
    }
  }
  return closest(name, names_of(command));
}

/// "--for TIME", without a default behind it.
std::string call_of(const CLI::Option& option) {
  const std::string& form = option.get_option_text();
  return option.get_name() + " " + (form.empty() ? "VALUE" : form.substr(0, form.find(" [")));
}

/// CLI11 lists everything that was left over, values too; people look for what does not belong.
std::string explain_rest(const CLI::App& command, const std::vector<std::string>& rest) {
  const auto option = std::ranges::find_if(
      rest, [](const std::string& word) { return word.size() > 1 && word.starts_with('-'); });
  if (option == rest.end()) return '"' + rest.front() + "\" is one word too many";
  const std::string name = option->substr(0, option->find('='));
  if (command.get_option_no_throw(name) != nullptr) {
    return "options follow the subcommand: latchkey " + command.get_name() + " " + name;
  }
  const std::string meant = meant_by(command, name);
  return "there is no option " + name + (meant.empty() ? "" : "; did you mean " + meant + "?");
}

/// What people type, if there is a letter: flock's -n has three names.
std::string letter_of(const CLI::App& command, const std::string& name) {
  const CLI::Option* option = command.get_option_no_throw(name);
  if (option == nullptr || option->get_snames().empty()) return name;
  return "-" + option->get_snames().front();
}

/// "A requires B", and the like.
std::string with_words(std::string text, const std::string& old, const std::string& between,
                       const std::string& behind) {
  const std::size_t at = text.find(old);
  return at == std::string::npos ? text : text.replace(at, old.size(), between) + behind;
}

}  // namespace

std::string usage_of(const CLI::App& command) {
  if (command.get_parent() == nullptr) return "latchkey SUBCOMMAND [OPTIONS]";
  std::string text = "latchkey " + command.get_name() + " [OPTIONS]";
  const auto shown =
      command.get_options([](const CLI::Option* one) { return one->get_required(); });
  for (const CLI::Option* option : shown) {
    if (option->nonpositional()) text += " " + call_of(*option);
  }
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional()) continue;
    const std::string name = option->get_name(true);
    text += option->get_required() ? " " + name : " [" + name + "]";
  }
  // Whoever lets a shell run a text also runs words as they stand.
  const bool runs = command.get_option_no_throw("--command") != nullptr;
  return text + (runs ? " [--] COMMAND [ARG...]" : "");
}

std::string explain(const CLI::App& command, const CLI::ParseError& error) {
  const std::string text = error.what();
  const CLI::App& root = command.get_parent() != nullptr ? *command.get_parent() : command;
  if (const std::vector<std::string> rest = root.remaining(true);
      dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && !rest.empty()) {
    return explain_rest(command, rest);
  }
  if (error.get_name() == "ArgumentMismatch") {
    const CLI::Option* option = command.get_option_no_throw(text.substr(0, text.find(':')));
    if (option != nullptr) return option->get_name() + " needs a value: " + call_of(*option);
  }
  if (error.get_name() == "ExcludesError") {
    const std::size_t between = text.find(" excludes ");
    if (between == std::string::npos) return text;
    return letter_of(command, text.substr(0, between)) + " and " +
           letter_of(command, text.substr(between + std::strlen(" excludes "))) +
           " exclude each other";
  }
  if (error.get_name() == "RequiresError") return with_words(text, " requires ", " needs ", "");
  return text;
}

std::string HelpForm::make_usage(const CLI::App* app, std::string) const {
  return "Usage: " + usage_of(*app) + "\n";
}

std::string HelpForm::make_option_opts(const CLI::Option* option) const {
  return option->get_option_text().empty() ? "" : " " + option->get_option_text();
}

std::string HelpForm::make_option_desc(const CLI::Option* option) const {
  const bool must = option->get_required() && option->nonpositional();
  return option->get_description() + (must ? " (required)" : "");
}

}  // namespace latchkey::app
