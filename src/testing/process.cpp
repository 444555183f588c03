#include "testing/process.hpp"

#include <cmath>

#include "testing/timeline.hpp"

namespace latchkey::testing {

namespace {

constexpr std::int64_t kWallStartMs = 1'700'000'000'000;

std::int64_t wall_ms_at(Instant now) {
  const auto since = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch());
  return kWallStartMs + since.count();
}

}  // namespace

Process::Process(Timeline& timeline, std::uint32_t id, std::string name)
    : timeline_(timeline),
      id_(id),
      name_(std::move(name)),
      true_base_(timeline.now()),
      local_base_(timeline.now()) {}

void Process::die() {
  alive_ = false;
  ++life_;
}

Instant Process::now() noexcept {
  if (stopped_) return local_base_;
  const Duration since = timeline_.now() - true_base_;
  if (rate_ == 1.0) return local_base_ + since;
  return local_base_ + Duration(std::llround(static_cast<double>(since.count()) * rate_));
}

std::int64_t Process::wall_ms() noexcept { return wall_ms_at(now()) + wall_ahead_.count(); }

std::uint64_t Process::random() noexcept { return timeline_.random(); }

Instant Process::true_time_of(Instant local) {
  if (local == Instant::max() || stopped_) return Instant::max();
  const Duration ahead = local - now();
  if (ahead <= Duration::zero()) return timeline_.now();
  if (rate_ == 1.0) return timeline_.now() + ahead;
  // One more, so that rounding never makes it early.
  const double span = std::ceil(static_cast<double>(ahead.count()) / rate_);
  return timeline_.now() + Duration(static_cast<std::int64_t>(span) + 1);
}

void Process::rebase() {
  const Instant local = now();
  true_base_ = timeline_.now();
  local_base_ = local;
}

void Process::set_rate(double rate) {
  rebase();
  rate_ = rate;
}

void Process::jump(Duration by) {
  rebase();
  local_base_ += by;
}

void Process::stop_clock() {
  rebase();
  stopped_ = true;
}

void Process::start_clock() {
  rebase();
  stopped_ = false;
}

std::int64_t Timeline::wall_ms() noexcept { return wall_ms_at(now_); }

}  // namespace latchkey::testing
