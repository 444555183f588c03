#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace latchkey::storage {

/// The numbers in our files are little-endian on every machine.
template <class T>
[[nodiscard]] T get_number(const char* from) noexcept {
  static_assert(std::is_integral_v<T>);
  T number = 0;
  char bytes[sizeof number];
  std::memcpy(bytes, from, sizeof number);
  if constexpr (std::endian::native == std::endian::big) std::reverse(bytes, std::end(bytes));
  std::memcpy(&number, bytes, sizeof number);
  return number;
}

template <class T>
void put_number(char* to, T number) noexcept {
  static_assert(std::is_integral_v<T>);
  std::memcpy(to, &number, sizeof number);
  if constexpr (std::endian::native == std::endian::big) std::reverse(to, to + sizeof number);
}

}  // namespace latchkey::storage
