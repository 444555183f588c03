#pragma once

#include <string>
#include <string_view>

#include "latchkey/deadline.hpp"
#include "session/connect_string.hpp"

namespace latchkey::app {

/// A server's answer to one of its four-letter words; empty if it does not answer in time.
[[nodiscard]] std::string ask_word(const session::Endpoint& server, std::string_view word,
                                   Deadline deadline);

}  // namespace latchkey::app
