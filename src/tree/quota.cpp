#include "tree/quota.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace latchkey::tree {
namespace {

constexpr std::string_view kCount = "count";
constexpr std::string_view kBytes = "bytes";
constexpr std::string_view kSeparators = ",;";
constexpr std::int64_t kUnset = -1;

std::string_view without_trailing(std::string_view text, std::string_view characters) {
  return text.substr(0, text.find_last_not_of(characters) + 1);
}

std::optional<std::int64_t> parse_limit(std::string_view text) {
  if (text.empty()) return kUnset;
  if (text.front() == '+') {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;
  }
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return number;
}

void append(std::string& out, std::string_view name, std::int64_t value) {
  out.append(name).append("=").append(std::to_string(value));
}

}  // namespace

std::optional<QuotaText> QuotaText::parse(std::string_view text) {
  QuotaText quota;
  text = without_trailing(text, kSeparators);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(kSeparators), text.size());
    // What follows a second '=' says nothing: Apache writes one after the bytes for old readers.
    const std::string_view pair = without_trailing(text.substr(0, end), "=");
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    const std::string_view rest = pair.substr(equals + 1);
    const auto value = parse_limit(rest.substr(0, rest.find('=')));
    if (!value) return std::nullopt;
    quota.set(pair.substr(0, equals), *value);
    text.remove_prefix(std::min(text.find_first_not_of(kSeparators, end), text.size()));
  }
  return quota;
}

std::int64_t QuotaText::get(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? kUnset : found->second;
}

void QuotaText::set(std::string_view name, std::int64_t value) {
  values_.insert_or_assign(std::string(name), value);
}

std::string QuotaText::text() const {
  std::string out;
  append(out, kCount, get(kCount));
  out += ',';
  append(out, kBytes, get(kBytes));
  // Readers before 3.5 know two values only; the extra '=' makes them overlook the others.
  std::string_view before = "=;";
  for (const auto& [name, value] : values_) {
    if (name == kCount || name == kBytes) continue;
    out += before;
    append(out, name, value);
    before = ";";
  }
  return out;
}

}  // namespace latchkey::tree
