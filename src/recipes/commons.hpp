#pragma once

#include <bit>
#include <memory>
#include <string>

#include "session/machine.hpp"

namespace latchkey::recipes {

/// What recipes of one session share under `key`, made if nobody has it at the moment.
/// Session strand only.
template <class T, class Make>
std::shared_ptr<T> common(session::Machine& machine, const std::string& key, Make&& make) {
  auto& commons = machine.commons();
  auto [place, is_new] = commons.try_emplace(key);
  if (auto there = std::static_pointer_cast<T>(place->second.lock())) return there;
  std::shared_ptr<T> made = make();
  place->second = made;
  // Names that nobody has any more are cleared away now and then: each time would take the longer
  // the more locks a session holds.
  if (is_new && std::has_single_bit(commons.size())) {
    std::erase_if(commons, [](const auto& item) { return item.second.expired(); });
  }
  return made;
}

}  // namespace latchkey::recipes
