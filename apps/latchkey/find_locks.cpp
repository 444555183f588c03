#include "find_locks.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>

#include "queue_view.hpp"

namespace latchkey::app {
namespace {

/// Deeper than anybody nests names.
constexpr int kDeepest = 16;

std::string below(const std::string& path, const std::string& name) {
  return path == "/" ? path + name : path + "/" + name;
}

Result<void> walk(Session& session, const std::string& path, int depth, Deadline deadline,
                  std::vector<Queue>& found) {
  Result<Queue> lock = inspect(session, path, deadline);
  if (!lock) return lock.error();
  if (!lock->exists) return {};
  std::vector<std::string> folders;
  for (const QueueEntry& entry : lock->entries) {
    const bool folder = entry.standing == QueueEntry::Standing::kForeign && !is_ephemeral(entry) &&
                        !is_done_mark(entry);
    const bool servers_own = path == "/" && entry.node == "zookeeper";
    if (folder && !servers_own) folders.push_back(entry.node);
  }
  const bool only_folders = !folders.empty() && folders.size() == lock->entries.size();
  if (!only_folders && path != "/") found.push_back(std::move(*lock));
  if (depth == kDeepest) return {};
  for (const std::string& folder : folders) {
    const Result<void> walked = walk(session, below(path, folder), depth + 1, deadline, found);
    if (!walked) return walked;
  }
  return {};
}

/// The mark of a container in the place of its owner.
constexpr std::int64_t kContainer = std::numeric_limits<std::int64_t>::min();

}  // namespace

void leave_out_locks_within(std::vector<Queue>& locks) {
  std::set<std::string> used;
  for (const Queue& lock : locks) {
    if (std::ranges::any_of(lock.entries, is_ephemeral)) used.insert(lock.directory + "/");
  }
  const auto is_used = [&](const std::string& prefix) {
    const auto first = used.lower_bound(prefix);
    return first != used.end() && first->starts_with(prefix);
  };
  for (Queue& lock : locks) {
    std::erase_if(lock.entries, [&](const QueueEntry& entry) {
      return entry.session == kContainer || is_used(below(lock.directory, entry.node) + "/");
    });
  }
}

bool is_ephemeral(const QueueEntry& entry) {
  // Containers and nodes with a time to live have marks of their own there.
  constexpr unsigned kTopByte = 56;
  const bool ttl = static_cast<std::uint64_t>(entry.session) >> kTopByte == 0xFFU;
  return entry.session != 0 && entry.session != kContainer && !ttl;
}

Result<std::vector<Queue>> find_locks(Session& session, const std::string& root,
                                      Deadline deadline) {
  std::vector<Queue> found;
  const Result<void> walked = walk(session, root, 0, deadline, found);
  if (!walked) return walked.error();
  std::ranges::sort(found, {}, &Queue::directory);
  // The root itself is no lock, only the place where they are.
  std::erase_if(found,
                [&](const Queue& one) { return one.directory == root && one.entries.empty(); });
  return found;
}

}  // namespace latchkey::app
