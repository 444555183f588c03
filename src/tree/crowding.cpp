#include "tree/crowding.hpp"

#include <algorithm>

namespace latchkey::tree {
namespace {

constexpr std::chrono::seconds kWindow(1);
constexpr std::size_t kLeast = 16'384;

}  // namespace

void Pace::start(Instant now) {
  *this = {};
  since_ = now;
}

void Pace::move(std::size_t bytes, Instant now) {
  if (now - since_ >= kWindow) {
    was_slow_ = moved_ < kLeast;
    since_ = now;
    moved_ = 0;
  }
  moved_ += bytes;
}

bool Pace::is_slow(Instant now) const {
  // Whatever moves after the end of a window begins the next one.
  if (now - since_ >= 2 * kWindow) return true;
  return moved_ < kLeast && (was_slow_ || now - since_ >= kWindow);
}

std::vector<PeerId> whom_to_close(std::vector<Holding> holdings, std::size_t bytes) {
  std::ranges::sort(holdings, [](const Holding& a, const Holding& b) {
    if (a.stalled != b.stalled) return a.stalled;
    if (a.overdue != b.overdue) return a.overdue > b.overdue;
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.peer < b.peer;
  });
  std::vector<PeerId> closed;
  std::size_t freed = 0;
  for (const Holding& holding : holdings) {
    if (freed >= bytes) break;
    freed += holding.bytes;
    closed.push_back(holding.peer);
  }
  return closed;
}

}  // namespace latchkey::tree
