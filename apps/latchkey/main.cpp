#include <algorithm>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "demo.hpp"
#include "latchkey/version.hpp"
#include "serve.hpp"
#include "values.hpp"

namespace {

constexpr int kUsage = 64;

std::string known_commands(const CLI::App& app) {
  std::string known;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_group().empty()) continue;
    known += (known.empty() ? "" : ", ") + command->get_name();
  }
  return known;
}

/// CLI11 lists everything it could not place, values too; people look for the option that does not
/// exist. Empty if that is not the trouble.
std::string unknown_option(const CLI::App& command, const std::vector<std::string>& words) {
  std::vector<std::string> known;
  for (const CLI::Option* option : command.get_options()) known.push_back(option->get_name());
  for (const std::string& word : words) {
    const std::string name = word.substr(0, word.find('='));
    if (!name.starts_with("--") || name == "--help") continue;
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string meant = latchkey::app::closest(name, known);
    return "there is no option " + name + (meant.empty() ? "" : "; did you mean " + meant + "?");
  }
  return {};
}

/// What is wrong with the command line, and where to read on.
int complain(const CLI::App& app, const CLI::ParseError& error,
             const std::vector<std::string>& words) {
  const CLI::App* command = &app;
  for (const CLI::App* parsed : app.get_subcommands()) command = parsed;
  const std::string name = command == &app ? "latchkey" : "latchkey " + command->get_name();
  std::string text = error.what();
  if (const std::string unknown = unknown_option(*command, words);
      dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && !unknown.empty()) {
    text = unknown;
  } else if (error.get_name() == "RequiredError" && command == &app) {
    text = "which subcommand? There is: " + known_commands(app);
  }
  std::cerr << name << ": " << text << "\nSee " << name << " --help.\n";
  return kUsage;
}

/// CLI11 takes an unknown first word for an argument. 0 if it is known.
int refuse_unknown(const CLI::App& app, const std::string& word) {
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_name() == word) return 0;
  }
  std::cerr << "latchkey: there is no subcommand \"" << word
            << "\". There is: " << known_commands(app) << ". latchkey --help says more.\n";
  return kUsage;
}

}  // namespace

/// The command line: one subcommand, one file. Exit codes: what the subcommand says; 64 for a usage
/// error.
int main(int argc, char** argv) {
  CLI::App app("latchkey: fair distributed locks over ZooKeeper's protocol");
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("latchkey ") + LATCHKEY_VERSION);
  app.footer("Examples:\n  latchkey demo --workers 8\n  latchkey serve --data ./data");

  latchkey::app::DemoOptions demo;
  std::int64_t demo_hold_ms = demo.hold.count();
  CLI::App* demo_command =
      app.add_subcommand("demo", "Watch processes queue for a lock, and one die while holding it");
  demo_command->add_option("--workers", demo.workers, "How many processes contend")
      ->check(CLI::Range(3, 50))
      ->option_text("N [5], 3 to 50");
  demo_command->add_option("--hold", demo_hold_ms, "How long each holds the lock, in milliseconds")
      ->check(CLI::Range(50, 10'000))
      ->option_text("MS [700], 50 to 10000");
  demo_command->footer("Example:\n  latchkey demo --workers 8 --hold 300");

  latchkey::app::DemoWorkerOptions worker;
  std::int64_t worker_hold_ms = worker.hold.count();
  CLI::App* worker_command = app.add_subcommand("demo-worker", "One process of the demonstration");
  worker_command->group("");  // Not for people: left out of the help.
  worker_command->add_option("--connect", worker.connect)->required();
  worker_command->add_option("--directory", worker.directory)->required();
  worker_command->add_option("--name", worker.name)->required();
  worker_command->add_option("--hold", worker_hold_ms);

  latchkey::app::ServeOptions serve;
  const CLI::App* serve_command = add_serve(app, serve);

  if (argc > 1 && argv[1] == std::string_view("help")) {
    std::cout << app.help();
    return 0;
  }
  if (argc > 1 && argv[1][0] != '-') {
    if (const int code = refuse_unknown(app, argv[1]); code != 0) return code;
  }

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    return complain(app, error, {argv + 1, argv + argc});
  }
  if (demo_command->parsed()) {
    demo.hold = std::chrono::milliseconds(demo_hold_ms);
    return latchkey::app::run_demo(demo);
  }
  if (serve_command->parsed()) return latchkey::app::run_serve(serve);
  worker.hold = std::chrono::milliseconds(worker_hold_ms);
  return latchkey::app::run_demo_worker(worker);
}
