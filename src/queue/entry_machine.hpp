#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "queue/node_machine.hpp"
#include "queue/traces.hpp"

namespace latchkey::queue {

/// Makes the 36-character identities of attempts; each call a fresh one.
using GuidSource = std::function<std::string()>;

/// A NodeMachine whose nodes are numbered entries of a directory, told from those of others by a
/// guid in their names.
///
/// One guid serves a whole attempt, so that whatever of it surfaces is recognised; a fresh one is
/// due only after a node was given up on purpose or a stranger was met with ours.
///
/// Thread safety: one thread at a time.
template <class Action>
class EntryMachine : protected NodeMachine<Action> {
 protected:
  explicit EntryMachine(GuidSource guids) : guids_(std::move(guids)) {}

  void renew_guid() { guid_ = guids_(); }

  void owe(const std::string& name) {
    if (disown(name)) this->want(action::Owe{name});
  }
  /// From now on it is no node of ours. False: it was none before.
  bool disown(const std::string& name) {
    const auto at = std::lower_bound(owed_.begin(), owed_.end(), name);
    if (at != owed_.end() && *at == name) return false;
    owed_.insert(at, name);
    return true;
  }
  [[nodiscard]] bool is_disowned(const std::string& name) const {
    return std::binary_search(owed_.begin(), owed_.end(), name);
  }

  void look_at_traces() {
    for (Traces::Trace& trace : traces_.all()) {
      if (trace.is_unseen()) this->template ask<action::Look>(trace.ask, trace.place.name);
    }
  }
  void drop_traces() {
    for (Traces::Trace& trace : traces_.all()) this->withdraw(trace.ask);
    traces_.clear();
  }

  std::string guid_;
  std::int64_t czxid_ = 0;  ///< Of our node, or of all of them.
  /// Ours once, given up: never again counted or adopted. A few, in order.
  std::vector<std::string> owed_;
  Traces traces_;

 private:
  GuidSource guids_;
};

}  // namespace latchkey::queue
