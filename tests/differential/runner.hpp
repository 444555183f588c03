#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "differential/endpoint.hpp"
#include "differential/step.hpp"
#include "differential/transcript.hpp"

namespace latchkey::differential {

/// What servers under test must be set up with. No session runs out during a script.
inline constexpr std::chrono::milliseconds kMinTimeout(20'000'000);
inline constexpr std::chrono::milliseconds kMaxTimeout(30'000'000);
inline constexpr std::string_view kSuperCredentials = "super:pw";
inline constexpr std::string_view kSuperDigest = "super:0bX78nEegDzJM3ju0iLBEJdWzjg=";

/// kStepByStep: after every step everybody pings, so that everything it caused has arrived.
/// kPiledUp: writes of all actors follow each other without waiting; a read waits until nothing of
/// others is on the way, so that it sees what it sees step by step.
enum class Pace : std::uint8_t { kStepByStep, kPiledUp };

/// Plays the script against a server and writes down what its actors see. The server may have been
/// used before: its tree is emptied first.
[[nodiscard]] Transcript play(const Script& script, Endpoint& endpoint, Pace pace);

}  // namespace latchkey::differential
