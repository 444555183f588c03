#include "queue_view.hpp"

#include <algorithm>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "hold_note.hpp"
#include "json.hpp"
#include "lock_name.hpp"

namespace latchkey::app {
namespace {

using Standing = QueueEntry::Standing;

const char* standing_name(const QueueEntry& entry) {
  if (is_done_mark(entry)) return "done";
  switch (entry.standing) {
    case Standing::kHolds: return "holds";
    case Standing::kWaits: return "waits";
    case Standing::kForeign: return "foreign";
  }
  return "";
}

std::string session_text(const QueueEntry& entry) {
  return fmt::format("0x{:x}", static_cast<std::uint64_t>(entry.session));
}

std::string entry_json(const QueueEntry& entry) {
  JsonLine line;
  line.add("node", entry.node).add("standing", standing_name(entry));
  line.add("position", entry.position).add("shared", entry.shared).add("dialect", entry.dialect);
  if (!entry.lock_name.empty()) line.add("name", entry.lock_name);
  line.add("token", to_string(entry.token));
  line.add("session", session_text(entry));
  line.add("created", utc_text(entry.created_ms));
  line.add("release_requested", entry.release_requested);
  if (entry.host.empty()) {
    if (!entry.data.empty()) line.add("data", entry.data);
    return line.text();
  }
  line.add("host", entry.host).add("pid", entry.pid).add("program", entry.program);
  line.add("since", entry.since);
  if (const auto note = parse_hold(entry.reason)) {
    line.add("reason", note->reason).add("owner", note->owner).add("until", note->until);
  } else {
    line.add("reason", entry.reason);
  }
  return line.text();
}

}  // namespace

std::string age_text(std::int64_t ms) {
  constexpr std::int64_t kSecond = 1'000;
  constexpr std::int64_t kMinute = 60 * kSecond;
  constexpr std::int64_t kHour = 60 * kMinute;
  if (ms < 2 * kMinute) return fmt::format("{}s", std::max<std::int64_t>(ms, 0) / kSecond);
  if (ms < 2 * kHour) return fmt::format("{}min", ms / kMinute);
  if (ms < 48 * kHour) return fmt::format("{}h", ms / kHour);
  return fmt::format("{}d", ms / (24 * kHour));
}

std::string who_text(const QueueEntry& entry) {
  if (entry.host.empty() && entry.release_requested) return "session " + session_text(entry);
  if (entry.host.empty()) return entry.data.empty() ? entry.node : entry.data;
  // The process that latchkey hold leaves behind has a name that says nothing about the lock.
  const std::string_view program =
      parse_hold(entry.reason) ? std::string_view("hold") : std::string_view(entry.program);
  return program.empty() ? fmt::format("{} pid {}", entry.host, entry.pid)
                         : fmt::format("{} pid {} ({})", entry.host, entry.pid, program);
}

std::string reason_text(const QueueEntry& entry) {
  std::string text = entry.reason;
  if (const auto note = parse_hold(entry.reason)) {
    text = fmt::format("{}{}{}, until {}", note->reason, note->reason.empty() ? "" : "; ",
                       note->owner, note->until);
  }
  if (entry.release_requested) text = text.empty() ? "asked to let go" : text + "; asked to let go";
  return text;
}

std::string holder_text(const QueueEntry& entry) {
  const std::string reason = reason_text(entry);
  return who_text(entry) + (reason.empty() ? "" : ": " + reason);
}

std::string permits_text(const Queue& lock) {
  if (!lock.size) return {};
  return fmt::format("{} of {} permits are held", lock.holders().size(), *lock.size);
}

std::size_t waiting_count(const Queue& lock) {
  // Whoever waits for permits with nodes in `leases` stands in front as well, once.
  return static_cast<std::size_t>(std::ranges::count_if(lock.entries, [](const auto& one) {
    return one.standing == Standing::kWaits && !one.node.starts_with("leases/");
  }));
}

bool is_done_mark(const QueueEntry& entry) {
  return entry.standing == Standing::kForeign && entry.node == kDoneMark &&
         entry.data.find("\ntoken=") != std::string::npos;
}

bool is_free(const Queue& lock) {
  return std::ranges::all_of(
      lock.entries, [](const QueueEntry& one) { return one.standing == Standing::kForeign; });
}

Table locks_table(std::span<const Queue> locks, std::int64_t now_ms) {
  Table table{{"NAME", "STATE", "HOLDER", "FOR", "WAIT", "REASON"}, {}};
  for (const Queue& lock : locks) {
    const auto holders = lock.holders();
    Row row;
    row.cells = {lock_name(lock.directory), "free", "", "", std::to_string(waiting_count(lock))};
    if (!holders.empty()) {
      const QueueEntry& first = *holders.front();
      row.style = Style::kStrong;
      row.cells[1] = first.shared ? "shared" : "held";
      row.cells[2] = who_text(first);
      if (holders.size() > 1) row.cells[2] += fmt::format(" and {} more", holders.size() - 1);
      row.cells[3] = age_text(now_ms - first.created_ms);
      row.cells.push_back(reason_text(first));
    } else if (!is_free(lock)) {
      row.cells[1] = "passing";
    } else if (std::ranges::any_of(lock.entries, is_done_mark)) {
      row.cells[1] = "done";
    }
    if (lock.size) row.cells[1] += fmt::format(" {}/{}", holders.size(), *lock.size);
    if (!lock.warnings.empty()) {
      row.style = Style::kBad;
      row.cells[1] += " !";
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table queue_table(const Queue& lock, std::int64_t now_ms) {
  Table table{{"#", "STATE", "WHO", "FOR", "TOKEN", "REASON"}, {}};
  for (const QueueEntry& entry : lock.entries) {
    const bool foreign = entry.standing == Standing::kForeign;
    Row row;
    row.cells = {foreign ? "" : std::to_string(entry.position),
                 fmt::format("{}{}", standing_name(entry), entry.shared ? " shared" : ""),
                 foreign && !is_done_mark(entry) ? entry.node : who_text(entry),
                 age_text(now_ms - entry.created_ms),
                 foreign ? "" : to_string(entry.token),
                 reason_text(entry)};
    row.style = foreign                              ? Style::kFaint
                : entry.standing == Standing::kHolds ? Style::kStrong
                                                     : Style::kPlain;
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string queue_json(const Queue& lock) {
  std::vector<std::string> entries;
  for (const QueueEntry& entry : lock.entries) entries.push_back(entry_json(entry));
  std::vector<std::string> warnings;
  for (const std::string& warning : lock.warnings) warnings.push_back(json_quoted(warning));
  JsonLine line;
  line.add("lock", lock.directory).add("exists", lock.exists);
  line.add("held", !lock.holders().empty());
  line.add("waiting", static_cast<std::int64_t>(waiting_count(lock)));
  if (lock.size) line.add("size", *lock.size);
  line.add_raw("entries", fmt::format("[{}]", fmt::join(entries, ",")));
  line.add_raw("warnings", fmt::format("[{}]", fmt::join(warnings, ",")));
  return line.text();
}

std::string queue_line(const Queue& lock) {
  const auto holders = lock.holders();
  std::string text = lock_name(lock.directory) + ": ";
  if (holders.empty()) {
    text += is_free(lock) ? "free" : "held by nobody yet";
  } else {
    text += holders.front()->shared ? "shared by " : "held by ";
    for (std::size_t i = 0; i < holders.size(); ++i) {
      text += (i == 0 ? "" : ", ") + holder_text(*holders[i]);
    }
  }
  if (lock.size) text += "; " + permits_text(lock);
  if (const std::size_t count = waiting_count(lock); count > 0) {
    text += fmt::format("; {} {}", count, count == 1 ? "waits" : "wait");
  }
  return printable(text);
}

}  // namespace latchkey::app
