#pragma once

#include "queue/messages.hpp"

namespace latchkey::queue {

/// The server's answers, for unit tests.
inline constexpr Answer kOk{};
inline constexpr Answer kMaybe{Answer::Kind::kAmbiguous, Code::kConnectionLoss};
constexpr Answer no(Code code) { return {Answer::Kind::kNo, code}; }

}  // namespace latchkey::queue
