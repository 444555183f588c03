#include "tree/nodes.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "base/last_slash.hpp"
#include "tree/quota.hpp"

namespace latchkey::tree {
namespace {

constexpr std::string_view kRoot = "/";
/// What a delete takes in a record besides its path.
constexpr std::size_t kDeleteBytes = 32;
/// Twice what Apache and we make of a usage. It is read and written again with every change below
/// its quota, so that a longer one, which only a client can have made up, would cost everybody's
/// time: it is left as it is (H89).
constexpr std::size_t kMostUsageBytes = 256;

std::size_t data_size(const wire::Buffer& data) { return data ? data->size() : 0; }

std::int64_t signed_size(const wire::Buffer& data) {
  return static_cast<std::int64_t>(data_size(data));
}

/// Clients may have written any number into the usage.
std::int64_t add_within_bounds(std::int64_t a, std::int64_t b) {
  using Limits = std::numeric_limits<std::int64_t>;
  if (b > 0 && a > Limits::max() - b) return Limits::max();
  if (b < 0 && a < Limits::min() - b) return Limits::min();
  return a + b;
}

bool is_reaped(const Node& node) {
  return Owner::is_container(node.owner) || Owner::is_ttl(node.owner);
}

std::int64_t end_of_ttl(const Node& node) {
  return add_within_bounds(node.mtime_ms, Owner::ttl_ms(node.owner));
}

/// So much has come below all those above a node, or has gone. By pointers: finding each of them by
/// its path would take a deep node's path as often as it has parts.
void count_above(const Node& node, std::int64_t nodes, std::int64_t bytes) {
  for (Node* above = node.parent; above != nullptr; above = above->parent) {
    above->below += static_cast<std::uint32_t>(nodes);
    above->bytes_below += static_cast<std::size_t>(bytes);
  }
}

}  // namespace

std::string_view parent_of(std::string_view path) {
  const std::size_t slash = base::last_slash(path);
  return slash == 0 || slash == std::string_view::npos ? kRoot : path.substr(0, slash);
}

std::string_view last_part(std::string_view path) {
  return path.substr(base::last_slash(path) + 1);
}

wire::WireStat Node::stat() const {
  const auto alive = static_cast<std::int32_t>(children.size());
  wire::WireStat stat;
  stat.czxid = czxid;
  stat.mzxid = mzxid;
  stat.ctime_ms = ctime_ms;
  stat.mtime_ms = mtime_ms;
  stat.version = version;
  // In 32 bits, wrapping, as Apache computes it.
  stat.cversion = static_cast<std::int32_t>(static_cast<std::uint32_t>(creates) * 2U -
                                            static_cast<std::uint32_t>(alive));
  stat.aversion = aversion;
  stat.ephemeral_owner = Owner::is_session(owner) ? owner : 0;
  stat.data_length = static_cast<std::int32_t>(data_size(data));
  stat.num_children = alive;
  stat.pzxid = pzxid;
  return stat;
}

Nodes::Nodes() {
  Node root;
  root.data.emplace();
  guard(root, open_list());
  bytes_ = kRoot.size();
  nodes_.emplace(kRoot, std::move(root));
  for (const char* path : {"/zookeeper", "/zookeeper/quota", "/zookeeper/config"}) {
    Node node;
    node.data.emplace();
    guard(node, open_list());
    insert(path, std::move(node));
  }
  Node* config = edit("/zookeeper/config");
  guard(*config, read_only_list());
  config->aversion = -1;
}

const Node* Nodes::find(std::string_view path) const {
  const auto it = nodes_.find(path.empty() ? kRoot : path);
  return it == nodes_.end() ? nullptr : &it->second;
}

Node* Nodes::edit(std::string_view path) { return const_cast<Node*>(find(path)); }

Node& Nodes::insert(std::string path, Node node) {
  Node* parent = edit(parent_of(path));
  LATCHKEY_ASSERT(parent != nullptr);
  const auto [it, fresh] = nodes_.emplace(std::move(path), std::move(node));
  LATCHKEY_ASSERT(fresh);
  const std::string_view key = it->first;
  if (is_reaped(*parent)) take_from_reapable(key_of(parent_of(key)), *parent);
  parent->children.insert(last_part(key));
  put_to_reapable(key, it->second);
  it->second.parent = parent;
  count_above(it->second, 1, signed_size(it->second.data));
  bytes_ += key.size() + data_size(it->second.data);
  add_to_index(it->second.owner, key);
  it->second.is_limited = !limited_.empty() && limited_.contains(key);
  if (parent_of(key).starts_with(kQuotaRoot) && last_part(key) == kQuotaLimits) {
    const std::string_view limited = parent_of(key).substr(kQuotaRoot.size());
    limited_.emplace(limited);
    if (Node* top = edit(limited)) top->is_limited = true;
  }
  return it->second;
}

void Nodes::put(Node& node, wire::Buffer data) {
  const std::int64_t grown = signed_size(data) - signed_size(node.data);
  bytes_ += static_cast<std::size_t>(grown);
  count_above(node, 0, grown);
  node.data = std::move(data);
}

void Nodes::guard(Node& node, AclRef acl) {
  acl_bytes_ -= node.acl_bytes;
  node.acl = std::move(acl);
  node.acl_bytes = static_cast<std::uint32_t>(size_in_bytes(*node.acl));
  acl_bytes_ += node.acl_bytes;
}

void Nodes::add_to_index(std::int64_t owner, std::string_view path) {
  if (!Owner::is_session(owner)) return;
  Owned& owned = ephemerals_[owner];
  owned.paths.insert(path);
  owned.bytes += ephemeral_bytes_of(path);
  ephemeral_bytes_ += ephemeral_bytes_of(path);
  ++ephemeral_count_;
}

void Nodes::take_from_index(std::int64_t owner, std::string_view path) {
  if (!Owner::is_session(owner)) return;
  Owned& owned = ephemerals_[owner];
  owned.paths.erase(path);
  owned.bytes -= ephemeral_bytes_of(path);
  ephemeral_bytes_ -= ephemeral_bytes_of(path);
  --ephemeral_count_;
  if (owned.paths.empty()) ephemerals_.erase(owner);
}

std::string_view Nodes::key_of(std::string_view path) const { return nodes_.find(path)->first; }

void Nodes::take_from_reapable(std::string_view path, const Node& node) {
  if (Owner::is_container(node.owner)) unused_containers_.erase(path);
  if (Owner::is_ttl(node.owner)) ttl_ends_.erase({end_of_ttl(node), path});
}

void Nodes::put_to_reapable(std::string_view path, const Node& node) {
  if (!node.children.empty()) return;
  // A container that never had a child is still waiting for its first.
  if (Owner::is_container(node.owner) && node.creates > 0) unused_containers_.insert(path);
  if (Owner::is_ttl(node.owner)) ttl_ends_.insert({end_of_ttl(node), path});
}

const Node& Nodes::create(const Change& change, std::int64_t zxid, std::int64_t time_ms) {
  Node node;
  node.data = change.data;
  guard(node, acls_.share(change.acl));
  node.czxid = node.mzxid = node.pzxid = zxid;
  node.ctime_ms = node.mtime_ms = time_ms;
  node.owner = change.owner;
  Node& made = insert(change.path, std::move(node));

  Node* parent = edit(parent_of(change.path));
  parent->creates = std::max(parent->creates, change.version);
  parent->pzxid = zxid;
  if (parent_of(change.path).starts_with(kQuotaRoot) && last_part(change.path) == kQuotaStats) {
    measure(parent_of(change.path).substr(kQuotaRoot.size()));
  }
  use(quota_over(made, change.path), signed_size(change.data), 1);
  return made;
}

void Nodes::remove(std::string_view path, std::int64_t zxid) {
  const auto it = nodes_.find(path);
  LATCHKEY_ASSERT(it != nodes_.end());
  LATCHKEY_ASSERT(it->second.children.empty());
  const std::string_view key = it->first;
  const Node& node = it->second;
  const std::int64_t size = signed_size(node.data);

  Node* parent = edit(parent_of(key));
  parent->children.erase(last_part(key));
  if (is_reaped(*parent)) put_to_reapable(key_of(parent_of(key)), *parent);
  parent->pzxid = zxid;
  count_above(node, -1, -size);
  take_from_index(node.owner, key);
  take_from_reapable(key, node);
  if (parent_of(key).starts_with(kQuotaRoot) && last_part(key) == kQuotaLimits) {
    const std::string_view limited = parent_of(key).substr(kQuotaRoot.size());
    limited_.erase(std::string(limited));
    if (Node* top = edit(limited)) top->is_limited = false;
  }
  bytes_ -= key.size() + data_size(node.data);
  acl_bytes_ -= node.acl_bytes;
  const std::string limited(quota_over(node, key));
  nodes_.erase(it);
  use(limited, -size, -1);
}

const Node& Nodes::set_data(const Change& change, std::int64_t zxid, std::int64_t time_ms) {
  Node* node = edit(change.path);
  LATCHKEY_ASSERT(node != nullptr);
  const std::int64_t grown = signed_size(change.data) - signed_size(node->data);
  put(*node, change.data);
  const bool has_end = Owner::is_ttl(node->owner);
  const std::string_view key = has_end ? key_of(change.path) : std::string_view();
  if (has_end) take_from_reapable(key, *node);
  node->mtime_ms = time_ms;
  if (has_end) put_to_reapable(key, *node);
  node->mzxid = zxid;
  node->version = change.version;
  use(quota_over(*node, change.path), grown, 0);
  return *node;
}

const Node& Nodes::set_acl(const Change& change) {
  Node* node = edit(change.path);
  LATCHKEY_ASSERT(node != nullptr);
  guard(*node, acls_.share(change.acl));
  node->aversion = change.version;
  return *node;
}

const Nodes::Paths& Nodes::ephemerals(SessionId session) const {
  static const Paths kNone;
  const auto it = ephemerals_.find(session);
  return it == ephemerals_.end() ? kNone : it->second.paths;
}

std::size_t Nodes::ephemeral_bytes(SessionId session) const {
  const auto it = ephemerals_.find(session);
  return it == ephemerals_.end() ? 0 : it->second.bytes;
}

std::size_t Nodes::ephemeral_bytes_of(std::string_view path) { return path.size() + kDeleteBytes; }

std::size_t Nodes::count_below(std::string_view path) const {
  const Node* node = find(path);
  if (node == nullptr) return 0;
  // Apache takes the empty path for something above the root, here only.
  if (path.empty()) return nodes_.size();
  return node->below;
}

std::string_view Nodes::quota_over(const Node& node, std::string_view path) const {
  if (limited_.empty()) return {};
  // By pointers, as in count_above(). The root has no quota.
  for (const Node* above = &node; above->parent != nullptr; above = above->parent) {
    if (above->is_limited) return path;
    path = parent_of(path);
  }
  return {};
}

void Nodes::use(std::string_view limited, std::int64_t bytes, std::int64_t nodes) {
  if (limited.empty()) return;
  std::string stats(kQuotaRoot);
  stats.append(limited).append("/").append(kQuotaStats);
  Node* node = edit(stats);
  if (node == nullptr || data_size(node->data) > kMostUsageBytes) return;
  auto usage = QuotaText::parse(node->data ? *node->data : std::string_view());
  if (!usage) return;
  usage->set("count", add_within_bounds(usage->get("count"), nodes));
  usage->set("bytes", add_within_bounds(usage->get("bytes"), bytes));
  put(*node, usage->text());
}

void Nodes::measure(std::string_view path) {
  std::string stats(kQuotaRoot);
  stats.append(path).append("/").append(kQuotaStats);
  const Node* top = find(path);
  QuotaText usage;
  usage.set("count", top == nullptr ? 0 : std::int64_t{1} + top->below);
  usage.set("bytes", top == nullptr
                         ? 0
                         : signed_size(top->data) + static_cast<std::int64_t>(top->bytes_below));
  put(*edit(stats), usage.text());
}

void Nodes::visit(base::FunctionRef<void(std::string_view, const Node&)> visitor) const {
  std::vector<std::string> open{std::string(kRoot)};
  while (!open.empty()) {
    const std::string path = std::move(open.back());
    open.pop_back();
    const Node* node = find(path);
    visitor(path, *node);
    std::vector<std::string_view> names(node->children.begin(), node->children.end());
    std::sort(names.begin(), names.end(), std::greater<>());
    for (const std::string_view name : names) {
      open.push_back(path == kRoot ? path : path + '/');
      open.back() += name;
    }
  }
}

void Nodes::restore(std::string path, Node node) {
  guard(node, acls_.share(*node.acl));
  // The system nodes are there from the start; what is stored takes their place.
  if (Node* present = edit(path)) {
    put(*present, node.data);
    acl_bytes_ -= present->acl_bytes;
    node.children = std::move(present->children);
    node.parent = present->parent;
    node.below = present->below;
    node.bytes_below = present->bytes_below;
    node.is_limited = present->is_limited;
    *present = std::move(node);
    return;
  }
  insert(std::move(path), std::move(node));
}

}  // namespace latchkey::tree
