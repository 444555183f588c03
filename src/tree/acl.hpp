#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "wire/messages.hpp"

namespace latchkey::tree {

using AclList = std::vector<wire::WireAcl>;
/// A list that many nodes share. Immutable.
using AclRef = std::shared_ptr<const AclList>;

/// Who somebody has shown to be: `{"digest", "user:hash"}`, `{"ip", "127.0.0.1"}`, `{"super", ""}`.
struct Identity {
  std::string scheme;
  std::string id;
  friend bool operator==(const Identity&, const Identity&) = default;
};

/// May somebody with these identities do one of `permissions` (bits of Permission) to a node with
/// this list? The one permission rule of the server: every operation and every part of a multi asks
/// here (H92).
///
///     if (!permits(*node.acl, kWrite, client.identities)) return Err::kNoAuth;
///
/// An empty list permits everything, and `super` may do everything, as with Apache.
[[nodiscard]] bool permits(const AclList& acl, std::int32_t permissions,
                           std::span<const Identity> identities);

/// The list to store for the one a client asked for: duplicates left out, then `auth` replaced by
/// the client's own identities of scheme digest and x509, the ones that it had to prove. Nothing:
/// the list is empty, or has an unknown scheme, a malformed id, or `auth` although the client has
/// proven no identity, or would have more than a mebibyte, which many `auth`s and many identities
/// can make of a small request (H94): InvalidACL. Schemes are world (with the id anyone), auth,
/// digest, ip and x509 (a certificate's subject); `super` is somebody to be, not something to put
/// into a list, as with Apache. What it takes to make the list, and to store it, is added to
/// `work`, as Tree::work() counts.
[[nodiscard]] std::optional<AclList> settle(const AclList& asked,
                                            std::span<const Identity> identities,
                                            std::uint64_t* work = nullptr);

/// What a list takes up.
[[nodiscard]] std::size_t size_in_bytes(const AclList& list);

/// What a reader without admin permission gets to see: digests are blotted out ("user:x").
[[nodiscard]] AclList masked(const AclList& acl);

/// Everybody may do everything.
[[nodiscard]] const AclRef& open_list();
/// Everybody may read: /zookeeper/config.
[[nodiscard]] const AclRef& read_only_list();
/// To be handed on: a copy of `list`, or the open one if it is the same.
[[nodiscard]] AclRef handed_on(const AclList& list);

/// Makes equal lists share one copy, and forgets a list with the last who uses it (H94).
///
///     node.acl = table.share(*settle(request.acl, client.identities));
///
/// Thread safety: one thread at a time.
class AclTable {
 public:
  /// What is shared may outlive the table.
  [[nodiscard]] AclRef share(const AclList& list);
  /// Lists in use.
  [[nodiscard]] std::size_t size() const { return lists_->size(); }

 private:
  using Lists = std::unordered_map<std::string, std::weak_ptr<const AclList>>;  ///< By encoding.

  std::shared_ptr<Lists> lists_ = std::make_shared<Lists>();
};

}  // namespace latchkey::tree
