#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "bench.hpp"
#include "command_words.hpp"
#include "demo.hpp"
#include "doctor.hpp"
#include "elect.hpp"
#include "exit_code.hpp"
#include "hold.hpp"
#include "latchkey/version.hpp"
#include "ls.hpp"
#include "manual.hpp"
#include "once.hpp"
#include "resize.hpp"
#include "run.hpp"
#include "serve.hpp"
#include "status_line.hpp"
#include "table.hpp"
#include "usage.hpp"
#include "values.hpp"
#include "wait.hpp"
#include "watch.hpp"
#include "words.hpp"

namespace latchkey::app {
namespace {

/// Every subcommand, in the order of the help, in groups.
struct Subcommand {
  std::string_view name;
  const char* group;
  Command (*add)(CLI::App&);
};

constexpr Subcommand kTable[] = {
    {"run", "Commands under a lock", add_run},
    {"once", "Commands under a lock", add_once},
    {"elect", "Commands under a lock", add_elect},
    {"hold", "Locks by hand", add_hold},
    {"release", "Locks by hand", add_release},
    {"resize", "Locks by hand", add_resize},
    {"ls", "Looking and asking", add_ls},
    {"who", "Looking and asking", add_who},
    {"watch", "Looking and asking", add_watch},
    {"wait", "Looking and asking", add_wait},
    {"revoke", "Looking and asking", add_revoke},
    {"doctor", "Looking and asking", add_doctor},
    {"gc", "Looking and asking", add_gc},
    {"serve", "The server", add_serve},
    {"demo", "The server", add_demo},
    {"bench", "The server", add_bench},
    {"demo-worker", "", add_demo_worker},
    {"hold-keeper", "", add_hold_keeper},
    {"generate", "", add_generate},
};

constexpr const char* kFooter =
    "A NAME without a leading slash lives under /locks; with one it is the path as it stands.\n"
    "latchkey SUBCOMMAND --help has the options and examples.";

/// All of them, or the one that was named: a command in a script is started often, and all their
/// options are a good part of its start.
std::vector<Command> add_commands(CLI::App& app, std::string_view named) {
  // The manual is made of all.
  const bool one = named != "generate" && std::ranges::count(kTable, named, &Subcommand::name) == 1;
  std::vector<Command> commands;
  for (const Subcommand& row : kTable) {
    if (one && row.name != named) continue;
    commands.push_back(row.add(app));
    commands.back().app->group(row.group);
  }
  return commands;
}

std::string known_commands(const CLI::App& app) {
  std::string known;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_group().empty()) continue;
    known += (known.empty() ? "" : ", ") + command->get_name();
  }
  return known;
}

/// The descriptor that --status-fd names among words that could not be parsed.
std::optional<int> status_fd_in(const std::vector<std::string>& words) {
  const std::string option = "--status-fd";
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    std::string value;
    if (word == option && i + 1 < words.size()) value = words[i + 1];
    if (word.starts_with(option + "=")) value = word.substr(option.size() + 1);
    const auto fd = parse_number(value, 0, std::numeric_limits<int>::max());
    if (fd && ::fcntl(*fd, F_GETFD) >= 0) return *fd;
  }
  return std::nullopt;
}

/// What is wrong with the command line, and where to read on.
int explain_misuse(const CLI::App& app, const CLI::ParseError& error,
                   const std::vector<std::string>& words) {
  const CLI::App* command = &app;
  for (const CLI::App* parsed : app.get_subcommands()) command = parsed;
  const std::string name = command == &app ? "latchkey" : "latchkey " + command->get_name();
  const bool lacks_command = error.get_name() == "RequiredError" && command == &app;
  const std::string text = lacks_command ? "which subcommand? There is: " + known_commands(app)
                                         : explain(*command, error);
  std::cerr << name << ": " << printable(text) << "\nUsage: " << usage_of(*command) << "\nSee "
            << name << " --help.\n";
  const int code =
      dynamic_cast<const CLI::ConfigError*>(&error) != nullptr ? kConfiguration : kUsage;
  const auto status_fd = status_fd_in(words);
  if (status_fd && command->get_option_no_throw("--status-fd") != nullptr) {
    write_status(*status_fd, {.code = code, .error = text});
  }
  return code;
}

/// CLI11 takes an unknown first word for an argument. 0 if it is known.
int refuse_unknown(const CLI::App& app, const std::string& word) {
  std::vector<std::string> known;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_name() == word) return 0;
    if (!command->get_group().empty()) known.push_back(command->get_name());
  }
  const std::string meant = closest(word, known);
  std::cerr << "latchkey: there is no subcommand \"" << printable(word) << "\". "
            << (meant.empty() ? "" : "Did you mean " + meant + "? ")
            << "There is: " << known_commands(app) << ". latchkey --help says more.\n";
  return kUsage;
}

/// `latchkey help` and `latchkey help run`.
int help(CLI::App& app, const std::string& word) {
  if (word.empty()) return std::cout << app.help(), kOk;
  if (const int code = refuse_unknown(app, word); code != 0) return code;
  std::cout << app.get_subcommand(word)->help("latchkey");
  return kOk;
}

/// What there is to parse: without the words of a command that is to be run, which gets them.
std::vector<std::string> own_words(const std::vector<Command>& commands, int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  for (const Command& command : commands) {
    if (words.empty() || !command.words || command.app->get_name() != words.front()) continue;
    std::vector<std::string> rest(words.begin() + 1, words.end());
    *command.words = take_command(*command.app, rest);
    words.resize(1);
    words.insert(words.end(), rest.begin(), rest.end());
    break;
  }
  return words;
}

/// What we were started without would otherwise be the number of the next file or connection, and
/// get what is meant for people. It stays of no use, and the command finds it closed as we did.
void fill_standard_descriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    ::open("/dev/null", O_CLOEXEC | (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY));
  }
}

/// Half a table must not look like a whole one.
int check_output(int code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.flush()) return code;
  say("latchkey: cannot write to standard output\n");
  return code == kOk ? kOsError : code;
}

int run(int argc, char** argv) {
  CLI::App app("latchkey: fair locks for people and scripts, on one machine or a fleet");
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("latchkey ") + LATCHKEY_VERSION);
  app.footer(kFooter);
  app.formatter(std::make_shared<HelpForm>());
  const std::string first = argc > 1 ? argv[1] : "";
  const std::vector<Command> commands = add_commands(app, first);

  if (first == "help") return help(app, argc > 2 ? argv[2] : "");
  if (!first.empty() && first[0] != '-') {
    if (const int code = refuse_unknown(app, first); code != 0) return code;
  }
  const std::vector<std::string> words = own_words(commands, argc, argv);
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    return explain_misuse(app, error, words);
  }
  const auto chosen = std::find_if(commands.begin(), commands.end(),
                                   [](const Command& one) { return one.app->parsed(); });
  return chosen->run();
}

}  // namespace
}  // namespace latchkey::app

/// The command line: one subcommand, one file. Exit codes: what the subcommand says; 64 for a usage
/// error, 78 for a configuration file that cannot be used.
int main(int argc, char** argv) {
  latchkey::app::fill_standard_descriptors();
  const int code = latchkey::app::run(argc, argv);
  return latchkey::app::check_output(code);
}
