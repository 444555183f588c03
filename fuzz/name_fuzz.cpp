#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "queue/admission.hpp"
#include "queue/node_name.hpp"
#include "queue/owner.hpp"

using namespace latchkey::queue;

namespace {

void require(bool it_holds) {
  if (!it_holds) std::abort();
}

/// Whatever a directory lists is read or refused; what is read keeps its name.
void read_any_name(const std::string& child) {
  const auto place = parse_place(child);
  if (place) {
    require(place->name == child);
    require(place->lock_name.empty() || is_lock_name(place->lock_name));
    require(admit({&*place, 1}, *place).holds());
  }
  const auto extra = parse_place(child, {"_", "", "-job-"});
  require(!place || extra == place);
}

/// What we format comes back as it was, with any lock name that is allowed.
void read_our_own(const std::string& text) {
  const std::string guid = format_guid(text.size() * 0x9e3779b97f4a7c15ULL, text.size());
  for (const Tag tag : {Tag::kLock, Tag::kRead, Tag::kWrite, Tag::kLatch, Tag::kLease}) {
    const auto place = parse_place(node_prefix(guid, tag) + "0000000042");
    require(place && place->guid() == guid && place->number == 42);
  }
  if (!is_lock_name(text)) return;
  const auto place = parse_place(node_prefix(guid, Tag::kLock, text) + "2147483647");
  require(place && place->guid() == guid && place->lock_name == text);
  require(place->dialect == Dialect::kNamed && place->number == 2147483647);
}

/// A directory of any children: who may hold excludes nobody else who may, whatever their order in
/// the list.
void read_a_directory(std::string_view text) {
  std::vector<Place> queue;
  constexpr std::size_t kMost = 40;
  while (!text.empty() && queue.size() < kMost) {
    const std::string_view child = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), child.size() + 1));
    const auto place = parse_place(child);
    const bool is_new = place && std::ranges::find(queue, place->name, &Place::name) == queue.end();
    if (is_new) queue.push_back(*place);
  }
  std::vector<Place> backwards(queue.rbegin(), queue.rend());
  std::vector<const Place*> holders;
  for (const Place& place : queue) {
    const Admission admission = admit(queue, place);
    const Admission again = admit(backwards, place);
    require(again.broken == admission.broken);
    require(std::ranges::is_permutation(again.ahead, admission.ahead));
    for (const std::string& name : admission.ahead) {
      const auto other = std::ranges::find(queue, name, &Place::name);
      require(other != queue.end() && other->number <= place.number);
    }
    if (admission.holds()) holders.push_back(&place);
  }
  for (const Place* const one : holders) {
    for (const Place* const other : holders) {
      const bool is_rival = one != other && one->lock_name == other->lock_name;
      require(!is_rival || (one->share == Share::kShared && other->share == Share::kShared));
    }
  }
}

void read_owners(const std::string& text) {
  (void)parse_owner(text);
  (void)parse_owner("latchkey/1\n" + text);
  const Owner owner{text, static_cast<std::int64_t>(text.size()), text, "", text};
  require(parse_owner(format_owner(owner)) == owner);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  read_any_name(text);
  read_our_own(text);
  read_owners(text);
  read_a_directory(text);
  return 0;
}
