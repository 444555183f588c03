#include "recipes/reader.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace latchkey::recipes {

void Reader::forget(Key key) {
  const auto watch = watches_.find(key);
  if (watch == watches_.end()) return;
  machine_.unwatch(watch->second.setter, machine_.now());
  watches_.erase(watch);
}

void Reader::pause(int round, std::function<void()> done) {
  LATCHKEY_ASSERT(!after_pause_);
  after_pause_ = std::move(done);
  member_ = machine_.join(*this);
  timer_ =
      machine_.timers().add(machine_.now() + machine_.back_off(round), [weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->resume();
      });
}

void Reader::resume() {
  machine_.timers().cancel(std::exchange(timer_, 0));
  if (member_ != 0) machine_.leave(std::exchange(member_, 0));
  const auto next = std::exchange(after_pause_, {});
  if (next && !closed_) next();
}

void Reader::close() {
  closed_ = true;
  resume();
  for (const auto& [key, watch] : std::exchange(watches_, {})) {
    machine_.unwatch(watch.setter, machine_.now());
  }
}

std::size_t Reader::nodes_per_reply() const {
  const std::size_t largest = std::max<std::size_t>(machine_.max_request_bytes(), 1);
  return std::clamp<std::size_t>(host_.options().max_reply_bytes / largest, 2, 65) - 1;
}

void Reader::fired(Key key, const WatchEvent& event) {
  const auto watch = watches_.find(key);
  if (watch == watches_.end()) return;
  const Changed changed = std::move(watch->second.changed);
  watches_.erase(watch);
  if (event.kind != EventKind::kSessionOver) return changed();
  if (session_over_) session_over_();
}

}  // namespace latchkey::recipes
