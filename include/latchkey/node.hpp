#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "latchkey/export.hpp"

namespace latchkey::inline v0 {

/// ZooKeeper's record of a node. `czxid` is the transaction that created it: it grows over the
/// whole service and never repeats, which is what makes it a fencing token.
///
///     const Stat& stat = node->stat;
///     const bool ours = stat.ephemeral_owner == session.id();
struct Stat {
  std::int64_t czxid = 0;
  std::int64_t mzxid = 0;
  std::int64_t ctime_ms = 0;
  std::int64_t mtime_ms = 0;
  std::int32_t version = 0;
  std::int32_t cversion = 0;
  std::int32_t aversion = 0;
  std::int64_t ephemeral_owner = 0;
  std::int32_t data_length = 0;
  std::int32_t num_children = 0;
  std::int64_t pzxid = 0;

  friend bool operator==(const Stat&, const Stat&) = default;
};

/// What may be done to a node, as bits of Acl::permissions.
///
///     const std::int32_t look = Permission::kRead;
///     const std::int32_t contend = kRead | kCreate | kDelete;
enum Permission : std::int32_t {
  kRead = 1,
  kWrite = 2,
  kCreate = 4,
  kDelete = 8,
  kAdmin = 16,
  kAllPermissions = 31,
};

/// One entry of an access control list.
///
///     std::vector<Acl> acl = creator_acl();
///     acl.push_back({kRead | kCreate, "ip", "10.0.0.0/8"});
///     Mutex mutex(session, "/locks/ledger", {.acl = acl});
struct Acl {
  std::int32_t permissions = kAllPermissions;
  std::string scheme;
  std::string id;

  friend bool operator==(const Acl&, const Acl&) = default;
};

/// Everybody may do everything: ZooKeeper's OPEN_ACL_UNSAFE, and the default.
///
///     const bool open = node_acl->acl == open_acl();
[[nodiscard]] LATCHKEY_EXPORT std::vector<Acl> open_acl();
/// Only whoever is authenticated on this session may do anything: ZooKeeper's CREATOR_ALL_ACL.
[[nodiscard]] LATCHKEY_EXPORT std::vector<Acl> creator_acl();

}  // namespace latchkey::inline v0
