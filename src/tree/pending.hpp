#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tree/nodes.hpp"

namespace latchkey::tree {

/// What a decision has to know of a node: its durable state with everything decided since.
struct Shadow {
  bool exists = true;
  std::int32_t version = 0;
  std::int32_t creates = 0;
  std::int32_t aversion = 0;
  std::size_t children = 0;
  std::size_t data_bytes = 0;
  std::int64_t owner = 0;
  AclRef acl;
  std::int64_t zxid = 0;  ///< Of the decision that changed it last.
};

/// What decisions can add to the tree at most.
struct Growth {
  std::size_t nodes = 0;
  std::size_t bytes = 0;
  std::size_t ephemeral_bytes = 0;  ///< Of the session that asks, see Nodes::ephemeral_bytes().

  Growth& operator+=(const Growth& more);
  Growth& operator-=(const Growth& less);
};

/// The changes of one decision while it is being made; dropped if a part of it fails.
struct Draft {
  PathMap<Shadow> shadows;
  Growth growth;
};

/// Decisions on their way to the disk: they bind the next decision, but nobody may see them yet.
/// Thread safety: one thread at a time.
class Pending {
 public:
  [[nodiscard]] const Shadow* find(std::string_view path) const;
  void add(std::int64_t zxid, SessionId asker, Draft draft);
  /// The decision has been applied.
  void settle(std::int64_t zxid);

  /// Nodes that pending decisions give to a session, with the newest such decision. A later one may
  /// have taken them away again: ask find().
  using Owned = std::map<std::string_view, std::int64_t>;
  [[nodiscard]] const Owned& owned(SessionId session) const;
  /// Of nodes and bytes for all of them, of ephemeral bytes for those that this session asked for.
  [[nodiscard]] Growth growth(SessionId asker) const;
  [[nodiscard]] bool empty() const { return decisions_.empty(); }

 private:
  /// What a decision has changed. The place stays for as long as a decision is pending that has
  /// changed it, this one or a later one, and decisions are settled in their order.
  struct Touched {
    PathMap<Shadow>::value_type* place;
    SessionId owner;  ///< Who got the node; 0 for nobody.
  };
  struct Decision {
    std::int64_t zxid = 0;
    SessionId asker = 0;
    Growth growth;
    std::vector<Touched> touched;
  };

  void disown(SessionId session, std::string_view path, std::int64_t zxid);

  PathMap<Shadow> shadows_;
  std::deque<Decision> decisions_;
  Growth growth_;                                               ///< Of all of them.
  std::unordered_map<SessionId, std::size_t> ephemeral_bytes_;  ///< By who asked, none of them 0.
  std::unordered_map<SessionId, Owned> owned_;                  ///< Paths inside `shadows_`.
};

}  // namespace latchkey::tree
