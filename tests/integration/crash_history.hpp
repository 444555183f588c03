#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace latchkey::test_support {

/// One client's folder on the server, as it becomes request by request. Only that client writes
/// there and its requests are carried out in order, so whatever anybody ever sees of the folder is
/// one of these states. No two of them are equal: each has another mark or another cversion.
///
///     history.ask(next);            // Sent; whether it is carried out shows later.
///     history.answer();             // The oldest of those without an answer has one.
///     history.settle(state_found);  // After a crash. What lies behind it never happened.
///
/// Thread safety: one thread at a time.
class History {
 public:
  struct Node {
    std::string data;
    bool ephemeral = false;
    friend bool operator==(const Node&, const Node&) = default;
  };
  struct State {
    std::map<std::string, Node> nodes;  ///< By their names.
    std::int64_t creates = 0;           ///< In this folder, ever: the next sequence number.
    std::size_t closes = 0;             ///< How many sessions the client has closed.

    /// Creates and deletes together.
    [[nodiscard]] std::int32_t cversion() const {
      return static_cast<std::int32_t>(2 * creates - static_cast<std::int64_t>(nodes.size()));
    }
    [[nodiscard]] std::set<std::string> names() const {
      std::set<std::string> result;
      for (const auto& [name, node] : nodes) result.insert(name);
      return result;
    }
  };

  /// What somebody has seen of the folder.
  struct Seen {
    enum class What { kList, kMark, kCreated, kDeleted, kMarkChanged } what;
    std::set<std::string> names;  ///< kList: all of them.
    std::string text;             ///< kMark: its data; kCreated and kDeleted: a name.
    std::size_t count = 0;        ///< kMarkChanged: so many times since the last settle().
    std::int32_t cversion = 0;    ///< kList.
  };

  explicit History(State first) : states_{std::move(first)} {}

  [[nodiscard]] const State& newest() const { return states_.back(); }
  [[nodiscard]] const State& at(std::size_t index) const { return states_.at(index); }
  [[nodiscard]] std::size_t asked() const { return states_.size() - 1; }
  [[nodiscard]] std::size_t answered() const { return answered_; }
  void ask(State next) { states_.push_back(std::move(next)); }
  void answer() { ++answered_; }

  /// The first state at which this could be seen; nothing if it never could.
  [[nodiscard]] std::optional<std::size_t> first(const Seen& seen) const {
    std::size_t changes = 0;
    for (std::size_t i = 0; i < states_.size(); ++i) {
      if (i > 0) changes += mark(i) == mark(i - 1) ? 0U : 1U;
      const bool has = states_[i].nodes.contains(seen.text);
      const bool had = i > 0 && states_[i - 1].nodes.contains(seen.text);
      switch (seen.what) {
        case Seen::What::kList:
          if (states_[i].cversion() == seen.cversion && states_[i].names() == seen.names) return i;
          break;
        case Seen::What::kMark:
          if (mark(i) == seen.text) return i;
          break;
        case Seen::What::kCreated:
          if (has) return i;
          break;
        case Seen::What::kDeleted:
          if (had && !has) return i;
          break;
        case Seen::What::kMarkChanged:
          if (changes == seen.count) return i;
          break;
      }
    }
    return std::nullopt;
  }

  /// The state with these nodes and this cversion.
  [[nodiscard]] std::optional<std::size_t> find(const std::map<std::string, Node>& nodes,
                                                std::int32_t cversion) const {
    const auto same = [&](const State& state) {
      return state.cversion() == cversion && state.nodes == nodes;
    };
    const auto found = std::find_if(states_.begin(), states_.end(), same);
    if (found == states_.end()) return std::nullopt;
    return static_cast<std::size_t>(found - states_.begin());
  }

  void settle(std::size_t index) {
    states_ = {State(states_.at(index))};
    answered_ = 0;
  }

 private:
  [[nodiscard]] const std::string& mark(std::size_t index) const {
    return states_[index].nodes.at("mark").data;
  }

  std::vector<State> states_;
  std::size_t answered_ = 0;
};

}  // namespace latchkey::test_support
