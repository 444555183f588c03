#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tree/acl.hpp"
#include "tree/address.hpp"
#include "tree/watches.hpp"

namespace latchkey::tree {

/// Who may hear of what a record changes: those who may read it, as permits() says. A list is gone
/// through once for all who ask, and each of them is looked up once, however many parts of the
/// record tell it of nodes with that list: otherwise a record would cost watchers times identities
/// times entries times parts (H89).
///
///     Audience audience;
///     if (audience.may_hear(node.acl, notice.peer, identities_of(notice.peer))) tell(notice);
///
/// For one record: nobody's identities change meanwhile. Thread safety: one thread at a time.
class Audience {
 public:
  [[nodiscard]] bool may_hear(const AclRef& list, PeerId peer,
                              std::span<const Identity> identities);
  /// What that has taken so far, as Tree::work() counts.
  [[nodiscard]] std::uint64_t work() const { return work_; }

 private:
  using Range = std::pair<Address, Address>;  ///< From, to.

  /// A list, so that a reader is found in it without going through it.
  struct Readers {
    AclRef list;  ///< The views below lie in it; and while it is held, no other has its address.
    bool everybody = false;
    std::unordered_set<std::string_view> digests;
    std::unordered_set<std::string_view> subjects;
    std::vector<Range> networks;       ///< In order, apart from each other.
    std::vector<Range> wide_networks;  ///< Those for IPv6 alone.
    std::unordered_map<PeerId, bool> known;
  };

  [[nodiscard]] Readers& readers_of(const AclRef& list);
  [[nodiscard]] static bool has(const Readers& readers, const Identity& identity);

  std::unordered_map<const AclList*, Readers> lists_;
  std::size_t kept_ = 0;  ///< Entries, and those who are known, of all lists.
  std::uint64_t work_ = 0;
};

}  // namespace latchkey::tree
