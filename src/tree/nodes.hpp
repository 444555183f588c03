#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/function_ref.hpp"
#include "tree/acl.hpp"
#include "tree/record.hpp"
#include "wire/messages.hpp"

namespace latchkey::tree {

/// A path is hashed where it stands, without a copy.
struct PathHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view path) const {
    return std::hash<std::string_view>()(path);
  }
};
template <class Value>
using PathMap = std::unordered_map<std::string, Value, PathHash, std::equal_to<>>;

/// "/a" for "/a/b", "/" for "/a" and for "/".
[[nodiscard]] std::string_view parent_of(std::string_view path);
/// "b" for "/a/b".
[[nodiscard]] std::string_view last_part(std::string_view path);

struct Node {
  wire::Buffer data;
  AclRef acl;
  std::int64_t czxid = 0;
  std::int64_t mzxid = 0;
  std::int64_t pzxid = 0;
  std::int64_t ctime_ms = 0;
  std::int64_t mtime_ms = 0;
  std::int64_t owner = 0;
  std::int32_t version = 0;
  std::int32_t creates = 0;  ///< Children ever created: the sequence counter. See stat().
  std::int32_t aversion = 0;
  std::uint32_t below = 0;                        ///< Nodes below it, at any depth.
  std::size_t bytes_below = 0;                    ///< Of their data.
  std::uint32_t acl_bytes = 0;                    ///< What its list counts.
  bool is_limited = false;                        ///< It has a quota of its own.
  Node* parent = nullptr;                         ///< None for the root.
  std::unordered_set<std::string_view> children;  ///< Last parts, inside the keys of the children.

  /// As a client sees it. Its cversion counts creates and deletes, ours only creates: each child
  /// that is gone was deleted once.
  [[nodiscard]] wire::WireStat stat() const;
};

/// The nodes of the durable state, with what has to be found quickly: the children of a node, the
/// nodes of a session, containers and TTL nodes, the directories under a quota. It does what it is
/// told; whether it may be done was decided before.
/// Thread safety: one thread at a time.
class Nodes {
 public:
  /// With the system nodes: /, /zookeeper, /zookeeper/quota, /zookeeper/config.
  Nodes();
  Nodes(const Nodes&) = delete;
  Nodes& operator=(const Nodes&) = delete;

  /// The empty path is the root, as with Apache.
  [[nodiscard]] const Node* find(std::string_view path) const;

  const Node& create(const Change& change, std::int64_t zxid, std::int64_t time_ms);
  void remove(std::string_view path, std::int64_t zxid);
  const Node& set_data(const Change& change, std::int64_t zxid, std::int64_t time_ms);
  const Node& set_acl(const Change& change);

  using Paths = std::set<std::string_view>;
  /// The nodes of a session, in order.
  [[nodiscard]] const Paths& ephemerals(SessionId session) const;
  /// What a record that removes all of them takes, about.
  [[nodiscard]] std::size_t ephemeral_bytes(SessionId session) const;
  /// Of all sessions.
  [[nodiscard]] std::size_t ephemeral_bytes() const { return ephemeral_bytes_; }
  /// What one of them adds to that.
  [[nodiscard]] static std::size_t ephemeral_bytes_of(std::string_view path);
  /// Containers whose last child is gone; one that has had none yet is not among them.
  [[nodiscard]] const Paths& unused_containers() const { return unused_containers_; }
  /// TTL nodes without children, each with the last moment of its time, those that end first in
  /// front.
  using Ends = std::set<std::pair<std::int64_t, std::string_view>>;
  [[nodiscard]] const Ends& ttl_ends() const { return ttl_ends_; }

  [[nodiscard]] std::size_t count() const { return nodes_.size(); }
  /// Nodes below a path, the system nodes included. It is known and not counted: whoever asks often
  /// takes nobody's time.
  [[nodiscard]] std::size_t count_below(std::string_view path) const;
  [[nodiscard]] std::size_t ephemeral_count() const { return ephemeral_count_; }
  /// Of paths and data.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  /// And of permission lists, each counted for every node that has it: that is what a snapshot of
  /// them takes, though in memory they share one (H94).
  [[nodiscard]] std::size_t bytes_in_all() const { return bytes_ + acl_bytes_; }
  /// Permission lists in memory, the open one and the server's own not among them.
  [[nodiscard]] std::size_t lists() const { return acls_.size(); }

  /// Every node, a parent before its children, siblings in order of their names: equal trees are
  /// visited alike.
  void visit(base::FunctionRef<void(std::string_view path, const Node& node)> visitor) const;
  /// Puts back a visited node; its parent is there.
  void restore(std::string path, Node node);

 private:
  Node* edit(std::string_view path);
  Node& insert(std::string path, Node node);
  /// Gives a node its data, and counts them wherever they are counted.
  void put(Node& node, wire::Buffer data);
  /// The same with its list.
  void guard(Node& node, AclRef acl);
  /// Adds a node to the index of its owner, or takes it out.
  void add_to_index(std::int64_t owner, std::string_view path);
  void take_from_index(std::int64_t owner, std::string_view path);
  /// The nearest path with a quota, from `path` upwards; empty if there is none.
  [[nodiscard]] std::string_view quota_over(const Node& node, std::string_view path) const;
  /// Whatever has happened to a node, it stands among those that can be reaped if it can, and not
  /// otherwise: taken out before it changes, put back after that.
  void take_from_reapable(std::string_view path, const Node& node);
  void put_to_reapable(std::string_view path, const Node& node);
  /// Where a path is kept, for as long as its node is there.
  [[nodiscard]] std::string_view key_of(std::string_view path) const;
  /// Adds to the usage of the quota on `limited`, unless that is empty.
  void use(std::string_view limited, std::int64_t bytes, std::int64_t nodes);
  /// Sets the usage that a new quota starts with. As with the count it is known, so that a request
  /// that makes the quota again and again costs no more than any other of its size.
  void measure(std::string_view path);

  PathMap<Node> nodes_;
  AclTable acls_;
  struct Owned {
    Paths paths;
    std::size_t bytes = 0;
  };
  std::unordered_map<SessionId, Owned> ephemerals_;
  Paths unused_containers_;
  Ends ttl_ends_;
  std::set<std::string, std::less<>> limited_;  ///< Paths with a quota.
  std::size_t ephemeral_count_ = 0;
  std::size_t ephemeral_bytes_ = 0;
  std::size_t bytes_ = 0;
  std::size_t acl_bytes_ = 0;
};

}  // namespace latchkey::tree
