#pragma once

#include <memory>
#include <utility>

namespace latchkey::base {

/// A T that most owners never need, or not for long: takes the room of a pointer until it is made.
/// A value otherwise: a copy has a T of its own. Thread safety: as a T.
///
///     Box<ParentMaker> parents_;
///     if (!parents_) parents_.emplace(directory);
template <class T>
class Box {
 public:
  Box() = default;
  Box(const Box& other) : it_(other ? std::make_unique<T>(*other) : nullptr) {}
  Box(Box&&) noexcept = default;
  Box& operator=(Box other) noexcept {
    it_.swap(other.it_);
    return *this;
  }
  ~Box() = default;

  template <class... Args>
  T& emplace(Args&&... args) {
    it_ = std::make_unique<T>(std::forward<Args>(args)...);
    return *it_;
  }
  void reset() { it_.reset(); }

  explicit operator bool() const { return it_ != nullptr; }
  T& operator*() { return *it_; }
  const T& operator*() const { return *it_; }
  T* operator->() { return it_.get(); }
  const T* operator->() const { return it_.get(); }

 private:
  std::unique_ptr<T> it_;
};

}  // namespace latchkey::base
