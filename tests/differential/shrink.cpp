#include "differential/shrink.hpp"

#include <algorithm>
#include <utility>

namespace latchkey::differential {

Script shrink(Script script, base::FunctionRef<bool(const Script&)> differs, std::size_t budget) {
  std::size_t piece = script.size() / 2;
  while (piece > 0 && budget > 0) {
    bool shorter = false;
    // From the back: what comes last is what differs, and what it needs is often close before it.
    for (std::size_t end = script.size(); end > 0 && budget > 0;) {
      const std::size_t begin = end > piece ? end - piece : 0;
      Script rest = script;
      rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(begin),
                 rest.begin() + static_cast<std::ptrdiff_t>(end));
      budget -= std::min(budget, rest.size() + 1);
      if (differs(rest)) {
        script = std::move(rest);
        shorter = true;
      }
      end = begin;
    }
    if (!shorter) piece /= 2;
    piece = std::min(piece, script.size());
  }
  return script;
}

}  // namespace latchkey::differential
