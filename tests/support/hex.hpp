#pragma once

#include <charconv>
#include <string>
#include <string_view>

namespace latchkey::test_support {

/// Bytes as they are handed from one test process to another: "0aff".
[[nodiscard]] inline std::string to_digits(std::string_view bytes) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string digits;
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    digits += {kDigits[value >> 4U], kDigits[value & 15U]};
  }
  return digits;
}

[[nodiscard]] inline std::string from_digits(std::string_view digits) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    unsigned value = 0;
    std::from_chars(digits.data() + i, digits.data() + i + 2, value, 16);
    bytes.push_back(static_cast<char>(value));
  }
  return bytes;
}

}  // namespace latchkey::test_support
