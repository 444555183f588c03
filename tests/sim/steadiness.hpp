#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>

#include "testing/world_options.hpp"

namespace latchkey::sim {

/// Sees from the wire alone which connections are well: greeted three quarters of a time-out ago or
/// longer, everything answered within a tenth of it since, and never a silence of the client of
/// more than a fifth, which is a heartbeat and a bit. Whoever waits for a lock on such a connection
/// has a lease to hold it with, however the client reckons.
///
///     steadiness.sent(message, world.now());
///     if (steadiness.is_well(host.link(), world.now())) ...   // no proof is missing
///
/// Not looked at: clocks. Thread safety: one thread at a time.
class Steadiness {
 public:
  /// As it was put on the wire, or as its client believes that it was.
  void sent(const testing::Message& message, Instant now);
  void arrived(std::uint64_t link, testing::Way way, std::size_t messages, Instant now);
  void over(std::uint64_t link) { lines_.erase(link); }

  [[nodiscard]] bool is_well(std::uint64_t link, Instant now) const;

 private:
  struct Line {
    Duration timeout{};  ///< As granted; none before the greeting.
    Instant since;       ///< Nothing was amiss.
    Instant last_sent;
    std::deque<Instant> unanswered;  ///< When each was sent.
    std::deque<bool> to_client;      ///< On their way: is it an answer?
  };

  std::unordered_map<std::uint64_t, Line> lines_;
};

}  // namespace latchkey::sim
