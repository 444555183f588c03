#include "tree/origins.hpp"

namespace latchkey::tree {

void Origins::add(SessionId session, const std::string& origin) {
  if (origin.empty()) return;
  Counts::value_type& entry = *counts_.try_emplace(origin, 0).first;
  ++entry.second;
  of_[session] = &entry;
}

void Origins::remove(SessionId session) {
  const auto found = of_.find(session);
  if (found == of_.end()) return;
  Counts::value_type& entry = *found->second;
  of_.erase(found);
  if (--entry.second == 0) counts_.erase(counts_.find(entry.first));
}

std::size_t Origins::count(const std::string& origin) const {
  const auto found = counts_.find(origin);
  return found == counts_.end() ? 0 : found->second;
}

}  // namespace latchkey::tree
