#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <CLI/App.hpp>

/// Options of the kinds that several subcommands have, and the configuration file that may say them
/// instead. What an option fills has to outlive the command it is added to.
namespace latchkey::app {

/// "--wait 5s": a time in milliseconds. Its help names the default unless that is 0.
CLI::Option* add_duration(CLI::App& command, const std::string& names, std::int64_t& ms,
                          const char* help);
CLI::Option* add_duration(CLI::App& command, const std::string& names,
                          std::chrono::milliseconds& time, const char* help,
                          std::chrono::milliseconds least);

/// "-E 99": a whole number between `least` and `most`.
CLI::Option* add_number(CLI::App& command, const std::string& names, int& number, int least,
                        int most, const char* form, const char* help);
CLI::Option* add_number(CLI::App& command, const std::string& names, std::optional<int>& number,
                        int least, int most, const char* form, const char* help);

/// "--max-nodes 10M": at least `least`, and `most` at most.
CLI::Option* add_count(CLI::App& command, const std::string& name, std::size_t& count,
                       const char* help, std::size_t least, std::size_t most);

/// Any text but an empty one, which is most often a variable that nobody has set.
CLI::Option* add_text(CLI::App& command, const std::string& names, std::string& text,
                      const char* form, const char* help);
CLI::Option* add_text(CLI::App& command, const std::string& names, std::filesystem::path& path,
                      const char* form, const char* help);
CLI::Option* add_text(CLI::App& command, const std::string& names, std::vector<std::string>& texts,
                      const char* form, const char* help);

/// Gives every setting of `file` to the command, unless the command line has it. Throws
/// CLI::ConfigError with the file's name and the line.
void read_config(CLI::App& command, const std::string& file);

}  // namespace latchkey::app
