#include "demo_story.hpp"

#include <algorithm>
#include <functional>
#include <sstream>

namespace latchkey::app {
namespace {

std::string place(const WorkerStory& story) {
  return story.node.size() < 10 ? std::string() : story.node.substr(story.node.size() - 10);
}

std::vector<std::string> names(const std::vector<WorkerStory>& stories) {
  std::vector<std::string> result;
  for (const WorkerStory& story : stories) result.push_back(story.name);
  return result;
}

}  // namespace

Verdict judge(std::vector<WorkerStory> stories) {
  Verdict verdict;
  verdict.everyone_held = std::all_of(stories.begin(), stories.end(), [](const auto& story) {
    return story.held != 0 && story.ended != 0;
  });
  std::ranges::sort(stories, {}, place);
  verdict.arrival = names(stories);
  std::ranges::sort(stories, {}, &WorkerStory::held);
  verdict.holding = names(stories);
  for (const WorkerStory& story : stories) verdict.tokens.push_back(story.token);

  verdict.in_order = verdict.arrival == verdict.holding;
  verdict.tokens_grow =
      std::ranges::adjacent_find(verdict.tokens, std::greater_equal<>()) == verdict.tokens.end();
  verdict.exclusive =
      std::ranges::adjacent_find(stories, [](const WorkerStory& first, const WorkerStory& next) {
        return first.ended == 0 || next.held < first.ended;
      }) == stories.end();
  return verdict;
}

std::optional<std::string> read_line(const std::string& line, WorkerStory& story) {
  std::istringstream in(line);
  std::string what;
  std::int64_t when = 0;
  if (!(in >> what >> when)) return std::nullopt;
  if (what == "queued") {
    story.queued = when;
  } else if (what == "holding" && in >> story.token >> story.node) {
    story.held = when;
  } else if (what == "released" || what == "lost") {
    story.ended = when;
  } else if (what == "woken" && in >> story.woken) {
    return what;
  } else {
    return std::nullopt;
  }
  return what;
}

std::vector<std::string> Chronicle::take(std::int64_t now) {
  std::vector<std::string> taken;
  while (!lines_.empty() && lines_.begin()->first <= now - kPatience) {
    taken.push_back(std::move(lines_.begin()->second));
    lines_.erase(lines_.begin());
  }
  return taken;
}

std::vector<std::string> Chronicle::take_all() {
  return take(std::numeric_limits<std::int64_t>::max());
}

}  // namespace latchkey::app
