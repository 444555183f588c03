#pragma once

#include <cstdint>
#include <memory>

#include "differential/endpoint.hpp"

namespace latchkey::differential {

enum class Lie : std::uint8_t {
  kVersion,     ///< A version in the answer to a getData is one too high.
  kZxid,        ///< The zxid of an answer is one too low.
  kNoEvent,     ///< An event is missing.
  kTwice,       ///< An event comes twice.
  kEventAfter,  ///< An event comes after what should have followed it.
  kSilentEnd,   ///< The connection ends in the place of an answer.
};

/// Another server with one fault: it tells each lie once, at the `which`-th occasion. For the test
/// of the test.
[[nodiscard]] std::unique_ptr<Endpoint> lying_endpoint(std::unique_ptr<Endpoint> honest, Lie lie,
                                                       int which);

}  // namespace latchkey::differential
