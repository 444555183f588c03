#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "latchkey/node.hpp"
#include "latchkey/path.hpp"
#include "latchkey/watch.hpp"

/// Every request of ZooKeeper 3.8 that a client can make, as a value. Session::call() sends one and
/// waits, Session::async() sends one and calls back; `Value` is what a success carries.
///
///     Result<Created> made = session.call(Create{"/config", "v1"}, deadline_in(2s));
///     Result<Stat> changed = session.call(Set{"/config", "v2", 0}, deadline_in(2s));
///     session.async(Get{"/config"}, deadline_in(2s), [](Result<Node> node) { use(node); });
///
/// A version of -1 means any.
namespace latchkey::inline v0 {

/// The life of a created node.
///
///     CreateOptions note{.lifetime = Lifetime::kTtl, .ttl = 1h};
enum class Lifetime {
  kPersistent,
  kEphemeral,  ///< Until the session ends.
  kContainer,  ///< Until some time after its last child has gone.
  kTtl,        ///< Until it has had no child and no change for CreateOptions::ttl.
};

/// Who chooses the end of its name.
///
///     CreateOptions entry{.naming = Naming::kSequential};
///     auto made = session.create("/jobs/job-", "", entry, deadline);  // "/jobs/job-0000000007"
enum class Naming {
  kAsGiven,
  kSequential,  ///< The server appends ten digits that grow with every create in that directory.
};

/// How a node is created.
///
///     CreateOptions entry{.lifetime = Lifetime::kEphemeral, .naming = Naming::kSequential};
///     auto made = session.create("/members/member-", "", entry, deadline);
struct CreateOptions {
  Lifetime lifetime = Lifetime::kPersistent;
  Naming naming = Naming::kAsGiven;
  std::vector<Acl> acl = open_acl();
  std::chrono::milliseconds ttl{0};
};

/// The node's final path, and its Stat if the server told it: it does outside a Multi, and inside
/// one from 3.8.2 on if Multi::create_stat asks for it.
///
///     Result<Created> made = session.call(Create{"/config", "v1"}, deadline);
///     if (made) std::cout << made->path << '\n';
struct Created {
  std::string path;
  std::optional<Stat> stat;
};

/// Makes a node whose parent is there already.
///
///     auto made = session.call(Create{"/config", "v1", {.acl = creator_acl()}}, deadline);
struct Create {
  using Value = Created;
  Path path;
  std::string data;
  CreateOptions options = {};
};

/// Deletes a node, unless it has children.
///
///     auto gone = session.call(Remove{"/config", 3}, deadline);  // version 3 and no other
struct Remove {
  using Value = void;
  Path path;
  std::int32_t version = -1;
};

/// No stat means: no such node. The watcher fires on creation, deletion or change.
///
///     Result<std::optional<Stat>> stat = session.call(Exists{"/config", watcher}, deadline);
struct Exists {
  using Value = std::optional<Stat>;
  Path path;
  Watcher watcher = {};
};

/// What is in a node.
///
///     if (node) std::cout << node->data << ", version " << node->stat.version << '\n';
struct Node {
  std::string data;
  Stat stat;
};

/// The watcher fires on change or deletion; it is set only if the node is there.
///
///     Result<Node> node = session.call(Get{"/config", watcher}, deadline);
struct Get {
  using Value = Node;
  Path path;
  Watcher watcher = {};
};

/// Replaces the data of a node that is there: kBadVersion if somebody else did meanwhile.
///
///     auto stat = session.call(Set{"/config", "v2", node->stat.version}, deadline);
struct Set {
  using Value = Stat;
  Path path;
  std::string data;
  std::int32_t version = -1;
};

/// The names of a node's children, in no order, and the node's own Stat.
///
///     Result<ChildList> members = session.call(Children{"/members"}, deadline);
///     for (const std::string& name : members->names) std::cout << name << '\n';
struct ChildList {
  std::vector<std::string> names;
  Stat stat;
};

/// The watcher fires when a child comes or goes, or when the node itself is deleted.
///
///     Result<ChildList> members = session.call(Children{"/members", watcher}, deadline);
struct Children {
  using Value = ChildList;
  Path path;
  Watcher watcher = {};
};

/// Who may do what with a node.
///
///     for (const Acl& entry : node_acl->acl) show(entry);
struct NodeAcl {
  std::vector<Acl> acl;
  Stat stat;
};

/// Reads that.
///
///     Result<NodeAcl> who = session.call(GetAcl{"/config"}, deadline);
struct GetAcl {
  using Value = NodeAcl;
  Path path;
};

/// Who may do what from now on; the node itself and its children stay as they are.
///
///     Result<NodeAcl> old = session.call(GetAcl{"/config"}, deadline);
///     auto stat = session.call(SetAcl{"/config", creator_acl(), old->stat.aversion}, deadline);
struct SetAcl {
  using Value = Stat;
  Path path;
  std::vector<Acl> acl;
  std::int32_t version = -1;  ///< Stat::aversion.
};

/// Waits until this session's server has caught up with the leader.
///
///     auto synced = session.call(Sync{"/config"}, deadline);
///     auto node = session.get("/config", deadline);  // as new as the sync, or newer
struct Sync {
  using Value = void;
  Path path;
};

/// Fails the Multi it is part of unless the node exists with this version. On its own it is sent as
/// a Multi of one.
///
///     Multi guarded{{Check{"/state", 4}, Set{"/config", "v2"}}};
struct Check {
  using Value = void;
  Path path;
  std::int32_t version = -1;
};

/// What one part of a Multi came to: Created for Create, Stat for Set, nothing for Remove and
/// Check. When the Multi fails, every part is an Error: the culprit's own, kRolledBack for the
/// others.
using MultiResult = Result<std::variant<std::monostate, Created, Stat>>;

/// All or nothing. The call succeeds if the server carried the Multi out or refused it as a whole;
/// look at the parts, or at `committed`.
///
///     Multi move{{Check{"/state", 4}, Remove{"/todo/a"}, Create{"/done/a", ""}}};
///     auto outcome = session.call(move, deadline);
///     if (!outcome || outcome->committed) return;
///     for (const MultiResult& part : outcome->parts) std::cerr << part.error() << '\n';
struct Multi {
  struct Outcome {
    bool committed = false;
    std::vector<MultiResult> parts;
  };
  using Value = Outcome;
  using Part = std::variant<Create, Remove, Set, Check>;
  std::vector<Part> parts;
  /// Ask for the Stat of created nodes. Servers before 3.8.2 carry the Multi out without telling
  /// it.
  bool create_stat = false;
};

/// Several reads in one round trip, each with its own success or error. Watchers are not allowed.
///
///     auto both = session.call(MultiRead{{Get{"/config"}, Children{"/members"}}}, deadline);
struct MultiRead {
  using Part = std::variant<Get, Children>;
  using Value = std::vector<Result<std::variant<Node, std::vector<std::string>>>>;
  std::vector<Part> parts;
};

/// This session's ephemeral nodes at or below a path.
///
///     Result<std::vector<std::string>> ours = session.call(Ephemerals{"/members"}, deadline);
struct Ephemerals {
  using Value = std::vector<std::string>;
  Path below = "/";
};

/// How many nodes are below a path, at any depth.
///
///     Result<std::int32_t> count = session.call(ChildrenCount{"/members"}, deadline);
struct ChildrenCount {
  using Value = std::int32_t;
  Path path;
};

/// One credential that the server has accepted.
///
///     auto us = session.call(WhoAmI{}, deadline);
///     for (const Identity& one : *us) std::cout << one.scheme << ' ' << one.user << '\n';
struct Identity {
  std::string scheme;
  std::string user;
};

/// Whom the server takes this session for.
///
///     Result<std::vector<Identity>> us = session.call(WhoAmI{}, deadline);
struct WhoAmI {
  using Value = std::vector<Identity>;
};

/// How far a persistent watch sees.
///
///     AddWatch one{"/config", WatchMode::kPersistent, watcher};
enum class WatchMode {
  kPersistent,           ///< Every change of the node and of its list of children.
  kPersistentRecursive,  ///< Creations, deletions and changes of data at or below the path.
};

/// A watch that stays until RemoveWatches or the end of the session.
///
/// On servers before 3.9 a one-shot watch on the same path would turn a persistent one into a
/// one-shot; this client keeps the two apart, so they may be mixed.
///
///     AddWatch all{"/members", WatchMode::kPersistentRecursive, watcher};
///     auto watching = session.call(all, deadline);
struct AddWatch {
  using Value = void;
  Path path;
  WatchMode mode = WatchMode::kPersistent;
  Watcher watcher;
};

/// Which watches are meant.
///
///     auto removed = session.call(RemoveWatches{"/config", WatchKind::kData}, deadline);
enum class WatchKind {
  kChildren,
  kData,
  kAny,  ///< Persistent ones too.
};

/// Removes all of this session's watchers of a path; each is told kWatchRemoved. kNoWatcher if
/// there were none.
///
///     auto removed = session.call(RemoveWatches{"/members", WatchKind::kAny}, deadline);
struct RemoveWatches {
  using Value = void;
  Path path;
  WatchKind kind = WatchKind::kAny;
};

/// Adds an identity to the session, now and after every reconnect: {"digest", "user:password"}.
/// A refusal ends the session (kAuthFailed).
///
///     auto known = session.call(Authenticate{"digest", "ann:secret"}, deadline);
struct Authenticate {
  using Value = void;
  std::string scheme;
  std::string secret;
};

}  // namespace latchkey::inline v0
