#include "queue/owner.hpp"

#include <charconv>
#include <cstddef>
#include <system_error>

namespace latchkey::queue {
namespace {

constexpr std::string_view kHeader = "latchkey/1";
/// Behind the header, so that whatever stands at the end of an entry's data stays there.
constexpr std::string_view kRequest = "\nrelease=requested";
constexpr std::string_view kDigits = "0123456789ABCDEF";

/// The length of the UTF-8 sequence that starts at `at`, 0 if what is there is not UTF-8.
std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  std::size_t length = 0;
  if (lead >= 0xc2 && lead <= 0xdf) length = 2;
  if (lead >= 0xe0 && lead <= 0xef) length = 3;
  if (lead >= 0xf0 && lead <= 0xf4) length = 4;
  if (length == 0 || at + length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[at + i]) & 0xc0) != 0x80) return 0;
  }
  const auto second = static_cast<unsigned char>(text[at + 1]);
  // Overlong forms, surrogates, beyond the last character; and U+0080 to U+009F, which a terminal
  // takes for commands.
  if ((lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f) ||
      (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second > 0x8f) ||
      (lead == 0xc2 && second < 0xa0)) {
    return 0;
  }
  return length;
}

std::string escape(std::string_view value) {
  std::string out;
  out.reserve(value.size());
  for (std::size_t i = 0; i < value.size();) {
    const auto byte = static_cast<unsigned char>(value[i]);
    const bool plain = byte >= 0x20 && byte < 0x7f && byte != '%';
    const std::size_t length = plain ? 1 : utf8_length(value, i);
    if (length > 0) {
      out += value.substr(i, length);
      i += length;
      continue;
    }
    out += '%';
    out += kDigits[byte >> 4];
    out += kDigits[byte & 0xf];
    ++i;
  }
  return out;
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

/// A `%` that starts no escape stands for itself: people edit such things by hand.
std::string unescape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      const int high = hex_value(text[i + 1]);
      const int low = hex_value(text[i + 2]);
      if (high >= 0 && low >= 0) {
        out += static_cast<char>(static_cast<unsigned char>(high * 16 + low));
        i += 2;
        continue;
      }
    }
    out += text[i];
  }
  return out;
}

void append_line(std::string& out, std::string_view key, std::string_view value) {
  if (value.empty()) return;
  out += '\n';
  out += key;
  out += '=';
  out += escape(value);
}

void read_line(Owner& owner, std::string_view line) {
  const std::size_t equals = line.find('=');
  if (equals == std::string_view::npos) return;
  const std::string_view key = line.substr(0, equals);
  const std::string_view value = line.substr(equals + 1);
  if (key == "host") owner.host = unescape(value);
  if (key == "program") owner.program = unescape(value);
  if (key == "since") owner.since = unescape(value);
  if (key == "reason") owner.reason = unescape(value);
  if (key == "pid") {
    std::int64_t pid = 0;
    const char* end = value.data() + value.size();
    const auto [stop, error] = std::from_chars(value.data(), end, pid);
    if (error == std::errc{} && stop == end) owner.pid = pid;
  }
}

}  // namespace

std::string format_owner(const Owner& owner) {
  std::string out{kHeader};
  append_line(out, "host", owner.host);
  if (owner.pid != 0) append_line(out, "pid", std::to_string(owner.pid));
  append_line(out, "program", owner.program);
  append_line(out, "since", owner.since);
  append_line(out, "reason", owner.reason);
  out += '\n';
  return out;
}

std::optional<Owner> parse_owner(std::string_view data) {
  if (!data.starts_with(kHeader)) return {};
  data.remove_prefix(kHeader.size());
  if (!data.empty() && data.front() != '\n') return {};

  Owner owner;
  while (!data.empty()) {
    data.remove_prefix(1);  // The line break before the line.
    const std::size_t end = data.find('\n');
    read_line(owner, data.substr(0, end));
    data = end == std::string_view::npos ? std::string_view{} : data.substr(end);
  }
  return owner;
}

std::string asking_to_let_go(std::string_view data) {
  if (is_asked_to_let_go(data)) return std::string(data);
  if (!parse_owner(data)) return std::string(kRevokeData);
  std::string asking{data};
  asking.insert(kHeader.size(), kRequest);
  return asking;
}

bool is_asked_to_let_go(std::string_view data) {
  if (data == kRevokeData) return true;
  if (!data.starts_with(kHeader)) return false;
  data.remove_prefix(kHeader.size());
  if (!data.starts_with(kRequest)) return false;
  data.remove_prefix(kRequest.size());
  return data.empty() || data.front() == '\n';
}

}  // namespace latchkey::queue
