#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/box.hpp"
#include "base/function_ref.hpp"
#include "queue/messages.hpp"
#include "queue/node_name.hpp"

/// What became of a create without an answer.

namespace latchkey::queue {

/// What follows from the answers of a search: of a sync, and of what was looked at behind it. Both
/// on the re-attached session make it definitive (P7, H02): the create was carried out by then, or
/// never will be.
enum class AfterSearch {
  kWait,         ///< Not enough is known yet.
  kSearchAgain,  ///< The connection was lost in between.
  kKnown,        ///< What there is was shown; nothing, if not even the directory is there.
  kSyncRefused,
  kLookRefused,
};
[[nodiscard]] AfterSearch after_search(const std::optional<Answer>& sync,
                                       const std::optional<Answer>& look);

/// The nodes in a list that carry an attempt's guid and that it does not know yet, and whose they
/// turn out to be.
///
///     traces.collect(children, may_be_ours);
///     for (Traces::Trace& trace : traces.all()) look_at(trace);
///     if (traces.looked(answer) == Traces::Next::kSettle) judge(traces.settle());
///
/// The name alone proves nothing: a node of a session before ours looks the same (H04).
///
/// Thread safety: one thread at a time.
class Traces {
 public:
  enum class Is { kUnknown, kOurs, kForeign, kGone };
  struct Trace {
    Place place;
    Ask ask = 0;  ///< Of a look at it; 0: none is under way.
    Is is = Is::kUnknown;
    std::int64_t czxid = 0;

    [[nodiscard]] bool is_unseen() const { return is == Is::kUnknown && ask == 0; }
  };
  enum class Next {
    kWait,       ///< Not enough is known yet, or it was no answer to us.
    kLookAgain,  ///< At what is_unseen().
    kSettle,
    kUnclear,  ///< Ours or not remains to be seen: neither may be assumed.
  };
  /// What the search has come to.
  struct Found {
    std::vector<Trace> ours;  ///< In the order of their numbers.
    bool foreign = false;
    bool gone = false;  ///< Ours perhaps, deleted by another hand.
  };

  /// Begins anew with what carries our guid, as `may_be_ours` has it, and is no stranger's.
  void collect(std::span<const std::string> children,
               base::FunctionRef<bool(const std::string&)> may_be_ours);
  [[nodiscard]] Next looked(const event::Looked& looked);
  /// All are known: what they are. Strangers are remembered, the rest is forgotten.
  [[nodiscard]] Found settle();
  void clear() {
    if (seen_) seen_->traces.clear();
  }

  [[nodiscard]] bool empty() const { return !seen_ || seen_->traces.empty(); }
  [[nodiscard]] std::span<Trace> all() {
    return seen_ ? std::span(seen_->traces) : std::span<Trace>();
  }
  [[nodiscard]] std::span<const Trace> all() const {
    return seen_ ? std::span(seen_->traces) : std::span<const Trace>();
  }
  /// Those that carry our guid and belong to another session (H04, H08).
  [[nodiscard]] std::span<const std::string> strangers() const {
    return seen_ ? std::span(seen_->strangers) : std::span<const std::string>();
  }

 private:
  struct Seen {
    std::vector<Trace> traces;
    std::vector<std::string> strangers;
  };
  base::Box<Seen> seen_;  ///< Hardly ever anything.
};

}  // namespace latchkey::queue
