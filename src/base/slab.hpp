#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace latchkey::base {

/// Values found by an id in constant time. Ids are never reused: a slot that has had all its ids is
/// retired, after four billion of them. In a steady state nothing is allocated.
/// `Generation` is for the test of that. Thread safety: one thread at a time.
template <class T, class Generation = std::uint32_t>
class Slab {
 public:
  /// The slot in the low half, how often it was used before in the high half. 0 is never given.
  using Id = std::uint64_t;

  Id insert(T&& value) {
    std::uint32_t index = 0;
    if (free_.empty()) {
      index = static_cast<std::uint32_t>(slots_.size());
      slots_.emplace_back();
    } else {
      index = free_.back();
      free_.pop_back();
    }
    Slot& slot = slots_[index];
    slot.value.emplace(std::move(value));
    ++size_;
    return (std::uint64_t{slot.generation} << 32U) | index;
  }

  /// Null if the id's value has been taken out.
  [[nodiscard]] T* find(Id id) {
    const auto index = static_cast<std::uint32_t>(id);
    if (index >= slots_.size()) return nullptr;
    Slot& slot = slots_[index];
    return slot.value && slot.generation == id >> 32U ? &*slot.value : nullptr;
  }

  [[nodiscard]] const T* find(Id id) const { return const_cast<Slab*>(this)->find(id); }

  std::optional<T> take(Id id) {
    T* value = find(id);
    if (value == nullptr) return std::nullopt;
    const auto index = static_cast<std::uint32_t>(id);
    std::optional<T> taken(std::move(*value));
    slots_[index].value.reset();
    if (++slots_[index].generation != 0) free_.push_back(index);
    --size_;
    return taken;
  }

  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  struct Slot {
    std::optional<T> value;
    Generation generation = 1;  ///< 0: retired.
  };

  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
  std::size_t size_ = 0;
};

}  // namespace latchkey::base
