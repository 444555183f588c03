#include "tree/pending.hpp"

#include <utility>

#include "base/assert.hpp"

namespace latchkey::tree {

Growth& Growth::operator+=(const Growth& more) {
  nodes += more.nodes;
  bytes += more.bytes;
  ephemeral_bytes += more.ephemeral_bytes;
  return *this;
}

Growth& Growth::operator-=(const Growth& less) {
  nodes -= less.nodes;
  bytes -= less.bytes;
  ephemeral_bytes -= less.ephemeral_bytes;
  return *this;
}

const Shadow* Pending::find(std::string_view path) const {
  const auto it = shadows_.find(path.empty() ? std::string_view("/") : path);
  return it == shadows_.end() ? nullptr : &it->second;
}

Growth Pending::growth(SessionId asker) const {
  Growth growth = growth_;
  const auto it = ephemeral_bytes_.find(asker);
  growth.ephemeral_bytes = it == ephemeral_bytes_.end() ? 0 : it->second;
  return growth;
}

void Pending::add(std::int64_t zxid, SessionId asker, Draft draft) {
  Decision decision{zxid, asker, draft.growth, {}};
  growth_ += draft.growth;
  if (draft.growth.ephemeral_bytes > 0) ephemeral_bytes_[asker] += draft.growth.ephemeral_bytes;
  decision.touched.reserve(draft.shadows.size());
  while (!draft.shadows.empty()) {
    auto drafted = shadows_.insert(draft.shadows.extract(draft.shadows.begin()));
    auto& [path, shadow] = *drafted.position;
    if (!drafted.inserted) shadow = std::move(drafted.node.mapped());
    shadow.zxid = zxid;
    const bool is_owned = shadow.exists && Owner::is_session(shadow.owner);
    if (is_owned) owned_[shadow.owner].insert_or_assign(path, zxid);
    decision.touched.push_back({&*drafted.position, is_owned ? shadow.owner : 0});
  }
  decisions_.push_back(std::move(decision));
}

void Pending::settle(std::int64_t zxid) {
  if (decisions_.empty() || decisions_.front().zxid != zxid) return;
  Decision decision = std::move(decisions_.front());
  decisions_.pop_front();
  growth_ -= decision.growth;
  if (decision.growth.ephemeral_bytes > 0) {
    const auto it = ephemeral_bytes_.find(decision.asker);
    it->second -= decision.growth.ephemeral_bytes;
    if (it->second == 0) ephemeral_bytes_.erase(it);
  }
  for (const auto& [place, owner] : decision.touched) {
    const auto& [path, shadow] = *place;
    if (owner != 0) disown(owner, path, zxid);
    if (shadow.zxid == zxid) shadows_.erase(shadows_.find(path));
  }
}

void Pending::disown(SessionId session, std::string_view path, std::int64_t zxid) {
  const auto it = owned_.find(session);
  if (it == owned_.end()) return;
  const auto owned = it->second.find(path);
  if (owned != it->second.end() && owned->second == zxid) it->second.erase(owned);
  if (it->second.empty()) owned_.erase(it);
}

const Pending::Owned& Pending::owned(SessionId session) const {
  static const Owned kNone;
  const auto it = owned_.find(session);
  return it == owned_.end() ? kNone : it->second;
}

}  // namespace latchkey::tree
