#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "base/function_ref.hpp"
#include "base/random.hpp"
#include "base/surroundings.hpp"
#include "latchkey/deadline.hpp"
#include "testing/process.hpp"

namespace latchkey::testing {

/// What an event is about, for the trace.
enum class Happens : std::uint8_t { kDelivery, kWake, kCallback, kCommit, kScript, kResume };

/// Simulated time: a queue of events, each of them a task of one process. Events happen in the
/// order of their time; the seed decides between equals. One generator, of the same seed, is what
/// everybody draws from, and everything that happens goes into one hash.
///
///     timeline.in(latency, process, Happens::kDelivery, [this, id] { deliver(id); });
///     while (timeline.step()) {}
///
/// While a process is paused its events wait, and happen in their order when it goes on. What a
/// process that has died had ahead of it does not happen.
///
/// Thread safety: one thread at a time, and one Timeline at a time in a thread.
class Timeline final : public base::Surroundings {
 public:
  using Task = std::function<void()>;

  explicit Timeline(std::uint64_t seed);
  ~Timeline();

  /// True time.
  [[nodiscard]] Instant now() noexcept override { return now_; }
  [[nodiscard]] std::int64_t wall_ms() noexcept override;
  [[nodiscard]] std::uint64_t random() noexcept override { return random_.next(); }

  [[nodiscard]] base::Random& luck() { return random_; }
  [[nodiscard]] Duration draw(Duration least, Duration most);
  /// True in `permille` of 1000 cases.
  [[nodiscard]] bool chance(std::uint32_t permille) {
    return permille != 0 && random_.below(1'000) < permille;
  }

  /// `process` may be null: then the task belongs to nobody and cannot be held up.
  void at(Instant when, Process* process, Happens what, Task task);
  void in(Duration span, Process* process, Happens what, Task task) {
    at(now_ + span, process, what, std::move(task));
  }

  /// Lets the next event happen. False: there is none.
  bool step();
  /// When the next event is due; Instant::max() without one.
  [[nodiscard]] Instant next() const;
  /// Nothing happens before `when` is reached: without events in between time jumps.
  void pass_to(Instant when);
  [[nodiscard]] bool is_in_event() const { return depth_ > 0; }
  /// Runs `task` at once with the clock of `process`.
  void run_as(Process& process, base::FunctionRef<void()> task);

  void pause(Process& process, Duration span);
  /// Ends its pause now.
  void wake(Process& process);

  /// Everything of interest is stirred in; equal runs have equal traces.
  void note(std::uint64_t value) {
    trace_ = (trace_ ^ value) * 0x9E37'79B9'7F4A'7C15U;
    trace_ ^= trace_ >> 29U;
  }
  void note(std::string_view bytes);
  [[nodiscard]] std::uint64_t trace() const { return trace_; }
  [[nodiscard]] std::uint64_t events() const { return events_; }

  /// Called after every event; may be empty.
  std::function<void()> after_event;

  /// Forgets all events, and refuses new ones.
  void close();

 private:
  struct Entry {
    Instant at;
    std::uint64_t tie = 0;
    std::uint32_t index = 0;

    /// For a heap with the earliest on top.
    friend bool operator<(const Entry& a, const Entry& b) {
      return a.at != b.at ? a.at > b.at : a.tie > b.tie;
    }
  };
  struct Event {
    Process* process = nullptr;
    std::uint32_t life = 0;
    Happens what = Happens::kScript;
    Task task;
  };

  void push(Instant when, std::uint64_t tie, Event event);
  void handle(Event event);
  void resume(Process& process);

  base::Random random_;
  Instant now_;
  std::vector<Entry> heap_;
  std::vector<Event> events_waiting_;
  std::vector<std::uint32_t> free_;
  std::map<std::uint32_t, std::vector<Event>> backlog_;  ///< By the id of the paused process.
  std::uint64_t sequence_ = 0;
  std::uint64_t trace_ = 0;
  std::uint64_t events_ = 0;
  int depth_ = 0;
  bool closed_ = false;
  base::SurroundingsScope scope_;
};

}  // namespace latchkey::testing
