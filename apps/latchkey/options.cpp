#include "options.hpp"

#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "values.hpp"

namespace latchkey::app {
namespace {

/// An option whose text `parse` understands, or whose message says how to write it.
template <class Value, class Parse>
CLI::Option* add_parsed(CLI::App& command, const std::string& names, Value& value, Parse parse,
                        const char* help, const std::string& form) {
  const std::string name = names.substr(0, names.find(','));
  const auto take = [name, &value, parse](const std::string& text) {
    auto parsed = parse(text);
    if (!parsed) throw CLI::ValidationError(name, parsed.error().message());
    value = *parsed;
  };
  return command.add_option_function<std::string>(names, take, help)->option_text(form);
}

template <class Text>
CLI::Option* add_nonempty(CLI::App& command, const std::string& names, Text& text, const char* form,
                          const char* help) {
  return command.add_option(names, text, help)
      ->option_text(form)
      ->check([](const std::string& value) {
        return value.empty() ? std::string("the value is empty") : std::string();
      });
}

std::string form_of_duration(std::int64_t ms) {
  return ms == 0 ? "TIME" : fmt::format("TIME [{}ms]", ms);
}

auto number_parser(int least, int most) {
  return [least, most](const std::string& text) { return parse_number(text, least, most); };
}

std::vector<Setting> settings_of(const std::string& file) {
  std::ifstream input(file);
  if (!input || !std::filesystem::is_regular_file(file)) {
    throw CLI::ConfigError("cannot read the configuration file " + file);
  }
  const std::string text(std::istreambuf_iterator<char>(input), {});
  auto settings = parse_settings(text);
  if (!settings) throw CLI::ConfigError(file + ":" + settings.error().message());
  return std::move(*settings);
}

/// A flag's "no" is the same as its absence.
void give(CLI::Option& option, const Setting& setting, const std::string& where) {
  if (option.get_expected_max() != 0) {
    for (const std::string& value : setting.values) option.add_result(value);
    return;
  }
  const auto value = parse_bool(setting.values.front());
  if (!value) throw CLI::ConfigError(where + value.error().message());
  if (*value) option.add_result("true");
}

}  // namespace

CLI::Option* add_duration(CLI::App& command, const std::string& names, std::int64_t& ms,
                          const char* help) {
  return add_parsed(command, names, ms, parse_duration, help, form_of_duration(ms));
}

CLI::Option* add_duration(CLI::App& command, const std::string& names,
                          std::chrono::milliseconds& time, const char* help,
                          std::chrono::milliseconds least) {
  const auto parse = [least](const std::string& text) -> Result<std::chrono::milliseconds> {
    const Result<std::int64_t> ms =
        least.count() == 0 ? parse_duration_or_zero(text) : parse_duration(text);
    if (!ms) return ms.error();
    return std::chrono::milliseconds(*ms);
  };
  return add_parsed(command, names, time, parse, help, form_of_duration(time.count()));
}

CLI::Option* add_number(CLI::App& command, const std::string& names, int& number, int least,
                        int most, const char* form, const char* help) {
  return add_parsed(command, names, number, number_parser(least, most), help, form);
}

CLI::Option* add_number(CLI::App& command, const std::string& names, std::optional<int>& number,
                        int least, int most, const char* form, const char* help) {
  return add_parsed(command, names, number, number_parser(least, most), help, form);
}

CLI::Option* add_count(CLI::App& command, const std::string& name, std::size_t& count,
                       const char* help, std::size_t least, std::size_t most) {
  const auto parse = [least, most](const std::string& text) {
    return parse_count(text, least, most);
  };
  return add_parsed(command, name, count, parse, help, fmt::format("N [{}]", count));
}

CLI::Option* add_text(CLI::App& command, const std::string& names, std::string& text,
                      const char* form, const char* help) {
  return add_nonempty(command, names, text, form, help);
}

CLI::Option* add_text(CLI::App& command, const std::string& names, std::filesystem::path& path,
                      const char* form, const char* help) {
  return add_nonempty(command, names, path, form, help);
}

CLI::Option* add_text(CLI::App& command, const std::string& names, std::vector<std::string>& texts,
                      const char* form, const char* help) {
  return add_nonempty(command, names, texts, form, help)->allow_extra_args(false);
}

void read_config(CLI::App& command, const std::string& file) {
  const std::vector<Setting> settings = settings_of(file);
  std::set<const CLI::Option*> named;  ///< By the command line, which counts more.
  for (const CLI::Option* option : command.get_options()) {
    if (!option->empty()) named.insert(option);
  }
  std::map<CLI::Option*, const Setting*> changed;
  for (const Setting& setting : settings) {
    const std::string where = fmt::format("{}:{}: ", file, setting.line);
    CLI::Option* option = command.get_option_no_throw("--" + setting.name);
    if (option == nullptr || setting.name == "config" || setting.name == "help") {
      throw CLI::ConfigError(fmt::format("{}there is no option \"{}\"; {} --help lists them", where,
                                         setting.name, command.get_display_name()));
    }
    if (named.contains(option)) continue;
    give(*option, setting, where);
    changed[option] = &setting;
  }
  for (const auto& [option, setting] : changed) {
    if (option->empty()) continue;
    try {
      option->run_callback();
    } catch (const CLI::Error& error) {
      throw CLI::ConfigError(fmt::format("{}:{}: {}", file, setting->line, error.what()));
    }
  }
}

}  // namespace latchkey::app
