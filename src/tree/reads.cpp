#include <algorithm>
#include <utility>

#include "base/mutant.hpp"
#include "tree/tree.hpp"
#include "tree/work.hpp"

namespace latchkey::tree {

namespace {

/// Of a string in a list of them: its length, and itself.
std::size_t size_in_list(std::string_view text) { return sizeof(std::int32_t) + text.size(); }

bool is_type(wire::WatcherType type) {
  return type >= wire::WatcherType::kChildren && type <= wire::WatcherType::kAny;
}

}  // namespace

using wire::Err;

Answer<wire::WireStat> Tree::exists(PeerId peer, const wire::PathWatch& request) {
  if (request.path.find('\0') != std::string::npos) return {Err::kBadArguments};
  if (request.watch) {
    const Err err = watch(Watches::Kind::kData, peer, request.path);
    if (err != Err::kOk) return {err};
  }
  const Node* node = nodes_.find(request.path);
  if (node == nullptr) return {Err::kNoNode};
  return {Err::kOk, node->stat()};
}

Answer<wire::GetDataReply> Tree::get_data(const Caller& caller, PeerId peer,
                                          const wire::PathWatch& request) {
  const Node* node = nodes_.find(request.path);
  if (node == nullptr) return {Err::kNoNode};
  if (!allows(*node->acl, kRead, caller)) return {Err::kNoAuth};
  if (request.watch) {
    const Err err = watch(Watches::Kind::kData, peer, request.path);
    if (err != Err::kOk) return {err};
  }
  return {Err::kOk, {node->data, node->stat()}};
}

Answer<Tree::Listing> Tree::list(const Caller& caller, PeerId peer, const wire::PathWatch& request,
                                 std::size_t most_bytes) {
  const Node* node = nodes_.find(request.path);
  if (node == nullptr) return {Err::kNoNode};
  if (!allows(*node->acl, kRead, caller)) return {Err::kNoAuth};
  std::size_t bytes = 0;
  for (const std::string_view name : node->children) bytes += size_in_list(name);
  work_ += kLookWork * node->children.size();
  if (bytes > most_bytes) return {Err::kQuotaExceeded};
  if (request.watch) {
    const Err err = watch(Watches::Kind::kChildren, peer, request.path);
    if (err != Err::kOk) return {err};
  }
  return {Err::kOk, {node, bytes}};
}

Answer<wire::GetAclReply> Tree::get_acl(const Caller& caller, const std::string& path) {
  const Node* node = nodes_.find(path);
  if (node == nullptr) return {Err::kNoNode};
  if (!allows(*node->acl, kRead | kAdmin, caller)) return {Err::kNoAuth};
  const bool all = allows(*node->acl, kAdmin, caller);
  return {Err::kOk, {all ? *node->acl : masked(*node->acl), node->stat()}};
}

Answer<wire::ChildrenNumberReply> Tree::count_below(const Caller& caller, const std::string& path) {
  const Node* node = nodes_.find(path);
  if (node == nullptr) return {Err::kNoNode};
  if (!allows(*node->acl, kRead, caller)) return {Err::kNoAuth};
  return {Err::kOk, {static_cast<std::int32_t>(nodes_.count_below(path))}};
}

Answer<wire::EphemeralsReply> Tree::ephemerals(SessionId session, std::string_view prefix,
                                               std::size_t most_bytes) const {
  const bool all = prefix.find_first_not_of(' ') == std::string_view::npos || prefix == "/";
  Answer<wire::EphemeralsReply> answer;
  std::size_t bytes = 0;
  const Nodes::Paths& paths = nodes_.ephemerals(session);
  for (auto path = all ? paths.begin() : paths.lower_bound(prefix);
       path != paths.end() && (all || path->starts_with(prefix)); ++path) {
    bytes += size_in_list(*path);
    work_ += kLookWork;
    if (bytes > most_bytes) return {Err::kQuotaExceeded};
    answer.value.paths.emplace_back(*path);
  }
  return answer;
}

std::vector<std::string> Tree::reapable(std::int64_t time_ms, std::size_t limit) const {
  std::vector<std::string> paths;
  for (const std::string_view path : nodes_.unused_containers()) {
    if (paths.size() == limit) break;
    paths.emplace_back(path);
  }
  const std::size_t containers = paths.size();
  for (const auto& [end_ms, path] : nodes_.ttl_ends()) {
    if (paths.size() == containers + limit || end_ms >= time_ms) break;
    paths.emplace_back(path);
  }
  work_ += kLookWork * paths.size();
  return paths;
}

bool Tree::has_room(PeerId peer, const Watches::Addition& more) const {
  return watches_.size() + more.watches <= limits_.watches &&
         watches_.bytes() + more.bytes <= limits_.watch_bytes &&
         watches_.count(peer) + more.watches <= limits_.watches_per_peer &&
         watches_.bytes(peer) + more.peer_bytes <= limits_.watch_bytes_per_peer;
}

Err Tree::watch(Watches::Kind kind, PeerId peer, std::string_view path) {
  const Watches::Addition more = watches_.would_add(kind, peer, path);
  if (more.watches == 0) return Err::kOk;
  if (!has_room(peer, more)) return Err::kQuotaExceeded;
  watches_.add(kind, peer, path);
  return Err::kOk;
}

Err Tree::add_watch(PeerId peer, const wire::AddWatch& request) {
  switch (request.mode) {
    case wire::AddWatchMode::kPersistent:
      return watch(Watches::Kind::kPersistent, peer, request.path);
    case wire::AddWatchMode::kPersistentRecursive:
      return watch(Watches::Kind::kRecursive, peer, request.path);
  }
  return Err::kMarshallingError;
}

Err Tree::set_watches(PeerId peer, const wire::SetWatches2& request, std::vector<Notice>& notices) {
  std::size_t asked = 0;
  std::size_t bytes = 0;
  for (const auto* paths : {&request.data, &request.exists, &request.children, &request.persistent,
                            &request.persistent_recursive}) {
    asked += paths->size();
    for (const std::string& path : *paths) bytes += path.size();
  }
  if (!has_room(peer, {asked, bytes, bytes})) return Err::kQuotaExceeded;
  const auto tell = [&](wire::EventType type, const std::string& path) {
    if (!base::mutated(base::Mutant::kLostEvent)) notices.push_back({peer, type, path});
  };
  for (const std::string& path : request.data) {
    const Node* node = nodes_.find(path);
    if (node == nullptr) {
      tell(wire::EventType::kDeleted, path);
    } else if (node->mzxid > request.relative_zxid) {
      tell(wire::EventType::kDataChanged, path);
    } else {
      watches_.add(Watches::Kind::kData, peer, path);
    }
  }
  for (const std::string& path : request.exists) {
    if (nodes_.find(path) != nullptr) {
      tell(wire::EventType::kCreated, path);
    } else {
      watches_.add(Watches::Kind::kData, peer, path);
    }
  }
  for (const std::string& path : request.children) {
    const Node* node = nodes_.find(path);
    if (node == nullptr) {
      tell(wire::EventType::kDeleted, path);
    } else if (node->pzxid > request.relative_zxid) {
      tell(wire::EventType::kChildrenChanged, path);
    } else {
      watches_.add(Watches::Kind::kChildren, peer, path);
    }
  }
  for (const std::string& path : request.persistent) {
    watches_.add(Watches::Kind::kPersistent, peer, path);
  }
  for (const std::string& path : request.persistent_recursive) {
    watches_.add(Watches::Kind::kRecursive, peer, path);
  }
  return Err::kOk;
}

Err Tree::check_watches(PeerId peer, const wire::PathWatcherType& request) const {
  if (!is_type(request.type)) return Err::kMarshallingError;
  return watches_.has(request.type, peer, request.path) ? Err::kOk : Err::kNoWatcher;
}

Err Tree::remove_watches(PeerId peer, const wire::PathWatcherType& request) {
  if (!is_type(request.type)) return Err::kMarshallingError;
  return watches_.remove(request.type, peer, request.path) ? Err::kOk : Err::kNoWatcher;
}

}  // namespace latchkey::tree
