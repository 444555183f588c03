#include "testing/timeline.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.hpp"

namespace latchkey::testing {
namespace {

constexpr std::chrono::seconds kStart(1'000);

}  // namespace

Timeline::Timeline(std::uint64_t seed) : random_(seed), now_(kStart), scope_(this) { note(seed); }

Timeline::~Timeline() { close(); }

void Timeline::close() {
  closed_ = true;
  // What a task owns may end something, which then asks for new events: those are refused.
  while (!events_waiting_.empty() || !backlog_.empty()) {
    heap_.clear();
    free_.clear();
    const auto events = std::exchange(events_waiting_, {});
    const auto backlog = std::exchange(backlog_, {});
  }
}

Duration Timeline::draw(Duration least, Duration most) {
  if (most <= least) return least;
  return least + Duration(random_.below(static_cast<std::uint64_t>((most - least).count()) + 1));
}

void Timeline::at(Instant when, Process* process, Happens what, Task task) {
  if (closed_) return;
  // The seed decides between equal times, and the order of the calls where it says the same.
  const std::uint64_t tie =
      (1ULL << 63U) | ((random_.next() >> 33U) << 32U) | (++sequence_ & 0xFFFF'FFFFU);
  push(std::max(when, now_), tie,
       {process, process == nullptr ? 0 : process->life(), what, std::move(task)});
}

void Timeline::push(Instant when, std::uint64_t tie, Event event) {
  std::uint32_t index = 0;
  if (free_.empty()) {
    index = static_cast<std::uint32_t>(events_waiting_.size());
    events_waiting_.push_back(std::move(event));
  } else {
    index = free_.back();
    free_.pop_back();
    events_waiting_[index] = std::move(event);
  }
  heap_.push_back({when, tie, index});
  std::push_heap(heap_.begin(), heap_.end());
}

Instant Timeline::next() const { return heap_.empty() ? Instant::max() : heap_.front().at; }

void Timeline::pass_to(Instant when) {
  LATCHKEY_ASSERT(when <= next());
  now_ = std::max(now_, when);
}

bool Timeline::step() {
  if (heap_.empty()) return false;
  std::pop_heap(heap_.begin(), heap_.end());
  const Entry entry = heap_.back();
  heap_.pop_back();
  now_ = entry.at;
  Event event = std::move(events_waiting_[entry.index]);
  events_waiting_[entry.index] = {};
  free_.push_back(entry.index);
  handle(std::move(event));
  return true;
}

void Timeline::handle(Event event) {
  Process* process = event.process;
  if (process != nullptr) {
    if (!process->is_alive() || event.life != process->life()) return;
    if (process->paused_until > now_) {
      backlog_[process->id()].push_back(std::move(event));
      return;
    }
  }
  ++events_;
  note(static_cast<std::uint64_t>(now_.time_since_epoch().count()) ^
       (static_cast<std::uint64_t>(event.what) << 56U) ^
       (process == nullptr ? 0 : std::uint64_t{process->id()} << 40U));
  {
    base::Surroundings* seen = this;
    if (process != nullptr) seen = process;
    const base::SurroundingsScope scope(seen);
    ++depth_;
    event.task();
    event.task = nullptr;  // What it owned may end here, as a part of the process.
    --depth_;
  }
  if (after_event) after_event();
}

void Timeline::run_as(Process& process, base::FunctionRef<void()> task) {
  const base::SurroundingsScope scope(&process);
  task();
}

void Timeline::pause(Process& process, Duration span) {
  process.paused_until = std::max(process.paused_until, now_ + span);
  at(process.paused_until, nullptr, Happens::kResume, [this, &process] { resume(process); });
}

void Timeline::wake(Process& process) {
  process.paused_until = now_;
  resume(process);
}

void Timeline::resume(Process& process) {
  if (process.paused_until > now_) return;
  const auto waiting = backlog_.find(process.id());
  if (waiting == backlog_.end()) return;
  std::vector<Event> events = std::move(waiting->second);
  backlog_.erase(waiting);
  // In their order, and before anything else that is due now.
  for (Event& event : events) push(now_, ++sequence_, std::move(event));
}

void Timeline::note(std::string_view bytes) {
  note(bytes.size());
  while (bytes.size() >= sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof word);
    note(word);
    bytes.remove_prefix(sizeof word);
  }
  for (const char c : bytes) note(static_cast<unsigned char>(c));
}

}  // namespace latchkey::testing
