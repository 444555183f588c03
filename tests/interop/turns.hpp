#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "latchkey/session.hpp"

namespace latchkey::test_support {

/// What a peer's "load" does, with our own locks and until it is told to stop: takes the lock,
/// makes its mark in the section's folder while it holds, and lets go. `wish` is "KIND PATH
/// [NUMBER]..." as in peer.hpp, in words. Says how often it held. Throws std::runtime_error if the
/// lock cannot be had. Blocks the calling thread.
int take_turns(const Session& session, const std::string& folder, const std::string& who,
               const std::vector<std::string>& wish, const std::stop_token& stop);

}  // namespace latchkey::test_support
