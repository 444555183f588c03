#include "queue/estate.hpp"

#include <utility>

#include "base/mutant.hpp"

namespace latchkey::queue {

Inherited inherit(Estate estate, const Place& heir) {
  Inherited inherited{std::move(estate.behind),
                      std::int64_t{heir.number} == std::int64_t{estate.last} + 1};
  if (base::mutated(base::Mutant::kGapIgnored)) inherited.whole = true;
  inherited.children.push_back(heir.name);
  return inherited;
}

}  // namespace latchkey::queue
