#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

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
    require(place && place->guid == guid && place->number == 42);
  }
  if (!is_lock_name(text)) return;
  const auto place = parse_place(node_prefix(guid, Tag::kLock, text) + "2147483647");
  require(place && place->guid == guid && place->lock_name == text);
  require(place->dialect == Dialect::kNamed && place->number == 2147483647);
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
  return 0;
}
