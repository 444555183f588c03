#pragma once

#include <compare>
#include <cstdint>
#include <ostream>
#include <string>

#include "latchkey/export.hpp"

namespace latchkey::inline v0 {

/// A fencing token: grows with every hold of a lock, over crashes, restarts and re-created
/// directories. Hand it to the resource you protect; a resource that remembers the largest token it
/// has seen, in the same transaction as the data, and refuses smaller ones, cannot be written to by
/// a holder that has been overtaken (H17).
///
///     if (token < largest_seen) return refuse(row);
///     largest_seen = token;
///     store.write(token, row);
///
/// It is the zxid of the transaction that created the lock's node, and, where a process passes the
/// lock between its own threads, the number of the hold within it.
///
/// Thread safety: immutable.
class Token {
 public:
  constexpr explicit Token(std::int64_t zxid, std::uint32_t hold = 0) noexcept
      : zxid_(zxid), hold_(hold) {}

  [[nodiscard]] constexpr std::int64_t zxid() const noexcept { return zxid_; }
  [[nodiscard]] constexpr std::uint32_t hold() const noexcept { return hold_; }

  friend constexpr auto operator<=>(Token, Token) noexcept = default;

 private:
  std::int64_t zxid_;
  std::uint32_t hold_;
};

/// "4294967321", or "4294967321.3" for a later hold on the same node.
///
///     std::clog << "working under " + to_string(lease->token()) + '\n';
[[nodiscard]] LATCHKEY_EXPORT std::string to_string(Token token);
LATCHKEY_EXPORT std::ostream& operator<<(std::ostream& out, Token token);

}  // namespace latchkey::inline v0
