#include "session/watch_table.hpp"

#include <algorithm>

#include "base/last_slash.hpp"
#include "wire/frame.hpp"

namespace latchkey::session {
namespace {

constexpr std::array kAllKinds{WatchOn::kData, WatchOn::kExists, WatchOn::kChildren,
                               WatchOn::kPersistent, WatchOn::kRecursive};

/// The path one level up; nothing above the root.
std::optional<std::string_view> parent_of(std::string_view path) {
  if (path == "/") return std::nullopt;
  const std::size_t slash = base::last_slash(path);
  if (slash == std::string_view::npos) return std::nullopt;
  return slash == 0 ? std::string_view("/") : path.substr(0, slash);
}

std::vector<std::string>& list_of(wire::SetWatches2& message, WatchOn on) {
  switch (on) {
    case WatchOn::kData: return message.data;
    case WatchOn::kExists: return message.exists;
    case WatchOn::kChildren: return message.children;
    case WatchOn::kPersistent: return message.persistent;
    case WatchOn::kRecursive: break;
  }
  return message.persistent_recursive;
}

}  // namespace

void WatchTable::add(const std::string& path, Watch watch) {
  by_id_.emplace(watch.id, std::pair(watch.on, path));
  entries(watch.on)[path].push_back(std::move(watch));
}

std::optional<std::pair<WatchOn, std::string>> WatchTable::remove(WatchId id) {
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return std::nullopt;
  std::pair<WatchOn, std::string> place = std::move(found->second);
  by_id_.erase(found);
  Entries& all = entries(place.first);
  const auto entry = all.find(place.second);
  std::erase_if(entry->second, [&](const Watch& watch) { return watch.id == id; });
  if (!entry->second.empty()) return std::nullopt;
  all.erase(entry);
  return place;
}

void WatchTable::take(WatchOn on, const std::string& path, std::vector<Watch>& out) {
  const auto entry = entries(on).find(path);
  if (entry == entries(on).end()) return;
  for (Watch& watch : entry->second) {
    by_id_.erase(watch.id);
    out.push_back(std::move(watch));
  }
  entries(on).erase(entry);
}

std::vector<WatchTable::Watch> WatchTable::remove_all(const std::string& path,
                                                      wire::WatcherType type) {
  std::vector<Watch> taken;
  for (const WatchOn on : kAllKinds) {
    const bool is_data = on == WatchOn::kData || on == WatchOn::kExists;
    const bool covered = type == wire::WatcherType::kAny ||
                         (type == wire::WatcherType::kData && is_data) ||
                         (type == wire::WatcherType::kChildren && on == WatchOn::kChildren);
    if (covered) take(on, path, taken);
  }
  return taken;
}

std::vector<WatchTable::Watch> WatchTable::take_kin(const std::string& path) {
  std::vector<Watch> taken;
  const auto entry = entries(WatchOn::kData).find(path);
  if (entry == entries(WatchOn::kData).end()) return taken;
  std::erase_if(entry->second, [&](Watch& watch) {
    if (watch.kin == Kin::kNo) return false;
    by_id_.erase(watch.id);
    taken.push_back(std::move(watch));
    return true;
  });
  if (entry->second.empty()) entries(WatchOn::kData).erase(entry);
  return taken;
}

std::vector<WatchTable::Watch> WatchTable::clear() {
  std::vector<Watch> taken;
  for (Entries& all : entries_) {
    for (auto& [path, watches] : all) {
      std::move(watches.begin(), watches.end(), std::back_inserter(taken));
    }
    all.clear();
  }
  by_id_.clear();
  return taken;
}

std::vector<Watcher> WatchTable::fire(wire::EventType type, const std::string& path) {
  using wire::EventType;
  // A type we do not know concerns everybody: who looks again is never wrong (H34).
  const bool of_data = type != EventType::kChildrenChanged;
  const bool of_children = type != EventType::kCreated && type != EventType::kDataChanged;
  std::vector<Watch> once;
  if (of_data) {
    take(WatchOn::kData, path, once);
    take(WatchOn::kExists, path, once);
  }
  if (of_children) take(WatchOn::kChildren, path, once);
  std::vector<Watcher> concerned;
  concerned.reserve(once.size());
  for (Watch& watch : once) concerned.push_back(std::move(watch.watcher));

  const auto add_lasting = [&](WatchOn on, std::string_view at) {
    const auto entry = entries(on).find(at);
    if (entry == entries(on).end()) return;
    for (const Watch& watch : entry->second) concerned.push_back(watch.watcher);
  };
  add_lasting(WatchOn::kPersistent, path);
  if (of_data && !entries(WatchOn::kRecursive).empty()) {
    for (std::optional<std::string_view> at = path; at; at = parent_of(*at)) {
      add_lasting(WatchOn::kRecursive, *at);
    }
  }
  return concerned;
}

std::vector<WatchTable::Watch> WatchTable::take_hidden(wire::EventType type,
                                                       const std::string& path,
                                                       std::string& parent) {
  std::vector<Watch> taken;
  const bool is_child_event =
      type == wire::EventType::kCreated || type == wire::EventType::kDeleted;
  const auto above = parent_of(path);
  if (!is_child_event || !above || !entries(WatchOn::kRecursive).contains(*above)) return taken;
  parent = *above;
  take(WatchOn::kChildren, parent, taken);
  return taken;
}

bool WatchTable::watches(WatchOn on, const std::string& path) const {
  return entries(on).contains(path);
}

void WatchTable::append_restore(std::string& out, std::int64_t last_zxid, std::size_t max_frame,
                                int& frames) const {
  const bool lasting =
      !entries(WatchOn::kPersistent).empty() || !entries(WatchOn::kRecursive).empty();
  constexpr std::size_t kFixedBytes = 64;
  wire::SetWatches2 message{.relative_zxid = last_zxid};
  std::size_t bytes = kFixedBytes;
  const auto flush = [&] {
    if (bytes == kFixedBytes) return;
    if (lasting) {
      wire::append_frame(out, wire::RequestHeader{wire::kSetWatchesXid, wire::Op::kSetWatches2},
                         message);
    } else {
      wire::append_frame(out, wire::RequestHeader{wire::kSetWatchesXid, wire::Op::kSetWatches},
                         wire::SetWatches{last_zxid, std::move(message.data),
                                          std::move(message.exists), std::move(message.children)});
    }
    ++frames;
    message = {.relative_zxid = last_zxid};
    bytes = kFixedBytes;
  };
  for (const WatchOn on : kAllKinds) {
    for (const auto& [path, watches] : entries(on)) {
      if (bytes + path.size() + 4 > max_frame) flush();
      list_of(message, on).push_back(path);
      bytes += path.size() + 4;
    }
  }
  flush();
}

}  // namespace latchkey::session
