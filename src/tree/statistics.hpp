#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>

#include "latchkey/deadline.hpp"
#include "wire/messages.hpp"

namespace latchkey::tree {

/// How long answers took, in microseconds: the smallest, the largest, and how many took how long.
struct Latency {
  /// Upper bounds of the classes; the last class has none.
  static constexpr std::array<std::int64_t, 12> kBoundsUs = {
      50, 100, 250, 500, 1'000, 2'500, 5'000, 10'000, 50'000, 100'000, 500'000, 1'000'000};

  std::int64_t min_us = std::numeric_limits<std::int64_t>::max();
  std::int64_t max_us = 0;
  std::int64_t total_us = 0;
  std::uint64_t count = 0;
  std::array<std::uint64_t, kBoundsUs.size() + 1> classes{};

  void add(Duration span) {
    const auto us = std::chrono::duration_cast<std::chrono::microseconds>(span).count();
    min_us = std::min<std::int64_t>(min_us, us);
    max_us = std::max<std::int64_t>(max_us, us);
    total_us += us;
    ++count;
    const auto bound = std::lower_bound(kBoundsUs.begin(), kBoundsUs.end(), us);
    ++classes[static_cast<std::size_t>(bound - kBoundsUs.begin())];
  }
};

/// Of one connection, for `cons`.
struct PeerStatistics {
  std::uint64_t received = 0;
  std::uint64_t sent = 0;
  Latency latency;
  wire::Op last_op = wire::Op::kNotification;
  std::int32_t last_xid = 0;
  std::int64_t last_zxid = 0;
  Instant last_response;
  std::int64_t last_latency_ms = 0;
};

/// Of the whole server, since it started or since they were reset.
struct Statistics {
  std::uint64_t received = 0;  ///< Frames, handshakes and words included.
  std::uint64_t sent = 0;
  std::map<wire::Op, std::uint64_t> requests;
  std::uint64_t refused = 0;  ///< Answered with an error.
  Latency reads;
  Latency writes;
  std::uint64_t notices = 0;
  std::uint64_t sessions_opened = 0;
  std::uint64_t sessions_closed = 0;
  std::uint64_t sessions_expired = 0;
  std::uint64_t reattached = 0;
  std::uint64_t attach_refused = 0;
  std::uint64_t slow_readers_closed = 0;
  std::uint64_t crowded_out = 0;       ///< Connections closed because all together held too much.
  std::uint64_t sessions_refused = 0;  ///< Not opened for their number.
  std::uint64_t reaped = 0;
};

}  // namespace latchkey::tree
