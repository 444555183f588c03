#include "json.hpp"

#include <fmt/core.h>

#include "utf8.hpp"

namespace latchkey::app {

std::string json_quoted(std::string_view text) {
  std::string result = "\"";
  while (!text.empty()) {
    const std::size_t size = first_character(text).size;
    const char first = text.front();
    if (size == 0) {
      result += "\xEF\xBF\xBD";
    } else if (first == '"' || first == '\\') {
      result += {'\\', first};
    } else if (size == 1 && (static_cast<unsigned char>(first) < 0x20 || first == 0x7F)) {
      result += fmt::format("\\u{:04x}", static_cast<unsigned>(first));
    } else {
      result += text.substr(0, size);
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return result + '"';
}

JsonLine& JsonLine::add_raw(std::string_view name, std::string_view value) {
  if (!members_.empty()) members_ += ',';
  members_ += json_quoted(name);
  members_ += ':';
  members_ += value;
  return *this;
}

JsonLine& JsonLine::add(std::string_view name, std::string_view value) {
  return add_raw(name, json_quoted(value));
}
JsonLine& JsonLine::add(std::string_view name, std::int64_t value) {
  return add_raw(name, std::to_string(value));
}
JsonLine& JsonLine::add(std::string_view name, bool value) {
  return add_raw(name, value ? "true" : "false");
}

}  // namespace latchkey::app
