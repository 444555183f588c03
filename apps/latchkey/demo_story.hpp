#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace latchkey::app {

/// What happened to one worker, in nanoseconds of the boot clock; 0 for what did not happen.
struct WorkerStory {
  std::string name;
  std::int64_t queued = 0;
  std::int64_t held = 0;
  std::int64_t ended = 0;  ///< Released, or killed.
  bool killed = false;
  std::int64_t token = 0;
  int woken = 0;     ///< How often it looked again while it waited.
  std::string node;  ///< Its last ten digits are the place the server gave it.
};

/// What the demonstration has to show, as a pure function of what happened.
struct Verdict {
  std::vector<std::string> arrival;  ///< Names by the server's number.
  std::vector<std::string> holding;  ///< Names by the moment they held.
  std::vector<std::int64_t> tokens;  ///< In the order of holding.
  bool everyone_held = false;
  bool in_order = false;
  bool exclusive = false;
  bool tokens_grow = false;

  [[nodiscard]] bool good() const { return everyone_held && in_order && exclusive && tokens_grow; }
};

[[nodiscard]] Verdict judge(std::vector<WorkerStory> stories);

/// Reads a worker's line into its story. What it was: "queued", "holding",
/// "released", "lost", "woken", or nothing.
[[nodiscard]] std::optional<std::string> read_line(const std::string& line, WorkerStory& story);

/// Lines in the order of what they tell, although several processes tell it: a line is given out
/// once nothing from before it can be on its way any more. Times are those of WorkerStory.
///
///     chronicle.add(story.held, "worker 1 holds");
///     for (const std::string& line : chronicle.take(now)) print(line);
///
/// Thread safety: one thread at a time.
class Chronicle {
 public:
  /// How late a line may be.
  static constexpr std::int64_t kPatience = 100'000'000;

  void add(std::int64_t when, std::string line) { lines_.emplace(when, std::move(line)); }
  /// What is older than the patience, in order.
  [[nodiscard]] std::vector<std::string> take(std::int64_t now);
  /// Everything that is left, in order.
  [[nodiscard]] std::vector<std::string> take_all();

 private:
  std::multimap<std::int64_t, std::string> lines_;
};

}  // namespace latchkey::app
