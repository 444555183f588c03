#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace latchkey::mini {

/// The one lock directory of the little world, with two levels so that a parent can be missing.
inline const std::string kDirectory = "/locks/a";

/// Who made a queue entry. Foreigners have no slot: -1.
struct Entry {
  int session = -1;
  int slot = -1;
  std::int64_t czxid = 0;
  std::int32_t number = 0;
};

/// One committed transaction.
struct Change {
  enum class Kind { kMake, kRemove, kCreate, kDelete, kExchange, kTouch, kClose, kSet };
  Kind kind = Kind::kTouch;
  std::string name;  ///< A path for kMake and kRemove, a child otherwise.
  Entry entry;
  std::string replaced = {};             ///< A child that kExchange, or kCreate, deletes as well.
  std::optional<std::string> word = {};  ///< The directory's new data, of a kDelete or a kSet.
};

/// What a transaction did, as far as watches care.
struct Effects {
  std::vector<std::string> deleted;
  std::vector<std::string> touched;
  bool directory_changed = false;
};

/// What the lock directory keeps besides its entries.
struct Data {
  std::string text;
  std::int32_t version = 0;
  std::int64_t mzxid = 0;
};

/// As much of a ZooKeeper tree as a lock needs: directory levels, the entries of one directory, its
/// sequence counter and its data. A value; every server of the little world has one.
struct Tree {
  std::set<std::string> levels{"/locks", kDirectory};
  std::map<std::string, Entry> entries;
  std::int32_t counter = 0;
  Data data;
  std::int64_t zxid = 0;  ///< How much was applied.

  [[nodiscard]] bool has_directory() const { return levels.contains(kDirectory); }
  [[nodiscard]] bool has_parent_of(const std::string& path) const;
  [[nodiscard]] std::vector<std::string> children() const;
  Effects apply(const Change& change);
};

/// `prefix` and ten digits, as a server prints them.
[[nodiscard]] std::string sequential_name(const std::string& prefix, std::int32_t number);

}  // namespace latchkey::mini
