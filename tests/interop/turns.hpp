#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "latchkey/lock.hpp"
#include "latchkey/session.hpp"

namespace latchkey::test_support {

/// The lock of a wish, "KIND PATH [NUMBER]..." in words as in peer.hpp; the lead is none. Throws
/// std::runtime_error if there is no such kind.
[[nodiscard]] Lock lock_of(const Session& session, const std::vector<std::string>& wish);

/// What a peer's "load" does, with our own locks and until it is told to stop: takes the lock,
/// makes its mark in the section's folder while it holds, and lets go. `wish` as for lock_of(), or
/// the lead. Says how often it held. Throws std::runtime_error if the lock cannot be had. Blocks
/// the calling thread.
int take_turns(const Session& session, const std::string& folder, const std::string& who,
               const std::vector<std::string>& wish, const std::stop_token& stop);

}  // namespace latchkey::test_support
