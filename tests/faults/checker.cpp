#include "checker.hpp"

#include <algorithm>
#include <ostream>
#include <set>
#include <tuple>
#include <utility>

namespace latchkey::faults {

namespace {

using OperationId = std::tuple<std::string, std::string, std::uint64_t>;  // Who, lock, number.

/// One want and what came of it.
struct Operation {
  std::vector<Event> events;
  std::int64_t weight = 0;
  int wants = 0;
  int outcomes = 0;
  std::optional<std::int64_t> token;
  std::optional<std::int64_t> first_proof;
  std::int64_t last_proof = 0;
  bool lost = false;
  bool held_after_loss = false;
  std::vector<std::int64_t> refused;  ///< When.
  bool settles = false;
  bool downgrades = false;

  [[nodiscard]] const Event& first() const { return events.front(); }
  [[nodiscard]] std::string name() const {
    return first().who + " " + std::to_string(first().operation);
  }
};

void take(Operation& operation, const Event& event) {
  operation.events.push_back(event);
  switch (event.what) {
    case What::kWant:
      ++operation.wants;
      operation.weight = event.number;
      operation.settles = event.text == kSettle;
      operation.downgrades = event.text == kDowngrade;
      break;
    case What::kGranted:
      ++operation.outcomes;
      operation.token = event.number;
      break;
    case What::kFailed: ++operation.outcomes; break;
    case What::kHolds:
      if (!operation.first_proof) operation.first_proof = event.at_ns;
      operation.last_proof = event.at_ns;
      operation.held_after_loss = operation.held_after_loss || operation.lost;
      break;
    case What::kLost: operation.lost = true; break;
    case What::kRefused: operation.refused.push_back(event.at_ns); break;
    default: break;
  }
}

class Checker {
 public:
  Checker(std::span<const Event> events, const Rules& rules) : rules_(rules) {
    for (const Event& event : events) {
      if (event.what == What::kEnded) ended_.insert(event.who);
      if (event.what == What::kAccepted) accepted_.push_back(event);
      if (event.what == What::kCounted) counted_.push_back(event);
      if (event.what == What::kEnded || event.what == What::kAccepted) continue;
      take(operations_[{event.who, event.lock, event.operation}], event);
    }
  }

  std::vector<Violation> run() {
    for (const auto& [id, operation] : operations_) check_operation(operation);
    for (const auto& [lock, rule] : rules_.locks) {
      const std::vector<const Operation*> holds = holds_of(lock);
      check_exclusion(lock, rule, holds);
      if (rule.order == Order::kByToken) check_order(lock, rule, holds);
      check_unique_tokens(lock);
      check_fence(lock);
    }
    check_ledger();
    check_liveness();
    return std::move(found_);
  }

 private:
  void report(std::string rule, std::string what, std::vector<const Operation*> operations) {
    Violation violation{std::move(rule), std::move(what), {}};
    for (const Operation* operation : operations) {
      violation.evidence.insert(violation.evidence.end(), operation->events.begin(),
                                operation->events.end());
    }
    std::stable_sort(violation.evidence.begin(), violation.evidence.end(),
                     [](const Event& a, const Event& b) { return a.at_ns < b.at_ns; });
    found_.push_back(std::move(violation));
  }

  void check_operation(const Operation& operation) {
    const std::string about = operation.name() + " on " + operation.first().lock;
    const auto has = [&](What what) {
      return std::any_of(operation.events.begin(), operation.events.end(),
                         [&](const Event& event) { return event.what == what; });
    };
    if (operation.wants != 1 || operation.first().what != What::kWant) {
      report("outcome", about + " was not asked for exactly once, to begin with", {&operation});
    }
    if (operation.outcomes > 1) report("outcome", about + " has several outcomes", {&operation});
    if (has(What::kSilent) || (operation.outcomes == 0 && ended_.contains(operation.first().who))) {
      report("outcome", about + " has none", {&operation});
    }
    if (operation.first_proof && !operation.token) {
      report("outcome", about + " is held without a grant", {&operation});
    }
    if (operation.held_after_loss) {
      report("loss", about + " is held again after it was lost", {&operation});
    }
    const bool refused_inside =
        operation.first_proof &&
        std::any_of(operation.refused.begin(), operation.refused.end(), [&](std::int64_t at) {
          return *operation.first_proof <= at && at <= operation.last_proof;
        });
    if (refused_inside) report("fence", about + " was refused while it held", {&operation});
  }

  /// In the order of their first proofs.
  [[nodiscard]] std::vector<const Operation*> holds_of(const std::string& lock) const {
    std::vector<const Operation*> holds;
    for (const auto& [id, operation] : operations_) {
      if (std::get<1>(id) == lock && operation.first_proof) holds.push_back(&operation);
    }
    std::sort(holds.begin(), holds.end(), [](const Operation* a, const Operation* b) {
      return *a->first_proof < *b->first_proof;
    });
    return holds;
  }

