#include <iostream>
#include <string>

#include <CLI/CLI.hpp>

#include "demo.hpp"
#include "latchkey/version.hpp"
#include "serve.hpp"

namespace {

/// The help that an unknown first word would get does not say what is wrong with it. 0 if it is
/// known.
int refuse_unknown(const CLI::App& app, const std::string& word) {
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  std::string known;
  for (const CLI::App* command : commands) {
    if (command->get_name() == word) return 0;
    if (command->get_group().empty()) continue;
    known += (known.empty() ? "" : ", ") + command->get_name();
  }
  std::cerr << "latchkey: there is no subcommand \"" << word << "\". There is: " << known
            << ". latchkey --help says more.\n";
  return 64;
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
      ->capture_default_str();
  demo_command->add_option("--hold", demo_hold_ms, "How long each holds the lock, in milliseconds")
      ->check(CLI::Range(50, 10'000))
      ->capture_default_str();
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

  if (argc > 1 && argv[1][0] != '-') {
    if (const int code = refuse_unknown(app, argv[1]); code != 0) return code;
  }

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 64;
  }
  if (demo_command->parsed()) {
    demo.hold = std::chrono::milliseconds(demo_hold_ms);
    return latchkey::app::run_demo(demo);
  }
  if (serve_command->parsed()) return latchkey::app::run_serve(serve);
  worker.hold = std::chrono::milliseconds(worker_hold_ms);
  return latchkey::app::run_demo_worker(worker);
}
