#include "queue/warnings.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>

#include "queue/counter.hpp"

namespace latchkey::queue {
namespace {

/// "a", "a and b", "a, b and c", "a, b, c and 7 more".
std::string enumerate(const std::vector<std::string>& items) {
  constexpr std::size_t kShown = 3;
  const bool cut = items.size() > kShown + 1;
  const std::size_t shown = cut ? kShown : items.size();
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) {
    if (i > 0) text += i + 1 == shown && !cut ? " and " : ", ";
    text += items[i];
  }
  if (cut) text += " and " + std::to_string(items.size() - kShown) + " more";
  return text;
}

std::string_view without_number(const Place& place) {
  const std::size_t width = place.number <= -1'000'000'000 ? 11 : 10;
  return std::string_view(place.name).substr(0, place.name.size() - width);
}

constexpr std::string_view kStockKazoo = "stock kazoo (`__lock__`)";

/// Those who count each other. Entries of a named lock concern nobody else.
std::string_view family(const Place& place) {
  const std::string_view head = without_number(place);
  if (head.ends_with("__lock__") || head.ends_with("__rlock__")) return kStockKazoo;
  if (head.ends_with("__READ__") || head.ends_with("__WRIT__")) {
    return "read-write locks (`__READ__`, `__WRIT__`)";
  }
  if (place.dialect == Dialect::kRust) return "the Rust crate zookeeper-async";
  if (place.dialect == Dialect::kZooKeeper) return "ZooKeeper's own recipes (`x-`, `n_`)";
  if (place.dialect == Dialect::kPegasus) return "Pegasus (`LOCKNODE`)";
  if (head.ends_with("latch-")) return "leader latches (`-latch-`)";
  if (head.ends_with("lease-")) return "semaphores (`-lease-`)";
  if (head.ends_with("lock-")) return "mutexes (`-lock-`)";
  return "hand-made locks";
}

void warn_of_strangers(std::span<const Place> contenders, std::vector<std::string>& out) {
  std::set<std::string> families;
  for (const Place& place : contenders) {
    if (place.lock_name.empty()) families.emplace(family(place));
  }
  if (families.size() < 2) return;
  std::string sentence = "Entries of " + enumerate({families.begin(), families.end()}) +
                         " are in one directory and do not all see each other: two may hold at "
                         "once.";
  if (families.contains(std::string(kStockKazoo))) {
    sentence += " In Python use the classes of interop/kazoo, in every program on this path.";
  }
  out.push_back(std::move(sentence));
}

/// The number as go-zookeeper finds it: behind the last `lock-`, or else behind the last `__`.
bool go_reads(std::string_view name) {
  std::size_t at = name.rfind("lock-");
  at = at != std::string_view::npos ? at + 5 : name.rfind("__");
  if (at == std::string_view::npos) return false;
  std::string_view number = name.substr(at);
  while (number.starts_with('_')) number.remove_prefix(1);
  if (number.starts_with('-')) number.remove_prefix(1);
  return !number.empty() &&
         std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// Clients that count every child, whatever its name.
void warn_of_stumbling(std::span<const Place> contenders, std::span<const std::string> foreign,
                       std::vector<std::string>& out) {
  const auto has = [&](Dialect dialect) {
    return std::any_of(contenders.begin(), contenders.end(),
                       [&](const Place& place) { return place.dialect == dialect; });
  };
  std::vector<std::string> names(foreign.begin(), foreign.end());
  for (const Place& place : contenders) names.push_back(place.name);
  const auto those = [&](auto&& predicate) {
    std::vector<std::string> found;
    std::copy_if(names.begin(), names.end(), std::back_inserter(found), predicate);
    return found;
  };

  const auto unread = those([](const std::string& name) { return !go_reads(name); });
  if (has(Dialect::kGo) && !unread.empty()) {
    out.push_back("go-zookeeper refuses to lock where it finds a name it cannot read: " +
                  enumerate(unread) + ".");
  }
  const auto bare =
      those([](const std::string& name) { return name.find('-') == std::string::npos; });
  if (has(Dialect::kZooKeeper) && !bare.empty()) {
    out.push_back("ZooKeeper's C recipe crashes on a name without a hyphen: " + enumerate(bare) +
                  ".");
  }
  // It sorts by what stands behind the last `lock-`, or by the whole name, as text.
  std::vector<std::string> in_front;
  std::copy_if(foreign.begin(), foreign.end(), std::back_inserter(in_front),
               [](const std::string& name) { return !name.empty() && name.front() <= '9'; });
  if (has(Dialect::kCurator) && !in_front.empty()) {
    out.push_back("Curator counts every child and may wait for one that never leaves: " +
                  enumerate(in_front) + ". Remove it if it belongs to nobody.");
  }
}

void warn_of_numbers(std::span<const Place> contenders, std::vector<std::string>& out) {
  std::map<std::int32_t, std::vector<const Place*>> by_number;
  for (const Place& place : contenders) by_number[place.number].push_back(&place);
  for (const auto& [number, places] : by_number) {
    // A writer that turns into a reader keeps its number.
    const bool downgrade = places.size() == 2 && places[0]->read_write && places[1]->read_write &&
                           places[0]->share != places[1]->share;
    if (places.size() < 2 || downgrade) continue;
    out.push_back("Several entries carry the number " + std::to_string(number) + ": " +
                  enumerate({places[0]->name, places[1]->name}) +
                  ". The directory's counter has ended and its order cannot be trusted: stop its "
                  "users and remove the directory.");
    break;
  }
  const auto spent = std::find_if(contenders.begin(), contenders.end(),
                                  [](const Place& place) { return is_spent(place.number); });
  if (spent != contenders.end()) {
    out.push_back("The directory's counter nears its end or has passed it (" + spent->name +
                  "). Latchkey makes the directory anew as soon as it is empty; other clients do "
                  "not, and beyond the end their order is lost.");
  }
}

/// Other clients look for their tag anywhere in the name.
void warn_of_lock_names(std::span<const Place> contenders, std::vector<std::string>& out) {
  std::set<std::string> odd;
  for (const Place& place : contenders) {
    const std::string& name = place.lock_name;
    if (name.find("lock-") != std::string::npos || name.find("__") != std::string::npos) {
      odd.insert("\"" + name + "\"");
    }
  }
  if (odd.empty()) return;
  out.push_back("The lock name " + enumerate({odd.begin(), odd.end()}) +
                " contains what other clients take for the beginning of the number: Curator and "
                "go-zookeeper misread its entries.");
}

}  // namespace

std::vector<std::string> warnings(std::span<const Place> contenders,
                                  std::span<const std::string> foreign,
                                  std::span<const std::string> lasting) {
  std::vector<std::string> out;
  warn_of_strangers(contenders, out);
  warn_of_stumbling(contenders, foreign, out);
  warn_of_numbers(contenders, out);
  warn_of_lock_names(contenders, out);
  if (!lasting.empty()) {
    out.push_back("Not ephemeral, so nobody will remove it if its owner is gone: " +
                  enumerate({lasting.begin(), lasting.end()}) + ".");
  }
  return out;
}

}  // namespace latchkey::queue
