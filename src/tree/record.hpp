#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tree/acl.hpp"
#include "tree/expiry.hpp"
#include "wire/messages.hpp"

namespace latchkey::tree {

/// One step of a decision: what becomes of one node. It holds results, not requests: the final
/// path, the versions as they will be, the settled ACL. Carrying it out again gives the same tree
/// (H79).
struct Change {
  enum class Kind : std::int32_t { kCreate = 1, kDelete, kSetData, kSetAcl, kCheck };

  Kind kind = Kind::kCheck;
  std::string path;
  wire::Buffer data;
  AclList acl;
  /// kCreate: who owns it, see Owner; 0 otherwise.
  std::int64_t owner = 0;
  /// kCreate: the parent's count of creates; kSetData: the version; kSetAcl: the ACL's version.
  std::int32_t version = 0;

  template <class Self, class Archive>
  static void fields(Self& self, Archive& archive) {
    archive(self.kind, self.path, self.data, self.acl, self.owner, self.version);
  }
  friend bool operator==(const Change&, const Change&) = default;
};

/// One decision of the tree, the unit of the journal: all of it happens, at one zxid, or nothing.
struct Record {
  enum class Kind : std::int32_t { kChanges = 1, kOpenSession, kCloseSession, kNewEpoch };

  std::int64_t zxid = 0;  ///< Stands beside the bytes in the journal, not in them.
  Kind kind = Kind::kChanges;
  std::int64_t time_ms = 0;  ///< Wall clock, for ctime and mtime; never compared (H86).
  SessionId session = 0;
  std::int32_t timeout_ms = 0;  ///< kOpenSession.
  std::string password;         ///< kOpenSession.
  std::vector<Change> changes;  ///< kCloseSession: the session's nodes that go with it.

  template <class Self, class Archive>
  static void fields(Self& self, Archive& archive) {
    archive(self.kind, self.time_ms, self.session, self.timeout_ms, self.password, self.changes);
  }
  friend bool operator==(const Record&, const Record&) = default;
};

[[nodiscard]] std::string encode(const Record& record);
/// Nothing if the bytes are no record.
[[nodiscard]] std::optional<Record> decode_record(std::int64_t zxid, std::string_view bytes);

/// The number that says whose a node is: 0 nobody's, a session's id, the mark of a container, or
/// the time a TTL node may live. Apache's own numbers.
class Owner {
 public:
  static constexpr std::int64_t kContainer = INT64_MIN;
  static constexpr std::int64_t kMaxTtlMs = (std::int64_t{1} << 40) - 1;

  [[nodiscard]] static constexpr std::int64_t ttl(std::int64_t ttl_ms) { return kTtlMark | ttl_ms; }
  [[nodiscard]] static constexpr bool is_container(std::int64_t owner) {
    return owner == kContainer;
  }
  [[nodiscard]] static constexpr bool is_ttl(std::int64_t owner) {
    return (owner & kTtlMark) == kTtlMark;
  }
  [[nodiscard]] static constexpr std::int64_t ttl_ms(std::int64_t owner) {
    return owner & kMaxTtlMs;
  }
  [[nodiscard]] static constexpr bool is_session(std::int64_t owner) {
    return owner != 0 && !is_container(owner) && !is_ttl(owner);
  }

 private:
  static constexpr std::int64_t kTtlMark = INT64_MIN >> 7;  // The eight highest bits.
};

}  // namespace latchkey::tree
