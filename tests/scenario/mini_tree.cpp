#include "scenario/mini_tree.hpp"

#include <array>
#include <cstdio>
#include <limits>

namespace latchkey::mini {

bool Tree::has_parent_of(const std::string& path) const {
  const std::size_t slash = path.rfind('/');
  return slash == 0 || levels.contains(path.substr(0, slash));
}

std::vector<std::string> Tree::children() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries) names.push_back(name);
  return names;
}

Effects Tree::apply(const Change& change) {
  Effects effects;
  ++zxid;
  if (change.word) data = {*change.word, data.version + 1, zxid};
  switch (change.kind) {
    case Change::Kind::kMake:
      levels.insert(change.name);
      if (change.name == kDirectory) {
        counter = 0;
        data = {"", 0, zxid};
      }
      break;
    case Change::Kind::kRemove:
      levels.erase(change.name);
      effects.directory_changed = change.name == kDirectory;
      break;
    case Change::Kind::kDelete:
      entries.erase(change.name);
      effects.deleted.push_back(change.name);
      effects.directory_changed = true;
      break;
    case Change::Kind::kExchange:
    case Change::Kind::kCreate:
      if (entries.erase(change.replaced) > 0) effects.deleted.push_back(change.replaced);
      entries[change.name] = change.entry;
      if (counter < std::numeric_limits<std::int32_t>::max()) ++counter;
      effects.directory_changed = true;
      break;
    case Change::Kind::kSet: break;
    case Change::Kind::kTouch: effects.touched.push_back(change.name); break;
    case Change::Kind::kClose:
      std::erase_if(entries, [&](const auto& item) {
        if (item.second.session != change.entry.session) return false;
        effects.deleted.push_back(item.first);
        return true;
      });
      effects.directory_changed = !effects.deleted.empty();
      break;
  }
  return effects;
}

std::string sequential_name(const std::string& prefix, std::int32_t number) {
  std::array<char, 16> digits{};
  std::snprintf(digits.data(), digits.size(), "%010d", number);
  return prefix + digits.data();
}

}  // namespace latchkey::mini
