#include "tree/tree.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "wire/frame.hpp"

namespace latchkey::tree {

bool Tree::knows(SessionId session) const {
  const auto it = sessions_.find(session);
  return it != sessions_.end() && !it->second.closing;
}

Effects Tree::apply(const Record& record, IdentitiesOf identities_of) {
  Effects effects;
  effects.outcomes = apply(record, identities_of, [&](const std::vector<Notice>& fired) {
    effects.notices.insert(effects.notices.end(), fired.begin(), fired.end());
  });
  return effects;
}

std::vector<Outcome> Tree::apply(const Record& record, IdentitiesOf identities_of, Tell tell) {
  LATCHKEY_ASSERT(record.zxid > applied_);
  std::vector<Outcome> outcomes;
  outcomes.reserve(record.changes.size());
  std::vector<Notice> fired;
  for (const Change& change : record.changes) {
    outcomes.push_back(carry_out(change, record, identities_of, fired));
    tell(fired);
    fired.clear();
  }
  if (record.kind == Record::Kind::kOpenSession) {
    sessions_[record.session] = {record.timeout_ms, record.password, false};
  } else if (record.kind == Record::Kind::kCloseSession) {
    sessions_.erase(record.session);
  }
  pending_.settle(record.zxid);
  applied_ = record.zxid;
  return outcomes;
}

Outcome Tree::carry_out(const Change& change, const Record& record, IdentitiesOf identities_of,
                        std::vector<Notice>& notices) {
  AclRef acl;
  Outcome outcome{change.path, {}};
  switch (change.kind) {
    case Change::Kind::kCreate: {
      const Node& node = nodes_.create(change, record.zxid, record.time_ms);
      outcome.stat = node.stat();
      acl = node.acl;
      watches_.created(change.path, notices);
      break;
    }
    case Change::Kind::kDelete:
      acl = nodes_.find(change.path)->acl;
      nodes_.remove(change.path, record.zxid);
      watches_.deleted(change.path, notices);
      break;
    case Change::Kind::kSetData: {
      const Node& node = nodes_.set_data(change, record.zxid, record.time_ms);
      outcome.stat = node.stat();
      acl = node.acl;
      watches_.changed(change.path, notices);
      break;
    }
    case Change::Kind::kSetAcl: outcome.stat = nodes_.set_acl(change).stat(); break;
    case Change::Kind::kCheck: outcome.stat = nodes_.find(change.path)->stat(); break;
  }
  // Whoever may not read a node does not hear of it, whatever watch it has; a one-shot watch is
  // spent all the same. That is Apache's answer to CVE-2024-23944.
  const auto is_hidden = [&](const Notice& notice) {
    const AclList& list = notice.path == change.path ? *acl : *nodes_.find(notice.path)->acl;
    return !permits(list, kRead, identities_of(notice.peer));
  };
  std::erase_if(notices, is_hidden);
  return outcome;
}

}  // namespace latchkey::tree
