#include "queue/node_name.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>

namespace latchkey::queue {
namespace {

constexpr std::string_view kProtected = "_c_";
constexpr std::string_view kNamedTag = "_lock_";
constexpr std::size_t kUuidLength = 36;
constexpr std::size_t kHexLength = 32;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// A table, because every name of every list is looked at.
constexpr auto kIsHex = [] {
  std::array<bool, 256> table{};
  for (const char c : std::string_view("0123456789abcdefABCDEF")) {
    table[static_cast<unsigned char>(c)] = true;
  }
  return table;
}();

bool is_hex(char c) { return kIsHex[static_cast<unsigned char>(c)]; }

bool is_hex_text(std::string_view text) {
  for (const char c : text) {
    if (!is_hex(c)) return false;
  }
  return !text.empty();
}

bool is_uuid(std::string_view text) {
  if (text.size() != kUuidLength) return false;
  constexpr std::array<std::size_t, 4> kDashes{8, 13, 18, 23};
  std::size_t from = 0;
  for (const std::size_t dash : kDashes) {
    if (text[dash] != '-' || !is_hex_text(text.substr(from, dash - from))) return false;
    from = dash + 1;
  }
  return is_hex_text(text.substr(from));
}

/// Exactly the texts that `%010d` prints for 32-bit numbers, and no other spelling of them.
std::optional<std::int32_t> parse_number(std::string_view text) {
  const bool negative = text.starts_with('-');
  const std::string_view digits = text.substr(negative ? 1 : 0);
  if (digits.empty() || !std::all_of(digits.begin(), digits.end(), is_digit)) return {};
  const bool wide = text.size() == 11 && negative && digits.front() != '0';
  if (text.size() != 10 && !wide) return {};

  std::int64_t value = 0;
  for (const char digit : digits) value = value * 10 + (digit - '0');
  if (negative && value == 0) return {};
  if (negative) value = -value;
  if (value < std::numeric_limits<std::int32_t>::min() ||
      value > std::numeric_limits<std::int32_t>::max()) {
    return {};
  }
  return static_cast<std::int32_t>(value);
}

struct Split {
  std::string_view head;  ///< What stands before the tag.
  std::int32_t number;
};

/// The name as head, tag and number, if it is that.
std::optional<Split> split_at(std::string_view child, std::string_view tag) {
  for (const std::size_t width : {std::size_t{11}, std::size_t{10}}) {
    if (child.size() < tag.size() + width) continue;
    const std::size_t at = child.size() - width;
    const std::string_view before = child.substr(0, at);
    if (!before.ends_with(tag)) continue;
    if (const auto number = parse_number(child.substr(at))) {
      return Split{before.substr(0, at - tag.size()), *number};
    }
  }
  return {};
}

Place make_place(std::string_view child, const Split& split, Dialect dialect,
                 Share share = Share::kExclusive) {
  Place place;
  place.name = child;
  place.number = split.number;
  place.share = share;
  place.dialect = dialect;
  return place;
}

/// The uuid of `_c_<uuid>-…`, or nothing.
std::string_view protected_guid(std::string_view head) {
  if (!head.starts_with(kProtected) || head.size() < kProtected.size() + kUuidLength + 1) return {};
  const std::string_view guid = head.substr(kProtected.size(), kUuidLength);
  if (head[kProtected.size() + kUuidLength] != '-' || !is_uuid(guid)) return {};
  return guid;
}

bool is_go_head(std::string_view head) {
  return head.size() == kProtected.size() + kHexLength + 1 && head.starts_with(kProtected) &&
         head.ends_with('-') && is_hex_text(head.substr(kProtected.size(), kHexLength));
}

/// Tags of Curator and of those who copied it.
std::optional<Place> parse_curator(std::string_view child) {
  struct Rule {
    std::string_view tag;
    Share share;
    bool read_write;
    bool any_head;  ///< Counts behind any `<head>-` too, as it does for Curator.
  };
  static constexpr std::array kRules{
      Rule{"lock-", Share::kExclusive, false, true},
      Rule{"__READ__", Share::kShared, true, true},
      Rule{"__WRIT__", Share::kExclusive, true, true},
      Rule{"latch-", Share::kExclusive, false, false},
      Rule{"lease-", Share::kExclusive, false, false},
  };
  for (const Rule& rule : kRules) {
    const auto split = split_at(child, rule.tag);
    if (!split) continue;
    const std::string_view head = split->head;
    const std::string_view guid = protected_guid(head);
    Dialect dialect = Dialect::kTutorial;
    if (!guid.empty() && head.size() == kProtected.size() + kUuidLength + 1) {
      dialect = Dialect::kCurator;
    } else if (rule.any_head && is_go_head(head)) {
      dialect = Dialect::kGo;
    } else if (rule.any_head && head.size() == kHexLength + 1 && head.ends_with('-') &&
               is_hex_text(head.substr(0, kHexLength))) {
      dialect = Dialect::kKazoo;
    } else if (!rule.any_head || !(head.empty() || head.ends_with('-'))) {
      continue;
    }
    Place place = make_place(child, *split, dialect, rule.share);
    place.read_write = rule.read_write;
    return place;
  }
  return {};
}

std::optional<Place> parse_named(std::string_view child) {
  const auto split = split_at(child, kNamedTag);
  if (!split) return {};
  const std::string_view guid = protected_guid(split->head);
  const std::string_view name =
      guid.empty() ? split->head : split->head.substr(kProtected.size() + kUuidLength + 1);
  if (!is_lock_name(name)) return {};
  Place place = make_place(child, *split, guid.empty() ? Dialect::kTutorial : Dialect::kNamed);
  place.lock_name = name;
  return place;
}

std::optional<Place> parse_kazoo(std::string_view child) {
  if (const auto split = split_at(child, "__lock__")) {
    return make_place(child, *split, Dialect::kKazoo);
  }
  if (const auto split = split_at(child, "__rlock__")) {
    return make_place(child, *split, Dialect::kKazoo, Share::kShared);
  }
  return {};
}

/// A session id as the C recipe (16 hex digits) or the Java recipe (a signed decimal) prints it.
bool is_session_text(std::string_view text) {
  if (text.size() == 16 && is_hex_text(text)) return true;
  if (text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && text.size() <= 19 && std::all_of(text.begin(), text.end(), is_digit);
}

/// The rest: tags so short that what stands before them has to fit.
std::optional<Place> parse_others(std::string_view child) {
  if (const auto split = split_at(child, "LOCKNODE"); split && split->head.empty()) {
    return make_place(child, *split, Dialect::kPegasus);
  }
  if (const auto split = split_at(child, "seq-"); split && split->head.empty()) {
    return make_place(child, *split, Dialect::kTutorial);
  }
  if (const auto split = split_at(child, "-R-"); split && !split->head.empty()) {
    return make_place(child, *split, Dialect::kTutorial, Share::kShared);
  }
  if (const auto split = split_at(child, "-W-"); split && !split->head.empty()) {
    return make_place(child, *split, Dialect::kTutorial);
  }
  if (const auto split = split_at(child, "_")) {
    if (split->head == "n") return make_place(child, *split, Dialect::kZooKeeper);
    if (is_uuid(split->head)) return make_place(child, *split, Dialect::kRust);
  }
  if (const auto split = split_at(child, "-")) {
    const std::string_view head = split->head;
    if (head == "n" || (head.starts_with("x-") && is_session_text(head.substr(2)))) {
      return make_place(child, *split, Dialect::kZooKeeper);
    }
    if (head.starts_with("latch-") && head.size() > 6) {
      return make_place(child, *split, Dialect::kRust);
    }
  }
  return {};
}

}  // namespace

std::optional<Place> parse_place(std::string_view child,
                                 const std::vector<std::string>& extra_tags) {
  if (auto place = parse_curator(child)) return place;
  if (auto place = parse_named(child)) return place;
  if (auto place = parse_kazoo(child)) return place;
  if (auto place = parse_others(child)) return place;
  for (const std::string& tag : extra_tags) {
    if (const auto split = split_at(child, tag)) return make_place(child, *split, Dialect::kExtra);
  }
  return {};
}

namespace {

std::string_view text_of(Tag tag) {
  switch (tag) {
    case Tag::kLock: return "lock-";
    case Tag::kRead: return "__READ__";
    case Tag::kWrite: return "__WRIT__";
    case Tag::kLatch: return "latch-";
    case Tag::kLease: return "lease-";
  }
  return {};
}

using Pieces = std::array<std::string_view, 5>;

Pieces pieces_of_prefix(std::string_view guid, Tag tag, std::string_view lock_name) {
  if (lock_name.empty()) return {kProtected, guid, "-", text_of(tag), {}};
  return {kProtected, guid, "-", lock_name, kNamedTag};
}

}  // namespace

std::string node_prefix(std::string_view guid, Tag tag, std::string_view lock_name) {
  const Pieces pieces = pieces_of_prefix(guid, tag, lock_name);
  std::size_t size = 0;
  for (const std::string_view piece : pieces) size += piece.size();
  std::string prefix;
  prefix.reserve(size);
  for (const std::string_view piece : pieces) prefix += piece;
  return prefix;
}

bool has_node_prefix(std::string_view child, std::string_view guid, Tag tag,
                     std::string_view lock_name) {
  return std::ranges::all_of(pieces_of_prefix(guid, tag, lock_name), [&](std::string_view piece) {
    if (!child.starts_with(piece)) return false;
    child.remove_prefix(piece.size());
    return true;
  });
}

std::string_view Place::guid() const {
  const bool is_ours = dialect == Dialect::kCurator || dialect == Dialect::kNamed;
  return is_ours ? protected_guid(name) : std::string_view();
}

bool is_candidate(std::string_view child) {
  const std::optional<Place> place = parse_place(child);
  return place && !place->guid().empty() && place->lock_name.empty() &&
         has_node_prefix(child, place->guid(), Tag::kLatch);
}

bool is_lock_name(std::string_view name) {
  if (name.empty() || name.find('/') != std::string_view::npos ||
      name.find(kNamedTag) != std::string_view::npos) {
    return false;
  }
  for (std::size_t i = 0; i < name.size(); ++i) {
    const auto byte = static_cast<unsigned char>(name[i]);
    if (byte < 0x20 || byte == 0x7f) return false;
    // U+0080 to U+009F, control characters as well, which a server refuses in a path.
    if (byte == 0xc2 && i + 1 < name.size() && static_cast<unsigned char>(name[i + 1]) < 0xa0) {
      return false;
    }
  }
  return true;
}

std::string format_guid(std::uint64_t high, std::uint64_t low) {
  high = (high & 0xffffffffffff0fffULL) | 0x0000000000004000ULL;  // Version 4: random.
  low = (low & 0x3fffffffffffffffULL) | 0x8000000000000000ULL;    // The variant of RFC 4122.
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text(kUuidLength, '-');
  std::size_t at = 0;
  for (const std::uint64_t half : {high, low}) {
    for (int shift = 60; shift >= 0; shift -= 4) {
      if (at == 8 || at == 13 || at == 18 || at == 23) ++at;
      text[at++] = kDigits[(half >> static_cast<unsigned>(shift)) & 0xf];
    }
  }
  return text;
}

}  // namespace latchkey::queue
