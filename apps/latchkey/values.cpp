#include "values.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

namespace latchkey::app {
namespace {

using Unit = std::pair<std::string_view, double>;

constexpr Unit kTimes[] = {{"", 1'000},     {"ms", 1},        {"s", 1'000},
                           {"min", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}};
constexpr double kKilo = 1'024;
constexpr Unit kSizes[] = {{"", 1},
                           {"K", kKilo},
                           {"KB", kKilo},
                           {"KiB", kKilo},
                           {"M", kKilo* kKilo},
                           {"MB", kKilo* kKilo},
                           {"MiB", kKilo* kKilo},
                           {"G", kKilo* kKilo* kKilo},
                           {"GB", kKilo* kKilo* kKilo},
                           {"GiB", kKilo* kKilo* kKilo}};

Error invalid(std::string text) { return Error(Code::kInvalidOption, std::move(text)); }

std::string quoted(std::string_view text) { return '"' + std::string(text) + '"'; }

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

/// A number and its unit, multiplied.
std::optional<double> measure(std::string_view text, std::span<const Unit> units) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number)) return std::nullopt;
  const std::string_view unit = trim(text.substr(static_cast<std::size_t>(end - text.data())));
  const auto* found = std::find_if(units.begin(), units.end(), [&](const Unit& one) {
                        return one.first == unit;
                      }).base();
  if (found == units.data() + units.size()) return std::nullopt;
  return number * found->second;
}

/// One value, in quotes or bare; `rest` is left behind it. A bare one ends at any of `ends`.
std::optional<std::string> take_value(std::string_view& rest, std::string_view ends) {
  rest = trim(rest);
  if (rest.starts_with('"')) {
    const std::size_t end = rest.find('"', 1);
    if (end == std::string_view::npos) return std::nullopt;
    std::string value(rest.substr(1, end - 1));
    rest = trim(rest.substr(end + 1));
    return value;
  }
  const std::size_t end = std::min(rest.find_first_of(ends), rest.size());
  std::string value(trim(rest.substr(0, end)));
  rest = trim(rest.substr(end));
  if (value.empty()) return std::nullopt;
  return value;
}

bool is_over(std::string_view rest) { return rest.empty() || rest.starts_with('#'); }

std::optional<std::vector<std::string>> take_values(std::string_view rest) {
  std::vector<std::string> values;
  rest = trim(rest);
  if (!rest.starts_with('[')) {
    auto value = take_value(rest, "#");
    if (!value || !is_over(rest)) return std::nullopt;
    values.push_back(std::move(*value));
    return values;
  }
  do {
    rest.remove_prefix(1);
    auto value = take_value(rest, ",]#");
    if (!value) return std::nullopt;
    values.push_back(std::move(*value));
  } while (rest.starts_with(','));
  if (!rest.starts_with(']') || !is_over(trim(rest.substr(1)))) return std::nullopt;
  return values;
}

/// How many letters have to be changed, added or left out to make one of the other.
std::size_t distance(std::string_view a, std::string_view b) {
  // Fingers that were too quick: the same letters in another order.
  if (a != b && a.size() == b.size() && std::is_permutation(a.begin(), a.end(), b.begin())) {
    return 1;
  }
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

Result<std::int64_t> parse_duration(std::string_view text) {
  const std::optional<double> ms = measure(text, kTimes);
  if (!ms) return invalid(quoted(text) + " is no time; write 500ms, 1.5s, 5min, 2h or 1d");
  if (*ms < 1 || *ms > std::numeric_limits<std::int32_t>::max()) {
    return invalid(quoted(text) + " does not lie between 1ms and 24d");
  }
  return static_cast<std::int64_t>(*ms);
}

Result<std::int64_t> parse_duration_or_zero(std::string_view text) {
  const std::optional<double> ms = measure(text, kTimes);
  if (ms && *ms < 0) return invalid(quoted(text) + " is less than nothing; write 0 or more");
  if (ms && *ms == 0) return 0;
  return parse_duration(text);
}

Result<std::size_t> parse_count(std::string_view text, std::size_t least, std::size_t most) {
  const std::optional<double> count = measure(text, kSizes);
  if (!count || *count != std::floor(*count)) {
    return invalid(quoted(text) + " is no count; write 500, or 64K, 16M, 4G for bytes");
  }
  if (*count < static_cast<double>(least)) {
    return invalid(quoted(text) + " is too small; choose at least " + std::to_string(least));
  }
  if (*count > static_cast<double>(most)) {
    return invalid(quoted(text) + " is too large; choose at most " + std::to_string(most));
  }
  return static_cast<std::size_t>(*count);
}

Result<int> parse_number(std::string_view text, int least, int most) {
  int number = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  if (error == std::errc() && end == last && number >= least && number <= most) return number;
  return invalid(quoted(text) + " is no number from " + std::to_string(least) + " to " +
                 std::to_string(most));
}

Result<bool> parse_bool(std::string_view text) {
  for (const std::string_view yes : {"true", "yes", "on", "1"}) {
    if (text == yes) return true;
  }
  for (const std::string_view no : {"false", "no", "off", "0"}) {
    if (text == no) return false;
  }
  return invalid(quoted(text) + " is neither true nor false");
}

Result<std::vector<Setting>> parse_settings(std::string_view text) {
  std::vector<Setting> settings;
  for (int line = 1; !text.empty(); ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view content = trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (is_over(content)) continue;
    const std::size_t equals = content.find('=');
    const std::string_view name = trim(content.substr(0, equals));
    std::optional<std::vector<std::string>> values;
    if (equals != std::string_view::npos) values = take_values(content.substr(equals + 1));
    if (!values || name.empty()) {
      return invalid(std::to_string(line) + ": " + quoted(content) +
                     " is not of the form name = value, name = \"value\" or name = [value, value]");
    }
    settings.push_back({line, std::string(name), std::move(*values)});
  }
  return settings;
}

std::string closest(std::string_view word, const std::vector<std::string>& known) {
  const auto best = std::min_element(known.begin(), known.end(), [&](const auto& a, const auto& b) {
    return distance(word, a) < distance(word, b);
  });
  if (best == known.end()) return {};
  const std::size_t most = std::max<std::size_t>(1, best->size() / 3);
  return distance(word, *best) <= most ? *best : std::string();
}

}  // namespace latchkey::app
