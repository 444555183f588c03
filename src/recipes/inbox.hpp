#pragma once

#include <deque>
#include <utility>

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
    items_.push_back(std::move(item));
    if (std::exchange(busy_, true)) return;
    while (!items_.empty()) {
      Item next = std::move(items_.front());
      items_.pop_front();
      handle(next);
    }
    busy_ = false;
  }

 private:
  std::deque<Item> items_;
  bool busy_ = false;
};

}  // namespace latchkey::recipes
