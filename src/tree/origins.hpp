#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>

#include "tree/expiry.hpp"

namespace latchkey::tree {

/// How many sessions each origin has opened that are still there. An origin is whatever may be told
/// apart at the other end: an address, or a user on a Unix socket. A session stays that of whoever
/// opened it, attached or not; those of an earlier run count for nobody.
///
///     origins.add(session, "10.0.0.7");
///     if (origins.count("10.0.0.7") >= most) refuse();
///
/// Thread safety: one thread at a time.
class Origins {
 public:
  /// The empty origin is not counted.
  void add(SessionId session, const std::string& origin);
  void remove(SessionId session);
  [[nodiscard]] std::size_t count(const std::string& origin) const;

 private:
  using Counts = std::unordered_map<std::string, std::size_t>;
  Counts counts_;
  std::unordered_map<SessionId, Counts::value_type*> of_;  ///< Into counts_, where nothing moves.
};

}  // namespace latchkey::tree
