#include "support/traffic_log.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace latchkey::test_support {

TrafficFilter requests_of(wire::Op op) {
  return [op](const TrafficRecord& record) {
    return record.direction == Direction::kToServer && record.op == op;
  };
}

TrafficFilter replies_to(wire::Op op) {
  return [op](const TrafficRecord& record) {
    return record.direction == Direction::kToClient && record.op == op;
  };
}

void TrafficLog::append(TrafficRecord record) {
  const std::lock_guard lock(mutex_);
  records_.push_back(std::move(record));
  changed_.notify_all();
}

void TrafficLog::add_bytes(Direction direction, std::size_t count) {
  const std::lock_guard lock(mutex_);
  (direction == Direction::kToServer ? bytes_to_server_ : bytes_to_client_) += count;
}

void TrafficLog::note_fired(int fault) {
  const std::lock_guard lock(mutex_);
  ++fired_[fault];
  changed_.notify_all();
}

std::vector<TrafficRecord> TrafficLog::records() const {
  const std::lock_guard lock(mutex_);
  return records_;
}

std::size_t TrafficLog::count(const TrafficFilter& filter) const {
  const std::lock_guard lock(mutex_);
  return count_locked(filter);
}

std::uint64_t TrafficLog::bytes(Direction direction) const {
  const std::lock_guard lock(mutex_);
  return direction == Direction::kToServer ? bytes_to_server_ : bytes_to_client_;
}

int TrafficLog::fired(int fault) const {
  const std::lock_guard lock(mutex_);
  const auto found = fired_.find(fault);
  return found == fired_.end() ? 0 : found->second;
}

bool TrafficLog::wait_for(const TrafficFilter& filter, std::size_t count, Deadline deadline) {
  std::unique_lock lock(mutex_);
  return wait_locked(lock, deadline, [&] { return count_locked(filter) >= count; });
}

bool TrafficLog::wait_until_fired(int fault, int times, Deadline deadline) {
  std::unique_lock lock(mutex_);
  return wait_locked(lock, deadline, [&] { return fired_[fault] >= times; });
}

void TrafficLog::clear() {
  const std::lock_guard lock(mutex_);
  records_.clear();
  bytes_to_server_ = 0;
  bytes_to_client_ = 0;
}

std::size_t TrafficLog::count_locked(const TrafficFilter& filter) const {
  return static_cast<std::size_t>(std::count_if(records_.begin(), records_.end(), filter));
}

template <class Predicate>
bool TrafficLog::wait_locked(std::unique_lock<std::mutex>& lock, Deadline deadline,
                             Predicate predicate) {
  while (!predicate()) {
    if (deadline.has_passed(BootClock::now())) return false;
    // In slices, because the condition variable's clock is not the deadline's.
    changed_.wait_for(lock, std::chrono::milliseconds(50));
  }
  return true;
}

}  // namespace latchkey::test_support
