#include "tree/tree.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "tree/audience.hpp"
#include "tree/work.hpp"
#include "wire/frame.hpp"

namespace latchkey::tree {

bool Tree::knows(SessionId session) const {
  const auto it = sessions_.find(session);
  return it != sessions_.end() && !it->second.closing;
}

Effects Tree::apply(const Record& record, IdentitiesOf identities_of) {
  Effects effects;
  effects.stats = apply(record, identities_of, [&](const std::vector<Notice>& fired) {
    effects.notices.insert(effects.notices.end(), fired.begin(), fired.end());
  });
  return effects;
}

std::vector<wire::WireStat> Tree::apply(const Record& record, IdentitiesOf identities_of,
                                        Tell tell) {
  LATCHKEY_ASSERT(record.zxid > applied_);
  std::vector<wire::WireStat> stats;
  stats.reserve(record.changes.size());
  std::vector<Notice> fired;
  Audience audience;
  for (const Change& change : record.changes) {
    // Whoever may not read a node does not hear of it, whatever watch it has; a one-shot watch is
    // spent all the same. That is Apache's answer to CVE-2024-23944.
    const AclRef gone =
        change.kind == Change::Kind::kDelete ? nodes_.find(change.path)->acl : nullptr;
    stats.push_back(carry_out(change, record, fired));
    work_ += kLookWork * fired.size();
    std::erase_if(fired, [&](const Notice& notice) {
      const bool is_gone = gone && notice.path == change.path;
      const AclRef& list = is_gone ? gone : nodes_.find(notice.path)->acl;
      return !audience.may_hear(list, notice.peer, identities_of(notice.peer));
    });
    tell(fired);
    fired.clear();
  }
  work_ += audience.work();
  if (record.kind == Record::Kind::kOpenSession) {
    sessions_[record.session] = {record.timeout_ms, record.password, false};
  } else if (record.kind == Record::Kind::kCloseSession) {
    sessions_.erase(record.session);
  }
  pending_.settle(record.zxid);
  applied_ = record.zxid;
  return stats;
}

wire::WireStat Tree::carry_out(const Change& change, const Record& record,
                               std::vector<Notice>& notices) {
  wire::WireStat stat;
  switch (change.kind) {
    case Change::Kind::kCreate:
      stat = nodes_.create(change, record.zxid, record.time_ms).stat();
      watches_.created(change.path, notices);
      break;
    case Change::Kind::kDelete:
      nodes_.remove(change.path, record.zxid);
      watches_.deleted(change.path, notices);
      break;
    case Change::Kind::kSetData:
      stat = nodes_.set_data(change, record.zxid, record.time_ms).stat();
      watches_.changed(change.path, notices);
      break;
    case Change::Kind::kSetAcl: stat = nodes_.set_acl(change).stat(); break;
    case Change::Kind::kCheck: stat = nodes_.find(change.path)->stat(); break;
  }
  return stat;
}

}  // namespace latchkey::tree
