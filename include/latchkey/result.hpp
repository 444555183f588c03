#pragma once

#include <type_traits>
#include <utility>
#include <variant>

#include "latchkey/error.hpp"
#include "latchkey/export.hpp"

namespace latchkey::inline v0 {

///     die_of_access(nullptr);  // Ends the process: a Result was asked for what it does not hold.
[[noreturn]] LATCHKEY_EXPORT void die_of_access(const Error* error) noexcept;

/// A value or the Error that stands in its place. Spelled like C++23's std::expected, so that a
/// later switch is a change of one alias:
///
///     Result<Node> node = session.get("/config", deadline_in(2s));
///     if (!node) return node.error();
///     use(node->data);
///
/// Asking for the value of a failed Result, or for the error of a good one, ends the process; the
/// former says on standard error what had failed.
template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  Result(const T& value) : state_(std::in_place_index<0>, value) {}
  Result(T&& value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  [[nodiscard]] bool has_value() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  [[nodiscard]] T& value() & { return get<0>(state_); }
  [[nodiscard]] const T& value() const& { return get<0>(state_); }
  [[nodiscard]] T&& value() && { return std::move(get<0>(state_)); }
  [[nodiscard]] T& operator*() & { return value(); }
  [[nodiscard]] const T& operator*() const& { return value(); }
  [[nodiscard]] T&& operator*() && { return std::move(*this).value(); }
  [[nodiscard]] T* operator->() { return &value(); }
  [[nodiscard]] const T* operator->() const { return &value(); }

  [[nodiscard]] const Error& error() const { return get<1>(state_); }

  template <class U>
  [[nodiscard]] T value_or(U&& other) const& {
    return has_value() ? value() : static_cast<T>(std::forward<U>(other));
  }

 private:
  template <std::size_t kIndex, class State>
  static auto& get(State& state) {
    if (state.index() != kIndex) die_of_access(std::get_if<1>(&state));
    return *std::get_if<kIndex>(&state);
  }

  std::variant<T, Error> state_;
};

/// Success without a value, or an Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;

  Result() = default;
  Result(Error error) : error_(std::in_place_index<1>, std::move(error)) {}

  [[nodiscard]] bool has_value() const noexcept { return error_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }
  [[nodiscard]] const Error& error() const {
    if (has_value()) die_of_access(nullptr);
    return *std::get_if<1>(&error_);
  }

 private:
  std::variant<std::monostate, Error> error_;
};

}  // namespace latchkey::inline v0
