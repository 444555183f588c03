#pragma once

#include <atomic>
#include <cstdint>

#include "latchkey/deadline.hpp"
#include "latchkey/session.hpp"

namespace latchkey::session {

/// What any thread may know of a session without asking its machine. Written by the machine alone.
/// Thread safety: any thread.
struct View {
  std::atomic<SessionState> state{SessionState::kConnecting};
  std::atomic<std::int64_t> id{0};
  std::atomic<std::int32_t> timeout_ms{0};
  std::atomic<Instant::rep> lease_deadline{Instant::min().time_since_epoch().count()};
  std::atomic<Instant::rep> suspect_at{Instant::min().time_since_epoch().count()};
};

}  // namespace latchkey::session
