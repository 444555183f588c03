#pragma once

#include <cstdint>
#include <optional>
#include <string>
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

/// Reads a worker's line into its story. What it was: "queued", "holding", "released", or nothing.
[[nodiscard]] std::optional<std::string> read_line(const std::string& line, WorkerStory& story);

}  // namespace latchkey::app