  void check_exclusion(const std::string& lock, const LockRule& rule,
                       const std::vector<const Operation*>& holds) {
    std::vector<const Operation*> inside;
    for (const Operation* hold : holds) {
      std::erase_if(inside,
                    [&](const Operation* other) { return other->last_proof < *hold->first_proof; });
      inside.push_back(hold);
      std::int64_t weight = 0;
      for (const Operation* other : inside) weight += other->weight;
      if (weight <= rule.capacity) continue;
      report("exclusion",
             lock + " is held by " + std::to_string(inside.size()) + " at once, together " +
                 std::to_string(weight) + " of " + std::to_string(rule.capacity),
             inside);
    }
  }

  void check_order(const std::string& lock, const LockRule& rule,
                   const std::vector<const Operation*>& holds) {
    const Operation* newest = nullptr;            // Of all so far.
    const Operation* newest_exclusive = nullptr;  // Of those who exclude everybody.
    for (const Operation* hold : holds) {
      if (!hold->token) continue;
      const bool exclusive = hold->weight == rule.capacity;
      const Operation* before = exclusive ? newest : newest_exclusive;
      // A downgraded writer reads on under its own token.
      const std::int64_t least =
          before == nullptr ? 0 : *before->token + (hold->downgrades ? 0 : 1);
      if (*hold->token < least) {
        report("order", lock + ": a later hold has a token that is not larger", {before, hold});
      }
      if (newest == nullptr || *hold->token > *newest->token) newest = hold;
      if (!exclusive) continue;
      if (newest_exclusive == nullptr || *hold->token > *newest_exclusive->token) {
        newest_exclusive = hold;
      }
    }
  }

  void check_unique_tokens(const std::string& lock) {
    std::map<std::int64_t, const Operation*> granted;
    for (const auto& [id, operation] : operations_) {
      if (std::get<1>(id) != lock || !operation.token || operation.downgrades) continue;
      const auto [other, is_new] = granted.emplace(*operation.token, &operation);
      if (!is_new) report("token", lock + ": one token, two grants", {other->second, &operation});
    }
  }

  void check_fence(const std::string& lock) {
    const Event* newest = nullptr;
    for (const Event& event : accepted_) {
      if (event.lock != lock) continue;
      if (newest != nullptr && event.number < newest->number) {
        found_.push_back(
            {"fence", lock + ": an older token was accepted after a newer one", {*newest, event}});
      }
      if (newest == nullptr || event.number > newest->number) newest = &event;
    }
  }

  void check_ledger() {
    std::stable_sort(counted_.begin(), counted_.end(),
                     [](const Event& a, const Event& b) { return a.number < b.number; });
    for (std::size_t i = 1; i < counted_.size(); ++i) {
      const Event& before = counted_[i - 1];
      const Event& after = counted_[i];
      if (before.number == after.number) {
        found_.push_back({"ledger", "a number was acknowledged twice", {before, after}});
      } else if (token_of(after) < token_of(before)) {
        found_.push_back({"ledger", "an older token counted after a newer one", {before, after}});
      }
    }
    if (rules_.ledger && !counted_.empty() && counted_.back().number > *rules_.ledger) {
      found_.push_back(
          {"ledger",
           "acknowledged, and gone: the ledger ends with " + std::to_string(*rules_.ledger),
           {counted_.back()}});
    }
  }

  [[nodiscard]] std::int64_t token_of(const Event& event) const {
    const auto operation = operations_.find({event.who, event.lock, event.operation});
    return operation->second.token.value_or(0);
  }

  void check_liveness() {
    for (const std::string& worker : rules_.workers) {
      for (const auto& [lock, rule] : rules_.locks) {
        std::vector<const Operation*> tries;
        for (const auto& [id, operation] : operations_) {
          const bool ours = std::get<0>(id).starts_with(worker + '.') && std::get<1>(id) == lock;
          if (ours && operation.settles) tries.push_back(&operation);
        }
        const bool granted = std::any_of(tries.begin(), tries.end(),
                                         [](const auto* one) { return one->token.has_value(); });
        if (granted) continue;
        report("liveness", worker + " did not get " + lock + " after the last fault", tries);
      }
    }
  }

  const Rules& rules_;
  std::map<OperationId, Operation> operations_;
  std::set<std::string> ended_;
  std::vector<Event> accepted_;
  std::vector<Event> counted_;
  std::vector<Violation> found_;
};

}  // namespace

std::vector<Violation> check(std::span<const Event> events, const Rules& rules) {
  return Checker(events, rules).run();
}

std::ostream& operator<<(std::ostream& out, const Violation& violation) {
  out << violation.rule << ": " << violation.what << '\n';
  for (const Event& event : violation.evidence) out << "    " << to_line(event);
  return out;
}

}  // namespace latchkey::faults
