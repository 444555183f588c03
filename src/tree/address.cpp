#include "tree/address.hpp"

#include <algorithm>
#include <charconv>
#include <span>
#include <system_error>

namespace latchkey::tree {
namespace {

constexpr int kAddressBits = 128;

std::optional<int> parse_number(std::string_view text, int base, int max) {
  int number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number, base);
  if (error != std::errc{} || stop != end || number < 0 || number > max) return std::nullopt;
  return number;
}

/// Cuts off and returns what stands before the separator: everything if there is none.
std::string_view cut(std::string_view& text, char separator) {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

bool parse_v4(std::string_view text, std::span<std::uint8_t, 4> bytes) {
  if (std::count(text.begin(), text.end(), '.') != 3) return false;
  for (std::uint8_t& byte : bytes) {
    const auto number = parse_number(cut(text, '.'), 10, 255);
    if (!number) return false;
    byte = static_cast<std::uint8_t>(*number);
  }
  return true;
}

/// Groups of hexadecimal digits, "1:2:3", of which the last may be an IPv4 address. How many bytes
/// they fill; nothing if they are malformed or too many.
std::optional<std::size_t> parse_groups(std::string_view text, Address& bytes) {
  std::size_t filled = 0;
  if (text.empty()) return filled;
  if (text.back() == ':') return std::nullopt;
  while (!text.empty()) {
    const std::string_view group = cut(text, ':');
    const std::size_t width = group.find('.') == std::string_view::npos ? 2 : 4;
    if (filled + width > bytes.size()) return std::nullopt;
    if (width == 4) {
      const std::span<std::uint8_t, 4> tail(bytes.data() + filled, 4);
      if (!text.empty() || !parse_v4(group, tail)) return std::nullopt;
    } else {
      const auto number = parse_number(group, 16, 0xffff);
      if (!number || group.size() > 4) return std::nullopt;
      bytes[filled] = static_cast<std::uint8_t>(*number >> 8);
      bytes[filled + 1] = static_cast<std::uint8_t>(*number & 0xff);
    }
    filled += width;
  }
  return filled;
}

std::optional<Address> parse_v6(std::string_view text) {
  Address address{};
  const std::size_t gap = text.find("::");
  const auto head = parse_groups(text.substr(0, gap), address);
  if (gap == std::string_view::npos) {
    return head == address.size() ? std::optional(address) : std::nullopt;
  }
  // An IPv4 address stands at the very end or nowhere.
  if (text.substr(0, gap).find('.') != std::string_view::npos) return std::nullopt;
  Address behind{};
  const auto tail = parse_groups(text.substr(gap + 2), behind);
  if (!head || !tail || *head + *tail >= address.size()) return std::nullopt;
  std::copy_n(behind.begin(), *tail, address.end() - static_cast<std::ptrdiff_t>(*tail));
  return address;
}

bool same_prefix(const Address& a, const Address& b, int bits) {
  for (std::size_t i = 0; bits > 0; ++i, bits -= 8) {
    const unsigned mask = bits >= 8 ? 0xffU : 0xffU << static_cast<unsigned>(8 - bits);
    if (((a[i] ^ b[i]) & mask) != 0) return false;
  }
  return true;
}

}  // namespace

std::optional<Address> parse_address(std::string_view text) {
  if (text.find(':') != std::string_view::npos) return parse_v6(text);
  Address address{};
  address[10] = address[11] = 0xff;
  if (!parse_v4(text, std::span(address).last<4>())) return std::nullopt;
  return address;
}

std::optional<Network> parse_network(std::string_view text) {
  const bool has_bits = text.find('/') != std::string_view::npos;
  const std::string_view address_text = cut(text, '/');
  const auto address = parse_address(address_text);
  if (!address) return std::nullopt;
  if (!has_bits) return Network{*address};
  const int fixed = address_text.find(':') == std::string_view::npos ? kMappedBits : 0;
  const auto bits = parse_number(text, 10, kAddressBits - fixed);
  if (!bits) return std::nullopt;
  return Network{*address, fixed + *bits};
}

bool is_v4(const Address& address) {
  static constexpr Address kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return same_prefix(address, kMapped, kMappedBits);
}

std::optional<Address> parse_met(std::string_view text) { return parse_address(cut(text, '%')); }

Address first_of(const Network& network) {
  Address first = network.address;
  for (int i = 0; i < static_cast<int>(first.size()); ++i) {
    const int bits = std::clamp(network.bits - 8 * i, 0, 8);
    first[static_cast<std::size_t>(i)] &= static_cast<std::uint8_t>(0xff00U >> bits);
  }
  return first;
}

Address last_of(const Network& network) {
  Address last = network.address;
  for (int i = 0; i < static_cast<int>(last.size()); ++i) {
    const int bits = std::clamp(network.bits - 8 * i, 0, 8);
    last[static_cast<std::size_t>(i)] |= static_cast<std::uint8_t>(0xffU >> bits);
  }
  return last;
}

bool address_matches(std::string_view address, std::string_view pattern) {
  const auto met = parse_met(address);
  const auto network = parse_network(pattern);
  if (!met || !network) return false;
  if (is_v4(*met) && network->bits < kMappedBits) return false;
  return same_prefix(*met, network->address, network->bits);
}

}  // namespace latchkey::tree
