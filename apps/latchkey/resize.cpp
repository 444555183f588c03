#include "resize.hpp"

#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "command_options.hpp"
#include "exit_code.hpp"
#include "latchkey/semaphore.hpp"
#include "options.hpp"
#include "service.hpp"
#include "words.hpp"

namespace latchkey::app {
namespace {

struct ResizeOptions {
  ServiceOptions service;
  std::string name;
  int size = 0;
};

int resize(const ResizeOptions& options) {
  const Result<std::string> path = lock_path(options.name);
  if (!path) return misused("resize", path.error().message());
  Result<Session> session = open_aloud(options.service, deadline_in(kOpenPatience));
  if (!session) return complain("resize", session.error());
  const Result<void> changed =
      Semaphore(*session, *path).resize(options.size, deadline_in(kAnswerPatience));
  if (changed) return kOk;
  if (changed.error() == Code::kNoNode) {
    say("latchkey resize: there is no semaphore {0}; latchkey run -N {1} {0} makes one\n",
        options.name, options.size);
    return kIncompatible;
  }
  const int code = complain("resize", changed.error());
  // The number is checked before, so it is what stands there that does not fit.
  return changed.error() == Code::kInvalidOption ? kIncompatible : code;
}

}  // namespace

Command add_resize(CLI::App& app) {
  const auto options = std::make_shared<ResizeOptions>();
  CLI::App* command = app.add_subcommand("resize", "Change how many permits a semaphore has");
  command->add_option("NAME", options->name, "The semaphore, as latchkey run -N has it")
      ->required();
  add_number(*command, "TOTAL", options->size, 1, kMostPermits, "",
             "So many may hold it at a time, from now on")
      ->required();
  add_service_options(*command, options->service);
  command->footer(
      "Examples:\n"
      "  latchkey resize encoders 6\n"
      "  latchkey ls encoders                  how many there are, and who has them\n"
      "\n"
      "Nobody is sent away: after a reduction new ones wait until enough have left. Whoever waits\n"
      "already goes by the new number; commands that come with another one (-N) end with 76. A\n"
      "semaphore that nobody has used for a while is removed by the server, and whoever comes "
      "next\n"
      "makes it with its own -N. Exit code: 0 done, 76 there is no semaphore.");
  return {command, [options] { return resize(*options); }};
}

}  // namespace latchkey::app
