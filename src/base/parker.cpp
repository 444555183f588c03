#include "base/parker.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <new>
#include <vector>

#include "base/time_left.hpp"

namespace latchkey::base {
namespace {

/// Of one thread. Without destructors of its own, because other thread-local objects may block
/// while they are destroyed.
thread_local int late = 0;
thread_local bool ended = false;

struct OfThread {
  ~OfThread() { ended = true; }

  std::shared_ptr<Parker> parker = std::make_shared<Parker>();
  std::vector<std::shared_ptr<Parker>> to_wake;
};

OfThread& of_thread() {
  thread_local OfThread mine;
  return mine;
}

}  // namespace

std::shared_ptr<Parker> Parker::of_this_thread() {
  return ended ? std::make_shared<Parker>() : of_thread().parker;
}

void Parker::park_until(Deadline deadline) noexcept {
  std::uint32_t awake = kAwake;
  if (state_.compare_exchange_strong(awake, kAsleep, std::memory_order_acquire)) {
    const timespec left = deadline.is_never() ? timespec{} : time_left(deadline);
    ::syscall(SYS_futex, &state_, FUTEX_WAIT_PRIVATE, kAsleep,
              deadline.is_never() ? nullptr : &left, nullptr, 0);
  }
  state_.exchange(kAwake, std::memory_order_acquire);
}

void Parker::wake() noexcept {
  if (state_.exchange(kWoken, std::memory_order_release) != kAsleep) return;
  ::syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

LateWakes::LateWakes() noexcept { ++late; }

LateWakes::~LateWakes() {
  if (--late > 0 || ended) return;
  auto& to_wake = of_thread().to_wake;
  for (const std::shared_ptr<Parker>& parker : to_wake) parker->wake();
  to_wake.clear();
}

std::size_t LateWakes::count() const noexcept { return ended ? 0 : of_thread().to_wake.size(); }

void LateWakes::wake(std::shared_ptr<Parker> parker) {
  if (late == 0 || ended) return parker->wake();
  OfThread& mine = of_thread();
  // Who is awake looks before it sleeps.
  if (parker == mine.parker) return;
  try {
    mine.to_wake.push_back(parker);
  } catch (const std::bad_alloc&) {
    parker->wake();
  }
}

}  // namespace latchkey::base
