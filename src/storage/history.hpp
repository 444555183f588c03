#pragma once

#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "storage/journal.hpp"
#include "storage/number.hpp"

namespace latchkey::storage {

/// For tests: a state that forgets nothing, so that what is lost, doubled or out of order shows.
class History final : public State {
 public:
  struct Event {
    std::int64_t zxid = 0;
    std::string bytes;

    friend bool operator==(const Event&, const Event&) = default;
    friend std::ostream& operator<<(std::ostream& out, const Event& event) {
      return out << event.zxid << ":" << event.bytes.size();
    }
  };

  Result<void> load(std::string_view item) override {
    events.push_back({get_number<std::int64_t>(item.data()), std::string(item.substr(8))});
    return {};
  }

  Result<void> replay(const Entry& entry) override {
    events.push_back({entry.zxid, std::string(entry.bytes)});
    return {};
  }

  void save(base::FunctionRef<void(std::string_view item)> sink) const override {
    for (const Event& event : events) {
      std::string item(8, '\0');
      put_number(item.data(), event.zxid);
      sink(item + event.bytes);
    }
  }

  std::vector<Event> events;
};

/// The batch that `events` make.
inline std::vector<Entry> entries_of(const std::vector<History::Event>& events) {
  std::vector<Entry> entries;
  for (const History::Event& event : events) entries.push_back({event.zxid, event.bytes});
  return entries;
}

}  // namespace latchkey::storage
