#include "findings.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "find_locks.hpp"
#include "queue/counter.hpp"
#include "queue_view.hpp"

namespace latchkey::app {
namespace {

using Weight = Finding::Weight;
using Standing = QueueEntry::Standing;

constexpr std::int64_t kDay = 86'400'000;
/// Of a directory's counter: half of what it can count.
constexpr std::int32_t kHalfway = 1 << 30;

/// What stands behind "NAME: " on a line of its own.
std::string_view field(std::string_view text, std::string_view name) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    if (line.starts_with(name) && line.substr(name.size()).starts_with(": ")) {
      return line.substr(name.size() + 2);
    }
    at = end + 1;
  }
  return {};
}

std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

/// The second of "min/avg/max".
std::optional<double> average(std::string_view latency) {
  const std::size_t slash = latency.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  return number(latency.substr(slash + 1));
}

std::string names_in(const std::vector<std::string>& all) {
  constexpr std::size_t kShown = 3;
  const std::vector<std::string> shown(
      all.begin(), all.begin() + std::min<std::ptrdiff_t>(kShown, std::ssize(all)));
  return fmt::format("{}{}", fmt::join(shown, ", "),
                     all.size() > kShown ? fmt::format(" and {} more", all.size() - kShown) : "");
}

}  // namespace

std::string_view name(Weight weight) {
  return weight == Weight::kNote ? "note" : weight == Weight::kWarning ? "warning" : "bad";
}

std::vector<Finding> diagnose(const Queue& lock, std::int32_t counter, std::int64_t now_ms) {
  std::vector<Finding> found;
  for (const std::string& warning : lock.warnings) {
    found.push_back({Weight::kBad, lock.directory, warning,
                     "docs/interop.md says which clients may share a directory"});
  }
  std::vector<std::string> foreign;
  for (const QueueEntry& entry : lock.entries) {
    if (is_done_mark(entry)) continue;
    if (entry.standing == Standing::kForeign) {
      foreign.push_back(entry.node);
      continue;
    }
    if (!is_ephemeral(entry)) {
      found.push_back({Weight::kBad, lock.directory + "/" + entry.node,
                       "This entry belongs to no session: nobody will remove it, and everybody "
                       "behind it waits.",
                       "if its owner is gone, latchkey revoke --force on this path"});
    } else if (entry.standing == Standing::kHolds && now_ms - entry.created_ms > kDay) {
      found.push_back({Weight::kNote, lock.directory,
                       fmt::format("{} has held it for {}.", who_text(entry),
                                   age_text(now_ms - entry.created_ms)),
                       "latchkey revoke asks it to let go"});
    }
  }
  if (!foreign.empty()) {
    found.push_back({Weight::kWarning, lock.directory,
                     "Nodes that are no contender's: " + names_in(foreign) + ".",
                     "nobody waits for them; remove them if they belong to nobody"});
  }
  if (queue::is_spent(counter)) {
    found.push_back(
        {Weight::kBad, lock.directory,
         fmt::format("The directory's counter stands at {} and ends at 2147483647.", counter),
         "stop its users and remove the directory; Latchkey does so by itself when "
         "it is empty"});
  } else if (counter >= kHalfway) {
    found.push_back(
        {Weight::kWarning, lock.directory,
         fmt::format("The directory's counter stands at {} and ends at 2147483647.", counter),
         "let the directory become empty for a moment now and then: its users cannot lock it when "
         "the counter ends"});
  }
  return found;
}

std::string version_of(std::string_view srvr) {
  const std::string_view text = field(srvr, "Zookeeper version");
  return std::string(text.substr(0, text.find_first_of("-,")));
}

std::string product_of(std::string_view srvr) {
  constexpr std::string_view kOurs = "-latchkey-";
  const std::string version = version_of(srvr);
  if (version.empty()) return {};
  const std::string_view rest = field(srvr, "Zookeeper version").substr(version.size());
  if (!rest.starts_with(kOurs)) return "ZooKeeper " + version;
  const std::string_view ours = rest.substr(kOurs.size());
  return fmt::format("Latchkey {} (ZooKeeper {})", ours.substr(0, ours.find(',')), version);
}

std::vector<Finding> diagnose_server(const std::string& address, std::string_view ruok,
                                     std::string_view srvr) {
  constexpr double kSlowMs = 1'000;
  constexpr double kManyOutstanding = 1'000;
  std::vector<Finding> found;
  const auto add = [&](Weight weight, std::string what, std::string advice) {
    found.push_back({weight, address, std::move(what), std::move(advice)});
  };
  if (ruok.empty() && srvr.empty()) {
    add(Weight::kBad, "It does not answer.",
        "is it running, and may this host reach it? One that speaks TLS only is silent without "
        "--tls");
    return found;
  }
  if (srvr.find("not executed") != std::string_view::npos) {
    add(Weight::kNote, "It does not tell how it is: srvr is not on its list of words.",
        "4lw.commands.whitelist=srvr,ruok in zoo.cfg, or latchkey serve --words");
    return found;
  }
  if (srvr.find("not currently serving") != std::string_view::npos) {
    add(Weight::kBad, "It runs and does not serve: the ensemble has no leader.",
        "look at the others; a majority has to be up");
    return found;
  }
  if (ruok != "imok" && ruok.find("not executed") == std::string_view::npos) {
    add(Weight::kBad, "It does not say imok to ruok.", "look at its log");
  }
  if (const auto ms = average(field(srvr, "Latency min/avg/max")); ms && *ms > kSlowMs) {
    add(Weight::kWarning, fmt::format("A request takes {:.0f} ms on average.", *ms),
        "a slow disk, most often; or too much load");
  }
  if (const auto count = number(field(srvr, "Outstanding")); count && *count > kManyOutstanding) {
    add(Weight::kWarning, fmt::format("{:.0f} requests wait for their answer.", *count),
        "a slow disk, or too much load");
  }
  if (!field(srvr, "Journal").empty()) {
    add(Weight::kBad, "Its journal is damaged; it would not start again.",
        "copy what you need through a client before you stop it, then read its log");
  }
  return found;
}

std::vector<Finding> compare_versions(
    const std::vector<std::pair<std::string, std::string>>& servers) {
  std::set<std::string> versions;
  std::string where;
  for (const auto& [address, version] : servers) {
    if (version.empty()) continue;
    versions.insert(version);
    where += (where.empty() ? "" : ", ") + address + " has " + version;
  }
  if (versions.size() < 2) return {};
  return {{Weight::kWarning, where, "The servers have different versions.",
           "fine during a rolling upgrade, not for long"}};
}

}  // namespace latchkey::app
