#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "queue/messages.hpp"
#include "session/outcome.hpp"

namespace latchkey::recipes {

/// What an outcome proves.
[[nodiscard]] queue::Answer answer_of(const session::Outcome& outcome);

/// The same for a multi of `parts` parts: kOk if it was carried out, otherwise the code of the part
/// that failed it. `culprit`, if given, is set to that part.
[[nodiscard]] queue::Answer answer_of_multi(const session::Outcome& outcome, std::size_t parts,
                                            std::size_t* culprit = nullptr);

/// The names of the nodes that a multi of creates has made, if it was carried out.
[[nodiscard]] std::vector<std::string> names_made(const session::Outcome& outcome);

/// Why the lock at `path` was not had: `why` is a human sentence, or nothing besides the code. One
/// who waited for others hears that; a deadline without a reason is a service without an answer.
[[nodiscard]] Error lock_error(const std::string& path, Code code, const std::string& why);

/// The name of a node, out of its path.
[[nodiscard]] std::string_view last_part(std::string_view path);

}  // namespace latchkey::recipes
