#include "elect.hpp"

#include <unistd.h>

#include <array>
#include <condition_variable>
#include <mutex>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "command_options.hpp"
#include "elect_tenure.hpp"
#include "exit_code.hpp"
#include "json.hpp"
#include "terminal.hpp"

namespace latchkey::app {
namespace {

struct ElectOptions : CommandOptions {
  bool observe = false;
  bool json = false;
};

std::string own_id() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return fmt::format("{}:{}", host.data(), ::getpid());
}

std::string format_leader(const std::optional<Leader>& leader, bool json) {
  if (!json) {
    return leader
               ? fmt::format("{} leads, token {}", printable(leader->id), to_string(leader->token))
               : "nobody leads";
  }
  if (!leader) return JsonLine().add_raw("leader", "null").text();
  return JsonLine()
      .add("leader", leader->id)
      .add("token", to_string(leader->token))
      .add("node", leader->node)
      .text();
}

/// Prints until the session ends, or we are ended by a signal: nothing of us is on the server.
int observe(const ElectOptions& options, const std::string& path) {
  auto session = open_aloud(options.service, deadline_in(kOpenPatience));
  if (!session) return complain("elect", session.error());
  struct End {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<Error> error;
    bool unheard = false;
  };
  const auto end = std::make_shared<End>();
  const LeaderWatch watch(*session, path,
                          [end, json = options.json](Result<std::optional<Leader>> leader) {
                            if (leader && print_lines({format_leader(*leader, json)})) return;
                            const std::lock_guard lock(end->mutex);
                            if (leader) {
                              end->unheard = true;
                            } else {
                              end->error = leader.error();
                            }
                            end->changed.notify_all();
                          });
  std::unique_lock lock(end->mutex);
  end->changed.wait(lock, [&] { return end->error || end->unheard; });
  if (end->unheard) return kOk;  // As of every command, it is told in the end.
  return complain("elect", in_our_words(*end->error, options.service));
}

int elect(const ElectOptions& options, const std::vector<std::string>& words) {
  const auto path = lock_path(options.name);
  if (!path) return misused("elect", path.error().message(), options.status_fd);
  if (options.observe && (!words.empty() || !options.shell_command.empty())) {
    return misused("elect", "--observe only looks: leave out the command", options.status_fd);
  }
  if (options.json && !options.observe)
    return misused("elect", "--json goes with --observe", options.status_fd);
  if (options.observe) return observe(options, *path);
  auto keep_it = keep_options("elect", options, words);
  if (!keep_it) return misused("elect", keep_it.error().message(), options.status_fd);
  keep_it->rules.afterwards = keeping::Rules::Afterwards::kContendAgain;
  const std::string id = options.id.empty() ? own_id() : options.id;
  using Remarks = ElectTenure::Remarks;
  const Remarks remarks = options.verbose ? Remarks::kYes : Remarks::kNo;
  return keep(*keep_it,
              [&] { return std::make_unique<ElectTenure>(options.service, *path, id, remarks); });
}

}  // namespace

Command add_elect(CLI::App& app) {
  CLI::App* command = app.add_subcommand("elect", "Keep one instance of a command running");
  auto options = std::make_shared<ElectOptions>();
  auto words = std::make_shared<std::vector<std::string>>();
  add_command_options(*command, *options);
  command->add_flag("--observe", options->observe, "Print who leads, as it changes");
  command->add_flag("--json", options->json, "With --observe: one JSON object on each line");
  command->footer(
      "Examples:\n"
      "  latchkey elect scheduler -- ./scheduler       on every host; it runs on one of them\n"
      "  latchkey elect scheduler --observe --json     who leads, line by line\n"
      "\n"
      "When the command ends, or the lead is lost, we queue again; after short terms with growing\n"
      "pauses. A signal ends the command, and us with its exit code. Candidates are those of\n"
      "Curator's LeaderLatch, so both can run for one office.");
  return {command, [options, words] { return elect(*options, *words); }, words};
}

}  // namespace latchkey::app
