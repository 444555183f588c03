// The rules of Lookout that look at the leader's records and at the queues they make.
#include <algorithm>
#include <charconv>

#include "sim/judge.hpp"
#include "sim/lookout.hpp"

namespace latchkey::sim {

using tree::Change;
using tree::Record;

namespace {

constexpr std::size_t kDigits = 10;
/// From here on a counter is about to end (H35).
constexpr std::int64_t kNearItsEnd = std::int64_t{1} << 30U;

std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::int64_t counter_of(const std::string& path) {
  std::int64_t number = 0;
  if (path.size() <= kDigits) return 0;
  const char* const end = path.data() + path.size();
  std::from_chars(end - kDigits, end, number);
  return number;
}

}  // namespace

Lookout::Directory* Lookout::directory_of(const std::string& path) {
  const auto found = directories_.find(parent_of(path));
  return found == directories_.end() ? nullptr : &found->second;
}

void Lookout::on_applied(const testing::LogEntry& entry) {
  const auto record = tree::decode_record(entry.zxid, entry.bytes);
  if (!record) return;
  std::size_t removed = 0;
  for (const Change& change : record->changes) {
    if (change.kind == Change::Kind::kCreate) create(entry.zxid, change);
    if (change.kind == Change::Kind::kDelete) {
      ++removed;
      remove(*record, change);
    }
    const auto pool = directories_.find(change.path + "/leases");
    if (change.kind == Change::Kind::kSetData && pool != directories_.end() &&
        !pool->second.queue.empty()) {
      sightings_.saw(48);
    }
  }
  look_at_multi(*record);
  if (record->kind != Record::Kind::kCloseSession) return;
  if (removed > 1) sightings_.saw(93);
  const auto known = sessions_.find(record->session);
  if (known == sessions_.end()) return;
  const auto line = lines_.find(known->second.line);
  if (line != lines_.end() && std::ranges::any_of(line->second.asked, &Asked::deletes)) {
    sightings_.saw(22);
  }
}

void Lookout::create(std::int64_t zxid, const Change& change) {
  if (const auto made = directories_.find(change.path); made != directories_.end()) {
    if (made->second.is_made && made->second.has_been_used) sightings_.saw(16);
    made->second.is_made = true;
  }
  if (const auto doubt = doubts_.find(without_number(change.path)); doubt != doubts_.end()) {
    doubt->second.path = change.path;
    const auto known = sessions_.find(change.owner);
    if (doubt->second.is_over && known != sessions_.end() &&
        known->second.line != doubt->second.line) {
      sightings_.saw(2);
    }
  }
  Directory* const directory = directory_of(change.path);
  if (directory == nullptr) return;
  if (!tree::Owner::is_session(change.owner)) return sightings_.saw(37);
  const bool is_reader = change.path.find("__READ__") != std::string::npos;
  join(*directory, zxid, {change.path, change.owner, is_reader});
}

void Lookout::join(Directory& directory, std::int64_t zxid, Entry entry) {
  directory.has_been_used = true;
  if (counter_of(entry.path) >= kNearItsEnd) sightings_.saw(35);
  const Queue& queue = directory.queue;
  const std::string name = name_of(entry.path);
  const auto process_of = [this](std::int64_t session) {
    const auto known = sessions_.find(session);
    return known == sessions_.end() ? 0 : known->second.process;
  };
  bool sorts_before = false;
  bool is_twin = false;
  bool is_of_old = false;
  bool writer_waits = false;
  for (const auto& [number, other] : queue) {
    const bool is_own = other.owner == entry.owner;
    sorts_before |= name_of(other.path) > name;
    is_twin |= is_own;
    is_of_old |= !is_own && process_of(other.owner) == process_of(entry.owner);
    writer_waits |= !other.is_reader;
  }
  if (sorts_before) sightings_.saw(36);
  if (is_twin) sightings_.saw(7);
  if (is_of_old && process_of(entry.owner) != 0) sightings_.saw(4);
  if (entry.is_reader && writer_waits && queue.begin()->second.is_reader) sightings_.saw(43);
  if (directory.seats > 0 && queue.size() >= static_cast<std::size_t>(directory.seats)) {
    sightings_.saw(46);
  }
  directory.queue.emplace(zxid, std::move(entry));
}

void Lookout::remove(const Record& record, const Change& change) {
  if (directories_.contains(change.path)) sightings_.saw(40);
  Directory* const directory = directory_of(change.path);
  if (directory == nullptr) return;
  const auto gone = std::ranges::find(directory->queue, change.path,
                                      [](const auto& each) { return each.second.path; });
  if (gone == directory->queue.end()) return;
  look_at_order(*directory, gone);
  look_at_owner(*directory, gone->second, record);
  directory->queue.erase(gone);
}

void Lookout::look_at_order(const Directory& directory, Queue::const_iterator gone) {
  const Queue& queue = directory.queue;
  const auto next = std::next(gone);
  if (next == queue.end()) return;
  const auto is_writer = [](const auto& each) { return !each.second.is_reader; };
  const bool writer_waits = std::any_of(next, queue.end(), is_writer);
  if (directory.seats > 0) {
    const auto waiting = directories_.find(parent_of(parent_of(next->second.path)) + "/locks");
    if (waiting != directories_.end() && !waiting->second.queue.empty()) sightings_.saw(47);
    return;
  }
  if (gone == queue.begin()) {
    sightings_.saw(72);
    if (is_writer(*gone) && next->second.is_reader && writer_waits) sightings_.saw(42);
    return;
  }
  sightings_.saw(27);
  if (gone->second.is_reader && writer_waits) sightings_.saw(45);
}

void Lookout::look_at_owner(Directory& directory, const Entry& gone, const Record& record) {
  const bool by_owner = record.kind == Record::Kind::kChanges && record.session == gone.owner;
  if (by_owner) return;
  if (record.kind == Record::Kind::kChanges) sightings_.saw(93);
  if (!gone.is_listed) sightings_.saw(5);
  const auto held = held_.find(gone.path);
  if (held == held_.end()) {
    // Whoever leads announces no node.
    const bool is_waiter = directory.sort != Sort::kElection;
    if (is_waiter && record.kind == Record::Kind::kCloseSession && !has_closed(record.session)) {
      sightings_.saw(12);
    }
    return;
  }
  directory.holder_vanished = true;
  for (const auto& host : world_.hosts()) {
    testing::Process& process = host->process();
    if (process.id() != held->second || process.paused_until <= world_.now()) continue;
    return sightings_.saw(13);
  }
}

bool Lookout::has_closed(std::int64_t session) const {
  return std::ranges::any_of(lines_, [&](const auto& each) {
    const Line& line = each.second;
    return line.session == session &&
           std::ranges::find(line.asked, wire::Op::kCloseSession, &Asked::op) != line.asked.end();
  });
}

void Lookout::look_at_multi(const Record& record) {
  bool is_first = false;
  bool is_not_first = false;
  for (const Change& change : record.changes) {
    if (change.kind != Change::Kind::kCreate) continue;
    const Directory* const directory = directory_of(change.path);
    if (directory == nullptr || directory->seats > 0 || directory->queue.empty()) continue;
    const bool first = directory->queue.begin()->second.path == change.path;
    (first ? is_first : is_not_first) = true;
  }
  if (is_first && is_not_first) sightings_.saw(49);
}

}  // namespace latchkey::sim
