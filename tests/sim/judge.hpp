#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "latchkey/token.hpp"
#include "sim/plan.hpp"
#include "testing/world.hpp"

namespace latchkey::sim {

/// What must never be seen. The numbers are those of the list in docs/testing.md.
enum class Invariant : std::uint8_t {
  kServerOrder,  ///< A hold is announced only with a node that was the session's own and first.
  kBelief,       ///< Holders that exclude each other never believe at the same time.
  kTokens,       ///< Tokens grow from hold to hold.
  kFence,        ///< A holder that believes is never refused by the fenced store.
  kOneOutcome,   ///< Every request ends once, and by its deadline.
  kNoOrphan,     ///< When all is over nobody's node is left.
  kNoWatch,      ///< Nor a watch, on either side.
  kAwake,        ///< Without faults, whoever is first in a queue does not sleep.
  kLiveness,     ///< When the faults are over everybody gets every lock.
  kDurable,      ///< What was applied is there after a restart.
  kWire,         ///< One answer to each request, in order; zxids on a connection never go back.
  kReplay,       ///< After recovery the tree is what it was; followers end with the leader's.
};
inline constexpr std::size_t kInvariants = 12;
[[nodiscard]] std::string_view name(Invariant invariant);

struct Violation {
  Invariant invariant = Invariant::kBelief;
  std::string what;
  Instant at;
};

/// What a hold takes of a site: so many of its seats. A mutex has one, a read-write lock very many,
/// all of which a writer takes.
struct Share {
  std::size_t site = 0;
  int seats = 1;
  bool is_shared = false;  ///< A reader's.
};
inline constexpr int kAllSeats = 1'000;

/// A client's word that it holds.
struct Announcement {
  std::size_t client = 0;
  testing::Process* process = nullptr;
  std::int64_t session = 0;
  std::vector<Share> shares;
  Token token{0};
  std::vector<std::string> nodes;
  bool goes_on = false;  ///< A writer that reads on: its token is not a new one.
  /// By the client's own clock, at any time.
  std::function<bool()> believes;
};

/// Looks on and says what is wrong. It shares nothing with the code it judges but the records of
/// the log, from which it builds the queues anew.
///
/// Thread safety: one thread at a time.
class Judge final : public testing::Observer {
 public:
  Judge(testing::World& world, const Plan& plan);
  /// Leases that are still announced go, and nobody looks on any more.
  ~Judge() override { world_.unwatch(*this); }

  using HoldId = std::uint64_t;
  using AskId = std::uint64_t;

  // What clients say.

  /// `deadline` by the process's clock.
  AskId asked(std::size_t client, testing::Process& process, Instant deadline);
  void answered(AskId ask);
  HoldId granted(Announcement announcement);
  void ended(HoldId hold);
  /// The holder is about to use the resource.
  void writes(HoldId hold);
  /// The client's process has been killed.
  void died(std::size_t client);

  // What the nemesis says.

  /// Its clock is no longer to be relied on; only the fence protects against it.
  void mistrust(const testing::Process& process) { mistrusted_.push_back(process.id()); }
  /// The server ended it before its time.
  void mistrust(std::int64_t session) { ended_early_.insert(session); }
  /// It could not act from now until then.
  void hindered(const testing::Process& process, Instant until);

  // At the end, when nobody wants anything any more.

  /// Now and then while there are no faults.
  void check_heads();
  void check_quiet();
  void check_replay();
  void fail(Invariant invariant, std::string what);

  [[nodiscard]] const std::optional<Violation>& violation() const { return violation_; }
  [[nodiscard]] const std::array<std::uint64_t, kInvariants>& checks() const { return checks_; }
  [[nodiscard]] std::uint64_t holds() const { return grants_; }
  [[nodiscard]] std::uint64_t stale_writes() const { return stale_writes_; }
  [[nodiscard]] std::size_t open_asks() const { return asks_.size(); }
  [[nodiscard]] bool is_believed(std::size_t client);

  // Observer.

  void on_applied(const testing::LogEntry& entry) override;
  void on_sent(const testing::Message& message) override;
  void on_recovered(bool lost) override;

 private:
  struct Entry {
    std::string path;
    std::int64_t owner = 0;
    bool is_shared = false;
  };
  /// A lock as the log and the announcements show it.
  struct Resource {
    Sort sort = Sort::kMutex;
    int seats = 1;
    std::map<std::int64_t, Entry> queue;  ///< By the zxid of the create.
    std::int64_t head = 0;                ///< Of the queue, when it was looked at last.
    Instant head_since{};
    std::vector<HoldId> holds;
    Token newest{0};  ///< Of those announced.
    Token newest_exclusive{0};
    Token fence{0};
  };
  struct Ask {
    std::size_t client = 0;
    testing::Process* process = nullptr;
    Instant deadline;
    Instant since;  ///< True time.
  };
  struct Conversation {
    std::deque<std::int32_t> unanswered;
    std::int64_t zxid = 0;
  };

  [[nodiscard]] bool is_mistrusted(const Announcement& one) const;
  [[nodiscard]] bool believes(const Announcement& one);
  void check_queue(const Announcement& one, const Share& share);
  void check_belief(const Announcement& one, const Share& share);
  void check_tokens(const Announcement& one, const Share& share);
  void apply_change(std::int64_t zxid, const std::string& path, bool is_create, std::int64_t owner);
  [[nodiscard]] std::string picture();
  void checked(Invariant invariant) { ++checks_.at(static_cast<std::size_t>(invariant)); }

  testing::World& world_;
  const Plan& plan_;
  std::vector<Resource> resources_;
  std::map<std::string, std::size_t, std::less<>> by_path_;
  std::unordered_map<HoldId, Announcement> holds_;
  std::unordered_map<AskId, Ask> asks_;
  std::map<std::uint64_t, Conversation> conversations_;
  std::vector<std::uint32_t> mistrusted_;
  std::set<std::int64_t> ended_early_;
  std::map<std::uint32_t, Instant> hindered_until_;
  std::int64_t applied_ = 0;  ///< The newest record that is durable.
  std::uint64_t last_ = 0;
  std::uint64_t grants_ = 0;
  std::uint64_t stale_writes_ = 0;
  std::array<std::uint64_t, kInvariants> checks_{};
  std::optional<Violation> violation_;
};

}  // namespace latchkey::sim
