#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "latchkey/result.hpp"

/// How values are written on the command line and in configuration files. Errors: kInvalidOption,
/// with a message that says how to write it.
namespace latchkey::app {

/// "500ms", "2s", "1.5s", "5min", "1h"; a bare number is seconds, as flock and timeout have it.
/// Between 1 ms and 24 days.
///
///     parse_duration("1.5s");  // 1'500
[[nodiscard]] Result<std::int64_t> parse_duration(std::string_view text);

/// The same, and 0 is a time as well.
///
///     parse_duration_or_zero("0.5");  // 500
[[nodiscard]] Result<std::int64_t> parse_duration_or_zero(std::string_view text);

/// A count between `least` and `most`: "500", or with a unit of bytes "64K", "4MB", "1GiB", which
/// are powers of 1024.
[[nodiscard]] Result<std::size_t> parse_count(std::string_view text, std::size_t least,
                                              std::size_t most);

/// A whole number between `least` and `most`.
[[nodiscard]] Result<int> parse_number(std::string_view text, int least, int most);

/// true, yes, on, 1 or false, no, off, 0.
[[nodiscard]] Result<bool> parse_bool(std::string_view text);

/// One line of a configuration file.
struct Setting {
  int line = 0;
  std::string name;
  std::vector<std::string> values;
};

/// Lines of `name = value`, `name = "value"` or `name = [value, value]`; `#` begins a comment,
/// empty lines are skipped. Errors begin with the number of the line.
///
///     parse_settings("listen = 127.0.0.1:2181  # the default\nmemory = true");
[[nodiscard]] Result<std::vector<Setting>> parse_settings(std::string_view text);

/// The one of `known` that was probably meant, or nothing.
[[nodiscard]] std::string closest(std::string_view word, const std::vector<std::string>& known);

}  // namespace latchkey::app
