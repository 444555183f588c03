#include "command_words.hpp"

#include <CLI/Option.hpp>

namespace latchkey::app {
namespace {

/// Whether the word after this option is its value.
bool takes_next(const CLI::App& app, const std::string& word) {
  const bool is_long = word.starts_with("--");
  if (is_long && word.find('=') != std::string::npos) return false;
  if (is_long) {
    const CLI::Option* option = app.get_option_no_throw(word);
    return option != nullptr && option->get_items_expected_max() > 0;
  }
  // Letters may stand together: the first that takes a value takes the rest of the word.
  for (std::size_t i = 1; i < word.size(); ++i) {
    const CLI::Option* option = app.get_option_no_throw(std::string("-") + word[i]);
    if (option == nullptr) return false;
    if (option->get_items_expected_max() > 0) return i + 1 == word.size();
  }
  return false;
}

}  // namespace

std::vector<std::string> take_command(const CLI::App& app, std::vector<std::string>& words) {
  bool named = false;
  std::size_t at = 0;
  std::size_t begin = words.size();
  for (; at < words.size(); ++at) {
    const std::string& word = words[at];
    if (word == "--") {
      begin = at + 1;
      break;
    }
    if (word.size() > 1 && word[0] == '-') {
      if (takes_next(app, word)) ++at;
    } else if (named) {
      begin = at;
      break;
    } else {
      named = true;
    }
  }
  std::vector<std::string> command(words.begin() + static_cast<std::ptrdiff_t>(begin), words.end());
  words.resize(std::min(at, words.size()));
  return command;
}

}  // namespace latchkey::app
