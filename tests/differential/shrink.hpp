#pragma once

#include "base/function_ref.hpp"
#include "differential/step.hpp"

namespace latchkey::differential {

/// A shorter script that still differs: steps are left out, in large pieces first, as long as
/// `differs` says yes. It is not asked any more when the scripts it was asked about have had
/// `budget` steps in all.
[[nodiscard]] Script shrink(Script script, base::FunctionRef<bool(const Script&)> differs,
                            std::size_t budget);

}  // namespace latchkey::differential
