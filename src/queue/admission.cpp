#include "queue/admission.hpp"

#include <algorithm>
#include <tuple>

#include "base/mutant.hpp"

namespace latchkey::queue {
namespace {

/// A Curator writer that has turned into a reader keeps its number, so this pair may share one.
bool is_downgrade(const Place& a, const Place& b) {
  return a.read_write && b.read_write && a.share != b.share;
}

bool stands_in_the_way(const Place& other, const Place& self) {
  if (self.share == Share::kShared && other.share == Share::kShared) return false;
  if (self.share == Share::kShared && base::mutated(base::Mutant::kReaderOvertakes)) return false;
  if (base::mutated(base::Mutant::kWholeName)) return other.name < self.name;
  if (other.number != self.number) return other.number < self.number;
  // With one number the reader entered beside its own writer; the writer has to wait for it.
  return is_downgrade(other, self) && other.share == Share::kShared;
}

}  // namespace

Admission admit(std::span<const Place> queue, const Place& self) {
  Admission admission;
  std::vector<const Place*> ahead;
  for (const Place& other : queue) {
    if (other.name == self.name || other.lock_name != self.lock_name) continue;
    if (other.number == self.number && !is_downgrade(other, self)) admission.broken = true;
    if (stands_in_the_way(other, self)) ahead.push_back(&other);
  }
  std::sort(ahead.begin(), ahead.end(), [](const Place* a, const Place* b) {
    return std::tie(a->number, a->name) < std::tie(b->number, b->name);
  });

  admission.ahead.reserve(ahead.size());
  for (const Place* place : ahead) {
    admission.ahead.push_back(place->name);
    // A reader does not mind a writer that turns into one.
    if (place->read_write && place->share == Share::kExclusive && self.share == Share::kExclusive) {
      admission.may_downgrade = true;
    }
  }
  return admission;
}

}  // namespace latchkey::queue
