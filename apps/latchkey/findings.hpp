#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "latchkey/inspect.hpp"

/// What is wrong with a lock or a server, as functions of what was seen.
namespace latchkey::app {

struct Finding {
  enum class Weight {
    kNote,     ///< Worth knowing; not wrong.
    kWarning,  ///< Will be trouble, or is for some.
    kBad,      ///< Is trouble.
  };
  Weight weight = Weight::kWarning;
  std::string where;   ///< A path or an address.
  std::string what;    ///< A sentence.
  std::string advice;  ///< What to try; empty if that has been said.

  friend bool operator==(const Finding&, const Finding&) = default;
};

[[nodiscard]] std::string_view name(Finding::Weight weight);

/// A lock: clients that do not see each other, foreign nodes, entries that nobody removes, a
/// directory's counter near its end, holders of long ago. `counter` is the number of its next
/// child.
[[nodiscard]] std::vector<Finding> diagnose(const Queue& lock, std::int32_t counter,
                                            std::int64_t now_ms);

/// A server by its answers to `ruok` and `srvr`; both empty if it did not answer.
[[nodiscard]] std::vector<Finding> diagnose_server(const std::string& address,
                                                   std::string_view ruok, std::string_view srvr);

/// The version out of `srvr`'s answer; empty if there is none.
[[nodiscard]] std::string version_of(std::string_view srvr);

/// What it is: "Latchkey 0.1.0 (ZooKeeper 3.8.0)", "ZooKeeper 3.8.0"; empty if it does not tell.
[[nodiscard]] std::string product_of(std::string_view srvr);

/// What is wrong between servers, each with its version: they should have the same.
[[nodiscard]] std::vector<Finding> compare_versions(
    const std::vector<std::pair<std::string, std::string>>& servers);

}  // namespace latchkey::app
