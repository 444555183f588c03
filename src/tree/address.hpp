#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace latchkey::tree {

/// An address in IPv6's form; one of IPv4 stands behind kMappedBits fixed bits, as ::ffff:1.2.3.4.
/// They are ordered as they are numbered, so that a network is a range of them.
using Address = std::array<std::uint8_t, 16>;
inline constexpr int kMappedBits = 96;

/// "1.2.3.0/24", or one address.
struct Network {
  Address address{};  ///< Any in it.
  int bits = 128;     ///< How many all of them have in common.
};

[[nodiscard]] std::optional<Address> parse_address(std::string_view text);
/// The same for one that somebody was met at: an interface ("fe80::1%eth0") says where, not who.
[[nodiscard]] std::optional<Address> parse_met(std::string_view text);
[[nodiscard]] std::optional<Network> parse_network(std::string_view text);
[[nodiscard]] bool is_v4(const Address& address);
[[nodiscard]] Address first_of(const Network& network);
[[nodiscard]] Address last_of(const Network& network);

/// Does the address match "1.2.3.4" or "1.2.3.0/24"? IPv4, as Apache, and IPv6 too:
/// "2001:db8::/32". An IPv4 address that arrived through an IPv6 socket ("::ffff:1.2.3.4") is an
/// IPv4 address; "::/0" is all of IPv6, and none of the IPv4 that is written inside it.
[[nodiscard]] bool address_matches(std::string_view address, std::string_view pattern);

}  // namespace latchkey::tree
