#include "queue/traces.hpp"

#include <algorithm>
#include <utility>

#include "base/mutant.hpp"

namespace latchkey::queue {

AfterSearch after_search(const std::optional<Answer>& sync, const std::optional<Answer>& look) {
  for (const auto* answer : {&sync, &look}) {
    if (*answer && (*answer)->kind == Answer::Kind::kAmbiguous) return AfterSearch::kSearchAgain;
  }
  if (!sync || !look) return AfterSearch::kWait;
  if (sync->kind != Answer::Kind::kOk) return AfterSearch::kSyncRefused;
  const bool known = look->kind == Answer::Kind::kOk || look->code == Code::kNoNode;
  return known ? AfterSearch::kKnown : AfterSearch::kLookRefused;
}

void Traces::collect(std::span<const std::string> children,
                     base::FunctionRef<bool(const std::string&)> may_be_ours) {
  clear();
  for (const std::string& child : children) {
    if (!may_be_ours(child)) continue;
    if (std::ranges::find(strangers(), child) != strangers().end()) continue;
    auto place = parse_place(child);
    if (!place) continue;
    if (!seen_) seen_.emplace();
    seen_->traces.push_back({.place = std::move(*place)});
  }
}

Traces::Next Traces::looked(const event::Looked& looked) {
  const std::span<Trace> traces = all();
  const auto trace = std::ranges::find_if(
      traces, [&](const Trace& one) { return one.ask != 0 && one.ask == looked.ask; });
  if (trace == traces.end()) return Next::kWait;
  trace->ask = 0;

  if (looked.answer.kind == Answer::Kind::kAmbiguous) return Next::kLookAgain;
  if (looked.answer.kind == Answer::Kind::kOk) {
    const bool ours = looked.owned || base::mutated(base::Mutant::kNoOwnerCheck);
    trace->is = ours ? Is::kOurs : Is::kForeign;
    trace->czxid = looked.czxid;
  } else if (looked.answer.code == Code::kNoNode) {
    trace->is = Is::kGone;
  } else {
    return Next::kUnclear;
  }
  const bool all_known =
      std::ranges::all_of(traces, [](const Trace& one) { return one.is != Is::kUnknown; });
  return all_known ? Next::kSettle : Next::kWait;
}

Traces::Found Traces::settle() {
  Found found;
  if (!seen_) return found;
  for (Trace& one : std::exchange(seen_->traces, {})) {
    switch (one.is) {
      case Is::kOurs: found.ours.push_back(std::move(one)); break;
      case Is::kForeign:
        found.foreign = true;
        seen_->strangers.push_back(one.place.name);
        break;
      case Is::kGone: found.gone = true; break;
      case Is::kUnknown: break;
    }
  }
  std::sort(found.ours.begin(), found.ours.end(),
            [](const Trace& a, const Trace& b) { return a.place.number < b.place.number; });
  return found;
}

}  // namespace latchkey::queue
