#pragma once

#include <string>
#include <string_view>

#include "wire/jute.hpp"

/// Shared by the tests of this room only.
namespace latchkey::wire {

/// The bytes that `hex` spells; blanks are for the reader.
inline std::string bytes(std::string_view hex) {
  std::string out;
  int high = -1;
  for (const char digit : hex) {
    if (digit == ' ') continue;
    const int value = digit <= '9' ? digit - '0' : digit - 'a' + 10;
    if (high < 0) {
      high = value;
    } else {
      out.push_back(static_cast<char>(high * 16 + value));
      high = -1;
    }
  }
  return out;
}

/// What bytes() would have to be given, so that a failing comparison can be read.
inline std::string hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    out.push_back(kDigits[value / 16U]);
    out.push_back(kDigits[value % 16U]);
  }
  return out;
}

template <class... Parts>
std::string encoded(const Parts&... parts) {
  std::string out;
  Writer writer(out);
  writer(parts...);
  return out;
}

}  // namespace latchkey::wire
