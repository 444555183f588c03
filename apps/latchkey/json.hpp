#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace latchkey::app {

/// One JSON object on one line, its members in the order they were added.
///
///     JsonLine().add("lock", "/locks/a").add("exit", 0).text();  // {"lock":"/locks/a","exit":0}
///
/// Bytes that are not UTF-8 appear as U+FFFD. Thread safety: one thread at a time.
class JsonLine {
 public:
  JsonLine& add(std::string_view name, std::string_view value);
  JsonLine& add(std::string_view name, const char* value) {
    return add(name, std::string_view(value));
  }
  JsonLine& add(std::string_view name, std::int64_t value);
  JsonLine& add(std::string_view name, int value) { return add(name, std::int64_t{value}); }
  JsonLine& add(std::string_view name, bool value);
  /// `value` is JSON already.
  JsonLine& add_raw(std::string_view name, std::string_view value);

  [[nodiscard]] std::string text() const { return "{" + members_ + "}"; }

 private:
  std::string members_;
};

/// In quotes, with everything escaped that JSON does not allow inside of them.
[[nodiscard]] std::string json_quoted(std::string_view text);

}  // namespace latchkey::app
