#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "integration/mutex_fixture.hpp"
#include "latchkey/election.hpp"

namespace latchkey::test_support {

/// What a candidate was told, and when, and the moments when its terms were over.
/// Thread safety: any thread.
class Diary {
 public:
  struct Entry {
    ElectionNews news;
    Instant at;
  };

  /// Options that keep this diary. What else on_change has to do comes after.
  [[nodiscard]] ElectionOptions kept(ElectionOptions options = {}) const {
    options.on_change = [diary = *this, then = options.on_change](const ElectionNews& news) {
      diary.entries_.add({news, BootClock::now()});
      if (then) then(news);
    };
    return options;
  }

  [[nodiscard]] std::vector<Entry> all() const { return entries_.all(); }
  [[nodiscard]] bool reaches(ElectionState state, std::size_t times = 1) const {
    return eventually([&] { return count(state) >= times; }, deadline_in(40s));
  }
  [[nodiscard]] std::size_t count(ElectionState state) const {
    std::size_t found = 0;
    for (const Entry& entry : all()) found += entry.news.state == state ? 1 : 0;
    return found;
  }
  /// The last time this was said.
  [[nodiscard]] Entry last(ElectionState state) const {
    std::optional<Entry> found;
    for (const Entry& entry : all()) {
      if (entry.news.state == state) found = entry;
    }
    if (!found) throw std::runtime_error("never told " + std::string(name(state)));
    return *found;
  }
  [[nodiscard]] std::vector<ElectionState> states() const {
    std::vector<ElectionState> states;
    for (const Entry& entry : all()) states.push_back(entry.news.state);
    return states;
  }

 private:
  Recorder<Entry> entries_;
};

/// A suite over every kind of service, each test with a directory of its own.
///
/// What is waited for here may have to wait for the end of a session first, or for that of a rest.
class ElectionTest : public MutexTest {
 protected:
  /// Rests so short that a test need not wait for them.
  [[nodiscard]] static ElectionOptions restless(std::string id) {
    return {.id = std::move(id), .min_pause = std::chrono::milliseconds(1)};
  }
  [[nodiscard]] static bool leads(const Election& election) {
    return eventually([&] { return election.state() == ElectionState::kLeading; },
                      deadline_in(40s));
  }
  /// The ids of the candidates, in order of arrival.
  [[nodiscard]] std::vector<std::string> candidates() {
    std::vector<std::string> ids;
    for (const std::string& name : witness.queue(directory)) {
      const auto node = witness.session().get(directory + "/" + name, soon());
      // What comes behind the first line is not the id.
      if (node) ids.push_back(node->data.substr(0, node->data.find('\n')));
    }
    return ids;
  }
  [[nodiscard]] bool candidates_become(const std::vector<std::string>& ids) {
    return eventually([&] { return candidates() == ids; }, deadline_in(40s));
  }
};

/// Observers of elections, for the same services.
class LeaderTest : public ElectionTest {};

}  // namespace latchkey::test_support
