#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "testing/world_options.hpp"
#include "tree/record.hpp"
#include "tree/tree.hpp"
#include "wire/messages.hpp"

namespace latchkey::sim {

/// Holds what connections are shown against the log: nothing that is not in it, of the leader's
/// reads nothing but what it makes of an empty tree, and no answer before the events whose cause it
/// shows (P3). It knows which watches are set from what was asked and answered, and which have to
/// fire from the log.
///
///     witness.applied(record);
///     if (const auto wrong = witness.sent(message)) fail(wrong->is_undurable ? ..., wrong->what);
///
/// Not looked at: persistent watches, which no lock sets; what followers read, beyond that it is
/// in the log; times and counts of a stat.
/// Thread safety: one thread at a time.
class Witness {
 public:
  enum class On : std::uint8_t { kNode, kChildren };
  using Watch = std::pair<std::string, On>;
  /// With how many requests have asked for each since it was last set anew: as many may wait for
  /// it.
  using Watches = std::map<Watch, std::size_t>;

  struct Wrong {
    bool is_undurable = false;  ///< Otherwise events and answers are in the wrong order.
    std::string what;
  };

  /// `reference`: what the log makes of an empty tree, up to the record that was applied last.
  explicit Witness(const tree::Tree& reference) : reference_(reference) {}

  void applied(const tree::Record& record);
  [[nodiscard]] std::optional<Wrong> sent(const testing::Message& message);
  void over(std::uint64_t link);
  /// Has an event for the connection still to come?
  [[nodiscard]] bool owes(std::uint64_t link) const {
    const auto talk = talks_.find(link);
    return talk != talks_.end() && !talk->second.due.empty();
  }
  /// Those that are set on the connection. Null if its beginning was not seen.
  [[nodiscard]] const Watches* watches_of(std::uint64_t link) const {
    const auto talk = talks_.find(link);
    return talk == talks_.end() ? nullptr : &talk->second.set;
  }
  /// So many replies and events were held against the log.
  [[nodiscard]] std::uint64_t looked_at() const { return looked_at_; }

 private:
  /// The newest record that did something to a path; 0: none has.
  struct Marks {
    std::int64_t created = 0;
    std::int64_t deleted = 0;
    std::int64_t changed = 0;
    std::int64_t children = 0;
  };
  struct Request {
    std::int32_t xid = 0;
    wire::Op op = wire::Op::kError;
    std::string path;
    std::vector<Watch> watches;  ///< That it sets, or takes away.

    [[nodiscard]] bool restores() const {
      return op == wire::Op::kSetWatches || op == wire::Op::kSetWatches2;
    }
  };
  struct Talk {
    std::uint64_t client = 0;
    std::deque<Request> requests;
    std::map<Watch, std::int64_t> due;  ///< Events that have to come, with their cause.
    Watches set;
  };

  void ask(const testing::Message& message);
  void fire(const std::string& path, On on, std::int64_t zxid);
  /// False: it fires at once.
  bool arm(std::uint64_t link, Talk& talk, const Watch& watch, std::int64_t zxid);
  void set(std::uint64_t link, Talk& talk, const Request& request, std::int64_t zxid);
  void disarm(std::uint64_t link, Talk& talk, const Watch& watch, std::int64_t zxid);
  [[nodiscard]] std::optional<Wrong> event(Talk& talk, const testing::Message& message);
  [[nodiscard]] std::optional<Wrong> answer(Talk& talk, const testing::Message& message);
  /// Does it show something that is not in the log?
  [[nodiscard]] bool is_dirty(const Request& request, const testing::Message& message) const;
  /// Does a read of the leader show something else than what is there?
  [[nodiscard]] bool is_false(const Request& request, const testing::Message& message) const;
  [[nodiscard]] bool has_been(const std::string& path) const;

  const tree::Tree& reference_;
  std::int64_t applied_ = 0;
  std::unordered_map<std::string, Marks> marks_;
  std::map<Watch, std::set<std::uint64_t>> armed_;
  std::unordered_map<std::uint64_t, Talk> talks_;
  std::unordered_map<std::uint64_t, Watches> before_;  ///< On the last connection of each client.
  std::uint64_t looked_at_ = 0;
};

}  // namespace latchkey::sim
