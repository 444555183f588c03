#include "tree/audience.hpp"

#include <algorithm>

#include "tree/work.hpp"

namespace latchkey::tree {
namespace {

/// Most lists have an entry or two, and most readers an identity or two: what is quickly done is
/// not worth remembering.
constexpr std::size_t kFewComparisons = 16;
/// Beyond it everything is forgotten and found again when it is needed: some tens of megabytes.
constexpr std::size_t kMostKept = std::size_t{1} << 19U;

using Ranges = std::vector<std::pair<Address, Address>>;

/// In order, and those that overlap as one.
void merge(Ranges& ranges) {
  std::ranges::sort(ranges);
  std::size_t size = 0;
  for (const auto& range : ranges) {
    if (size > 0 && range.first <= ranges[size - 1].second) {
      ranges[size - 1].second = std::max(ranges[size - 1].second, range.second);
    } else {
      ranges[size++] = range;
    }
  }
  ranges.resize(size);
}

bool contains(const Ranges& ranges, const Address& address) {
  const auto after =
      std::ranges::upper_bound(ranges, address, {}, [](const auto& range) { return range.first; });
  return after != ranges.begin() && address <= std::prev(after)->second;
}

}  // namespace

bool Audience::may_hear(const AclRef& list, PeerId peer, std::span<const Identity> identities) {
  const std::size_t comparisons = list->size() * identities.size();
  if (comparisons <= kFewComparisons) {
    work_ += kComparisonWork * comparisons;
    return permits(*list, kRead, identities);
  }
  work_ += kLookWork;
  Readers& readers = readers_of(list);
  if (readers.everybody) return true;
  const auto [known, fresh] = readers.known.try_emplace(peer, false);
  if (!fresh) return known->second;
  ++kept_;
  work_ += kLookWork * identities.size();
  known->second = std::ranges::any_of(
      identities, [&](const Identity& identity) { return has(readers, identity); });
  return known->second;
}

Audience::Readers& Audience::readers_of(const AclRef& list) {
  if (const auto found = lists_.find(list.get()); found != lists_.end()) return found->second;
  if (kept_ > kMostKept) {
    lists_.clear();
    kept_ = 0;
  }
  Readers& readers = lists_[list.get()];
  readers.list = list;
  for (const wire::WireAcl& entry : *list) {
    if ((entry.permissions & kRead) == 0) continue;
    if (entry.scheme == "world" && entry.id == "anyone") {
      readers.everybody = true;
    } else if (entry.scheme == "digest") {
      readers.digests.insert(entry.id);
    } else if (entry.scheme == "x509") {
      readers.subjects.insert(entry.id);
    } else if (entry.scheme == "ip") {
      const auto network = parse_network(entry.id);
      if (!network) continue;
      // "::/0" is all of IPv6, and none of the IPv4 that is written inside it.
      Ranges& ranges = network->bits < kMappedBits ? readers.wide_networks : readers.networks;
      ranges.emplace_back(first_of(*network), last_of(*network));
    }
  }
  merge(readers.networks);
  merge(readers.wide_networks);
  kept_ += list->size();
  work_ += kComparisonWork * list->size();
  return readers;
}

bool Audience::has(const Readers& readers, const Identity& identity) {
  if (identity.scheme == "super") return true;
  if (identity.scheme == "digest") return readers.digests.contains(identity.id);
  if (identity.scheme == "x509") return readers.subjects.contains(identity.id);
  if (identity.scheme != "ip") return false;
  const auto met = parse_met(identity.id);
  if (!met) return false;
  return contains(readers.networks, *met) ||
         (!is_v4(*met) && contains(readers.wide_networks, *met));
}

}  // namespace latchkey::tree
