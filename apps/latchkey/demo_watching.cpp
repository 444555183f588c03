#include "demo_watching.hpp"

#include <poll.h>

#include <array>
#include <cstdio>
#include <vector>

#include <fmt/core.h>

#include "demo_story.hpp"
#include "latchkey/deadline.hpp"
#include "process.hpp"
#include "terminal.hpp"

namespace latchkey::app {
namespace {

constexpr std::chrono::seconds kRoundPatience(60);

/// Who queues, in this order; the first holds until the others have come.
constexpr std::array kCast = {"writer 1", "reader 1", "reader 2", "reader 3",
                              "writer 2", "reader 4", "reader 5", "writer 3"};

/// One of the two ways.
struct Side {
  const char* policy;
  const char* title;
  std::vector<Process> processes = {};
  std::vector<WorkerStory> stories = {};

  /// The next one, when the one before it has its place in the queue.
  void start_next(const std::string& connect) {
    if (stories.size() == kCast.size() || (!stories.empty() && stories.back().queued == 0)) return;
    const bool first = stories.empty();
    const char* const name = kCast[stories.size()];
    stories.push_back({.name = name});
    processes.emplace_back(
        std::vector<std::string>{own_path(), "demo-worker", "--connect", connect, "--directory",
                                 fmt::format("/locks/demo-{}", policy), "--name", name, "--mode",
                                 stories.back().name.starts_with("writer") ? "write" : "read",
                                 "--watch", policy, "--hold", "300ms", "--until-queued",
                                 first ? std::to_string(kCast.size()) : "0"},
        Process::Output::kPipe);
  }

  [[nodiscard]] bool has_ended() const {
    for (const Process& process : processes) {
      if (process.output() >= 0) return false;
    }
    return true;
  }

  [[nodiscard]] int woken() const {
    int sum = 0;
    for (const WorkerStory& story : stories) sum += story.woken;
    return sum;
  }

  [[nodiscard]] int held() const {
    int count = 0;
    for (const WorkerStory& story : stories) count += story.held != 0 && story.ended != 0 ? 1 : 0;
    return count;
  }
};

constexpr int kColumn = 36;

void hear(Side& side, bool left, Chronicle& chronicle) {
  for (std::size_t i = 0; i < side.processes.size(); ++i) {
    std::vector<std::string> lines;
    side.processes[i].read_lines(lines);
    for (const std::string& line : lines) {
      const auto what = read_line(line, side.stories[i]);
      if (what != "holding") continue;
      const std::string text = side.stories[i].name + " holds";
      chronicle.add(side.stories[i].held,
                    left ? "  " + text : fmt::format("  {:<{}}{}", "", kColumn, text));
    }
  }
}

void wait_for_news(const std::array<Side, 2>& sides) {
  std::vector<pollfd> ends;
  for (const Side& side : sides) {
    for (const Process& process : side.processes) {
      if (process.output() >= 0) ends.push_back({process.output(), POLLIN, 0});
    }
  }
  ::poll(ends.data(), ends.size(), 100);
}

}  // namespace

WakeUps show_watching(const std::string& connect) {
  std::array<Side, 2> sides = {Side{"targeted", "watching who is in the way"},
                               Side{"directory", "watching the whole directory"}};
  fmt::print(
      "\nReaders and writers: {} processes on a read-write lock, and the same again beside them.\n"
      "Readers hold it together, a writer alone, all in the order of their arrival.\n\n"
      "  {:<{}}{}\n",
      kCast.size(), sides[0].title, kColumn, sides[1].title);
  std::fflush(stdout);
  const Deadline deadline = deadline_in(kRoundPatience);
  Chronicle chronicle;
  for (Side& side : sides) side.start_next(connect);
  while (!(sides[0].has_ended() && sides[1].has_ended()) &&
         !deadline.has_passed(BootClock::now())) {
    wait_for_news(sides);
    hear(sides[0], true, chronicle);
    hear(sides[1], false, chronicle);
    for (Side& side : sides) side.start_next(connect);
    print_lines(chronicle.take(BootClock::now().time_since_epoch().count()));
  }
  print_lines(chronicle.take_all());
  fmt::print("\n  {:<{}}{} wake-ups\n", fmt::format("{} wake-ups", sides[0].woken()), kColumn,
             sides[1].woken());
  std::fflush(stdout);
  const auto everyone = static_cast<int>(kCast.size());
  return {sides[0].held() == everyone && sides[1].held() == everyone, sides[0].woken(),
          sides[1].woken()};
}

}  // namespace latchkey::app
