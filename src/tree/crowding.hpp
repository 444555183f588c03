#pragma once

#include <cstddef>
#include <vector>

#include "latchkey/deadline.hpp"
#include "tree/watches.hpp"

namespace latchkey::tree {

/// Whether what has to move does: at least 16 KiB in a second, so that a byte now and then does not
/// pass for progress.
///
///     pace.start(now);        // There is something to be moved from now on.
///     pace.move(bytes, now);
///     if (pace.is_slow(now)) close();
///
/// Nobody is slow in the first second. Thread safety: one thread at a time.
class Pace {
 public:
  void start(Instant now);
  void move(std::size_t bytes, Instant now);
  [[nodiscard]] bool is_slow(Instant now) const;

 private:
  Instant since_;
  std::size_t moved_ = 0;  ///< Since then.
  bool was_slow_ = false;  ///< In the second before.
};

/// What is in memory on behalf of one connection.
struct Holding {
  PeerId peer = 0;
  std::size_t bytes = 0;
  std::size_t overdue = 0;  ///< Of those, what its client could have taken or is yet to complete.
  bool stalled = false;     ///< That becomes less, or more complete, too slowly or not at all.
};

/// All connections together hold too much: whom to close so that `bytes` become free, or all if
/// that is not enough. First those that are stalled; then those with the most overdue, so that few
/// pay, and of them those who do not take what they ask for.
///
///     for (PeerId peer : whom_to_close(holdings, excess)) close(peer);
[[nodiscard]] std::vector<PeerId> whom_to_close(std::vector<Holding> holdings, std::size_t bytes);

}  // namespace latchkey::tree
