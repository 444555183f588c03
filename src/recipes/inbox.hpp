#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace latchkey::recipes {

/// Hands events to a machine one by one, in the order they came: what happens while an event is
/// being dealt with is dealt with after it.
///
///     inbox_.put(event, [this](Event& next) { carry_out(machine_.step(next)); });
///
/// The owner has to outlive the call. Thread safety: session strand only.
template <class Item>
class Inbox {
 public:
  template <class Handle>
  void put(Item item, Handle&& handle) {
    if (busy_) return items_.push_back(std::move(item));
    busy_ = true;
    handle(item);
    for (std::size_t i = 0; i < items_.size(); ++i) {
      Item next = std::move(items_[i]);
      handle(next);
    }
    items_ = std::vector<Item>();
    busy_ = false;
  }

  [[nodiscard]] bool is_busy() const { return busy_; }

 private:
  std::vector<Item> items_;  ///< Nothing and no memory when nothing happens: there are many of us.
  bool busy_ = false;
};

}  // namespace latchkey::recipes
