#include "doctor.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "admin_word.hpp"
#include "command_options.hpp"
#include "exit_code.hpp"
#include "find_locks.hpp"
#include "findings.hpp"
#include "json.hpp"
#include "options.hpp"
#include "queue/farewell.hpp"
#include "service.hpp"
#include "terminal.hpp"
#include "words.hpp"

namespace latchkey::app {
namespace {

constexpr std::chrono::seconds kWordPatience(3);

struct DoctorOptions {
  ServiceOptions service;
  std::string name;
  bool json = false;
  bool dry_run = false;
};

struct Report {
  std::vector<std::string> facts;
  std::vector<Finding> findings;
  bool heard = false;  ///< A server said something about itself.

  void add(std::vector<Finding> more) { std::ranges::move(more, std::back_inserter(findings)); }
};

Result<void> examine_servers(const ServiceOptions& options, Report& report) {
  const Result<std::string> address = service_address(options);
  if (!address) return address.error();
  const auto servers = session::parse_connect_string(*address);
  if (!servers) return servers.error();
  const Result<bool> encrypted = is_encrypted(options);
  if (!encrypted) return encrypted.error();
  std::vector<std::pair<std::string, std::string>> versions;
  for (const session::Endpoint& server : servers->endpoints) {
    const std::string where = session::to_string(server);
    if (*encrypted) {
      report.facts.push_back(where + ": asked over TLS, which its words about itself do not speak");
      continue;
    }
    const std::string ruok = ask_word(server, "ruok", deadline_in(kWordPatience));
    const std::string srvr = ask_word(server, "srvr", deadline_in(kWordPatience));
    report.heard = report.heard || !ruok.empty() || !srvr.empty();
    versions.emplace_back(where, version_of(srvr));
    const std::string product = product_of(srvr);
    if (!product.empty()) report.facts.push_back(where + ": " + product);
    report.add(diagnose_server(where, ruok, srvr));
  }
  report.add(compare_versions(versions));
  return {};
}

/// How many children there ever were, the number of the next: what a server tells as cversion is
/// twice that without those that are there.
std::int32_t counter_of(const Stat& stat) {
  const auto doubled =
      static_cast<std::uint32_t>(stat.cversion) + static_cast<std::uint32_t>(stat.num_children);
  return static_cast<std::int32_t>(doubled / 2);
}

Result<void> examine_locks(Session& session, const std::string& name, Report& report) {
  const Deadline deadline = deadline_in(kAnswerPatience);
  const Result<std::string> path = name.empty() ? Result<std::string>(kLocksRoot) : lock_path(name);
  if (!path) return path.error();
  Result<std::vector<Queue>> locks = find_locks(session, *path, deadline);
  if (!locks) return locks.error();
  leave_out_locks_within(*locks);
  for (const Queue& lock : *locks) {
    const auto stat = session.exists(lock.directory, deadline);
    if (!stat) return stat.error();
    report.add(diagnose(lock, *stat ? counter_of(**stat) : 0, wall_clock_ms()));
  }
  const auto directory = session.exists(*path, deadline);
  if (!directory) return directory.error();
  if (locks->empty() && !name.empty() && *directory) {
    report.facts.push_back(*path + " is free");
  } else if (locks->empty() && !name.empty()) {
    report.facts.push_back("there is no lock at or below " + *path +
                           ": nobody uses it now, or the name is not right");
  } else {
    report.facts.push_back(fmt::format("{} {} at or below {}", locks->size(),
                                       locks->size() == 1 ? "lock" : "locks", *path));
  }
  return {};
}

int tell(const Report& report, bool json) {
  bool trouble = false;
  std::vector<std::string> lines;
  for (const std::string& fact : report.facts) {
    if (!json) lines.push_back(printable(fact));
  }
  for (const Finding& one : report.findings) {
    trouble = trouble || one.weight != Finding::Weight::kNote;
    if (json) {
      lines.push_back(JsonLine()
                          .add("weight", name(one.weight))
                          .add("where", one.where)
                          .add("what", one.what)
                          .add("advice", one.advice)
                          .text());
      continue;
    }
    const Style style = one.weight == Finding::Weight::kNote ? Style::kPlain : Style::kBad;
    lines.push_back(paint(
        fmt::format("{}: {}: {}", name(one.weight), printable(one.where), printable(one.what)),
        style, wanted_colour()));
    if (!one.advice.empty()) lines.push_back("  try: " + printable(one.advice));
  }
  if (!json && report.findings.empty()) lines.emplace_back("Nothing is wrong.");
  print_lines(lines);
  return trouble ? 1 : kOk;
}

int doctor(const DoctorOptions& options) {
  Report report;
  if (const Result<void> seen = examine_servers(options.service, report); !seen) {
    return complain("doctor", seen.error());
  }
  Result<Session> session = open_aloud(options.service, deadline_in(kOpenPatience));
  if (!session) {
    // That nobody answers is said once, of all of them.
    if (!report.heard) report.findings.clear();
    report.add({{Finding::Weight::kBad, "the service", session.error().message(), ""}});
    static_cast<void>(tell(report, options.json));
    return exit_code_of(session.error().code());
  }
  if (const Result<void> seen = examine_locks(*session, options.name, report); !seen) {
    return complain("doctor", seen.error());
  }
  return tell(report, options.json);
}

struct Collected {
  int removed = 0;  ///< At any depth.
  int left = 0;     ///< Children that are still there, or would be.
};

bool is_in_the_way(const Error& error) {
  return error == Code::kNotEmpty || error == Code::kNoNode || error == Code::kBadVersion;
}

/// The two parts of a semaphore, whose size is the data of the path above them.
bool is_part_of_semaphore(const std::string& child) {
  return child == "leases" || child == "locks";
}

enum class Keeps { kNothing, kData };

/// A farewell is of no use to anybody once the queue is empty.
Keeps what_keeps(const std::string& data) {
  return queue::makes_room(data) ? Keeps::kNothing : Keeps::kData;
}

/// Below `path`, deepest first. What has data is kept: a lock with a delay remembers there who
/// vanished, and a semaphore, with both its parts, its size; and so is what never had a child:
/// somebody may be about to use it. Whoever comes in between has a child there, or has changed the
/// data, and the server refuses.
Result<Collected> collect(Session& session, const std::string& path, Keeps keeps, bool dry_run,
                          int depth = 0) {
  constexpr int kDeepest = 16;
  const Deadline deadline = deadline_in(kAnswerPatience);
  Collected result;
  const Result<ChildList> list = session.children(path, deadline);
  if (!list && list.error() == Code::kNoNode) return result;
  if (!list) return list.error();
  for (const std::string& child : list->names) {
    if (keeps == Keeps::kData && is_part_of_semaphore(child)) {
      ++result.left;
      continue;
    }
    const std::string below = path + "/" + child;
    const Result<Node> node = session.get(below, deadline);
    if (!node && node.error() == Code::kNoNode) continue;
    if (!node) return node.error();
    ++result.left;
    QueueEntry entry;
    entry.session = node->stat.ephemeral_owner;
    if (is_ephemeral(entry) || depth == kDeepest) continue;
    const Keeps kept = what_keeps(node->data);
    const Result<Collected> inside = collect(session, below, kept, dry_run, depth + 1);
    if (!inside) return inside;
    result.removed += inside->removed;
    if (inside->left > 0 || kept == Keeps::kData || node->stat.cversion == 0) continue;
    const Result<void> gone =
        dry_run ? Result<void>() : session.remove(below, deadline, node->stat.version);
    if (!gone && !is_in_the_way(gone.error())) return gone.error();
    if (!gone) continue;
    ++result.removed;
    --result.left;
    print_lines({printable(lock_name(below))});
  }
  return result;
}

int gc(const DoctorOptions& options) {
  const Result<std::string> path =
      options.name.empty() ? Result<std::string>(kLocksRoot) : lock_path(options.name);
  if (!path) return misused("gc", path.error().message());
  if (*path == "/") return misused("gc", "/ is everything there is: name a path below it");
  Result<Session> session = open_aloud(options.service, deadline_in(kOpenPatience));
  if (!session) return complain("gc", session.error());
  const Result<Node> top = session->get(*path, deadline_in(kAnswerPatience));
  if (!top && top.error() != Code::kNoNode) return complain("gc", top.error());
  const Keeps kept = top ? what_keeps(top->data) : Keeps::kNothing;
  const Result<Collected> done = collect(*session, *path, kept, options.dry_run);
  if (!done) return complain("gc", done.error());
  say("{} empty {} {}\n", done->removed, done->removed == 1 ? "directory" : "directories",
      options.dry_run ? "would be removed" : "removed");
  return kOk;
}

}  // namespace

Command add_doctor(CLI::App& app) {
  const auto options = std::make_shared<DoctorOptions>();
  CLI::App* command = app.add_subcommand("doctor", "Find what is wrong, and what to try");
  command->add_option("NAME", options->name, "One lock; without it all below /locks");
  command->add_flag("--json", options->json, "One JSON object for each finding, for programs");
  add_service_options(*command, options->service);
  command->footer(
      "Examples:\n"
      "  latchkey doctor\n"
      "  latchkey doctor /shared/with/kazoo\n"
      "\n"
      "Looked at are the servers (do they answer, how fast, which version) and the locks: clients\n"
      "that do not see each other, nodes that are nobody's, a counter near its end.\n"
      "Exit code: 0 nothing is wrong, 1 something is, 69 no server, 78 the root (the chroot) is "
      "not\n"
      "there or the configuration is wrong.");
  return {command, [options] { return doctor(*options); }};
}

Command add_gc(CLI::App& app) {
  const auto options = std::make_shared<DoctorOptions>();
  CLI::App* command = app.add_subcommand("gc", "Remove directories of locks that nobody uses");
  command->add_option("PATH", options->name,
                      "Below which, a path from / or a name under /locks; without it /locks");
  command->add_flag("--dry-run", options->dry_run, "Say what would be removed, and remove nothing");
  add_service_options(*command, options->service);
  command->footer(
      "Examples:\n"
      "  latchkey gc --dry-run\n"
      "  latchkey gc\n"
      "  latchkey gc --dry-run /services       where an application has its own locks\n"
      "\n"
      "Only what is below PATH, is empty, has been used and keeps no data; the server refuses to\n"
      "remove a directory that somebody has come into. Outside of /locks look first: an empty "
      "node\n"
      "of an application that is no lock looks the same. Latchkey's own directories are\n"
      "containers, which the server removes by itself: this is for those of other clients.");
  return {command, [options] { return gc(*options); }};
}

}  // namespace latchkey::app
