#include "tree/acl.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <system_error>
#include <tuple>
#include <utility>

namespace latchkey::tree {
namespace {

constexpr std::string_view kWorld = "world";
constexpr std::string_view kAnyone = "anyone";
constexpr std::string_view kAuth = "auth";
constexpr std::string_view kDigest = "digest";
constexpr std::string_view kIp = "ip";
constexpr std::string_view kX509 = "x509";
constexpr std::string_view kSuper = "super";

/// What a client can send in one frame, and read back in one.
constexpr std::size_t kMaxListBytes = std::size_t{1} << 20U;

/// An address in IPv6's form; one of IPv4 stands behind kMappedBits fixed bits, as ::ffff:1.2.3.4.
using Address = std::array<std::uint8_t, 16>;
constexpr int kMappedBits = 96;
constexpr int kAddressBits = 128;

struct Network {
  Address address{};
  int bits = kAddressBits;
};

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

bool same_prefix(const Address& a, const Address& b, int bits) {
  for (std::size_t i = 0; bits > 0; ++i, bits -= 8) {
    const unsigned mask = bits >= 8 ? 0xffU : 0xffU << static_cast<unsigned>(8 - bits);
    if (((a[i] ^ b[i]) & mask) != 0) return false;
  }
  return true;
}

bool is_v4(const Address& address) {
  static constexpr Address kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return same_prefix(address, kMapped, kMappedBits);
}

/// Apache's rule: two parts around one colon. Colons at the end do not count for it.
bool is_digest(std::string_view id) {
  id = id.substr(0, id.find_last_not_of(':') + 1);
  return std::count(id.begin(), id.end(), ':') == 1;
}

/// A certificate's subject: "CN=ada,O=latchkey". What it says is compared as a whole.
bool is_subject(std::string_view id) {
  const std::size_t equals = id.find('=');
  return equals != std::string_view::npos && equals > 0;
}

bool is_storable(const wire::WireAcl& entry) {
  if (entry.scheme == kWorld) return entry.id == kAnyone;
  if (entry.scheme == kDigest) return is_digest(entry.id);
  if (entry.scheme == kX509) return is_subject(entry.id);
  return entry.scheme == kIp && parse_network(entry.id).has_value();
}

bool is_meant(const wire::WireAcl& entry, const Identity& identity) {
  if (entry.scheme != identity.scheme) return false;
  if (entry.scheme == kDigest || entry.scheme == kX509) return entry.id == identity.id;
  return entry.scheme == kIp && address_matches(identity.id, entry.id);
}

AclRef everybody(std::int32_t permissions) {
  return std::make_shared<const AclList>(
      AclList{{{permissions, std::string(kWorld), std::string(kAnyone)}}});
}

}  // namespace

bool permits(const AclList& acl, std::int32_t permissions, std::span<const Identity> identities) {
  if (acl.empty()) return true;
  const auto is_super = [](const Identity& identity) { return identity.scheme == kSuper; };
  if (std::any_of(identities.begin(), identities.end(), is_super)) return true;
  return std::any_of(acl.begin(), acl.end(), [&](const wire::WireAcl& entry) {
    if ((entry.permissions & permissions) == 0) return false;
    if (entry.scheme == kWorld && entry.id == kAnyone) return true;
    return std::any_of(identities.begin(), identities.end(),
                       [&](const Identity& identity) { return is_meant(entry, identity); });
  });
}

std::size_t size_in_bytes(const AclList& list) {
  std::size_t bytes = 0;
  for (const wire::WireAcl& entry : list) {
    bytes += entry.scheme.size() + entry.id.size() + sizeof entry.permissions;
  }
  return bytes;
}

std::optional<AclList> settle(const AclList& asked, std::span<const Identity> identities) {
  AclList settled;
  std::size_t bytes = 0;
  const auto add = [&](const wire::WireAcl& entry) {
    bytes += entry.scheme.size() + entry.id.size() + sizeof entry.permissions;
    settled.push_back(entry);
    return bytes <= kMaxListBytes;
  };
  const auto add_proven = [&](std::int32_t permissions) {
    const std::size_t before = settled.size();
    for (const Identity& identity : identities) {
      if (identity.scheme != kDigest && identity.scheme != kX509) continue;
      if (!add({{permissions, identity.scheme, identity.id}})) return false;
    }
    return settled.size() > before;
  };

  std::set<std::tuple<std::int32_t, std::string_view, std::string_view>> seen;
  for (const wire::WireAcl& entry : asked) {
    if (!seen.emplace(entry.permissions, entry.scheme, entry.id).second) continue;
    const bool ok =
        entry.scheme == kAuth ? add_proven(entry.permissions) : is_storable(entry) && add(entry);
    if (!ok) return std::nullopt;
  }
  if (settled.empty()) return std::nullopt;
  return settled;
}

AclList masked(const AclList& acl) {
  AclList result = acl;
  for (wire::WireAcl& entry : result) {
    const std::size_t colon = entry.id.find(':');
    if (entry.scheme != kDigest || colon == std::string::npos) continue;
    entry.id.resize(colon + 1);
    entry.id += 'x';
  }
  return result;
}

bool address_matches(std::string_view address, std::string_view pattern) {
  // An interface ("fe80::1%eth0") says where the address was met, not whose it is.
  const auto met = parse_address(cut(address, '%'));
  const auto network = parse_network(pattern);
  if (!met || !network) return false;
  // "::/0" is all of IPv6, and none of the IPv4 that is written inside it.
  if (is_v4(*met) && network->bits < kMappedBits) return false;
  return same_prefix(*met, network->address, network->bits);
}

const AclRef& open_list() {
  static const AclRef list = everybody(kAllPermissions);
  return list;
}

const AclRef& read_only_list() {
  static const AclRef list = everybody(kRead);
  return list;
}

AclRef AclTable::share(AclList list) {
  if (list == *open_list()) return open_list();
  std::string encoding;
  wire::Writer{encoding}(list);
  const std::size_t size = encoding.size();
  const auto [entry, fresh] = lists_.try_emplace(std::move(encoding));
  if (fresh) bytes_ += size;
  std::weak_ptr<const AclList>& place = entry->second;
  AclRef shared = place.lock();
  if (shared) return shared;
  shared = std::make_shared<const AclList>(std::move(list));
  place = shared;
  if (lists_.size() >= sweep_at_ || bytes_ >= sweep_at_bytes_) sweep();
  return shared;
}

void AclTable::sweep() {
  std::erase_if(lists_, [this](const auto& entry) {
    if (!entry.second.expired()) return false;
    bytes_ -= entry.first.size();
    return true;
  });
  sweep_at_ = std::max(kFewest, 2 * lists_.size());
  sweep_at_bytes_ = std::max(kFewestBytes, 2 * bytes_);
}

}  // namespace latchkey::tree
