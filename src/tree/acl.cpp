#include "tree/acl.hpp"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "tree/address.hpp"
#include "tree/work.hpp"

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

std::optional<AclList> settle(const AclList& asked, std::span<const Identity> identities,
                              std::uint64_t* work) {
  AclList settled;
  std::size_t bytes = 0;
  const auto add = [&](const wire::WireAcl& entry) {
    const std::size_t size = entry.scheme.size() + entry.id.size() + sizeof entry.permissions;
    if (work != nullptr) *work += kLookWork + size / 4;
    bytes += size;
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
    // A list of one, which is nearly every list, repeats nothing.
    const bool is_new =
        asked.size() == 1 || seen.emplace(entry.permissions, entry.scheme, entry.id).second;
    if (!is_new) continue;
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

const AclRef& open_list() {
  static const AclRef list = everybody(kAllPermissions);
  return list;
}

const AclRef& read_only_list() {
  static const AclRef list = everybody(kRead);
  return list;
}

AclRef handed_on(const AclList& list) {
  return list == *open_list() ? open_list() : std::make_shared<const AclList>(list);
}

AclRef AclTable::share(const AclList& list) {
  if (list == *open_list()) return open_list();
  std::string encoding;
  wire::Writer{encoding}(list);
  const auto [entry, fresh] = lists_->try_emplace(std::move(encoding));
  if (!fresh) return entry->second.lock();
  // A key stays where it is for as long as its entry is there, and that goes with the list.
  const auto forget = [lists = lists_, key = &entry->first](const AclList* gone) {
    lists->erase(lists->find(*key));
    delete gone;
  };
  AclRef shared(new AclList(list), forget);
  entry->second = shared;
  return shared;
}

}  // namespace latchkey::tree
