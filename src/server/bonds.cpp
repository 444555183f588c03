#include "server/bonds.hpp"

#include "base/assert.hpp"

namespace latchkey::server {

void Bonds::add(tree::SessionId session, const Process& process) {
  LATCHKEY_ASSERT(process_of_.emplace(session, process).second);
  sessions_of_[process].insert(session);
}

std::optional<Process> Bonds::remove(tree::SessionId session) {
  const auto bond = process_of_.extract(session);
  if (bond.empty()) return std::nullopt;
  const auto sessions = sessions_of_.find(bond.mapped());
  sessions->second.erase(session);
  if (!sessions->second.empty()) return std::nullopt;
  sessions_of_.erase(sessions);
  return bond.mapped();
}

std::optional<Process> Bonds::process_of(tree::SessionId session) const {
  const auto found = process_of_.find(session);
  if (found == process_of_.end()) return std::nullopt;
  return found->second;
}

std::vector<tree::SessionId> Bonds::end(const Process& process) {
  const auto ended = sessions_of_.extract(process);
  if (ended.empty()) return {};
  for (const tree::SessionId session : ended.mapped()) process_of_.erase(session);
  return {ended.mapped().begin(), ended.mapped().end()};
}

}  // namespace latchkey::server
