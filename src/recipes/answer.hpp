#pragma once

#include "queue/messages.hpp"
#include "session/outcome.hpp"

namespace latchkey::recipes {

/// What an outcome proves.
[[nodiscard]] queue::Answer answer_of(const session::Outcome& outcome);

/// The same for a multi of `parts` parts: kOk if it was carried out, otherwise the code of the part
/// that failed it. `culprit`, if given, is set to that part.
[[nodiscard]] queue::Answer answer_of_multi(const session::Outcome& outcome, std::size_t parts,
                                            std::size_t* culprit = nullptr);

}  // namespace latchkey::recipes
