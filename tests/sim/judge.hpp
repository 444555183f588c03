#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <vector>

#include "latchkey/token.hpp"
#include "sim/plan.hpp"
#include "sim/steadiness.hpp"
#include "sim/witness.hpp"
#include "testing/world.hpp"
#include "tree/record.hpp"
#include "tree/tree.hpp"

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
  kWatches,      ///< While connected, client and server have the same watches.
  kAwake,        ///< Without faults, whoever is first in a queue does not sleep.
  kLiveness,     ///< When the faults are over everybody gets every lock.
  kDurable,      ///< Nothing is shown that is not in the log, and what was is after a restart.
  kWire,         ///< One answer to each request, in order, behind the events that it shows.
  kReplay,       ///< Every tree is what the log makes of it, after each recovery as well.
  kPermits,      ///< Permits are announced only if they and those before them are no more than all.
  kDelay,        ///< After a holder vanished nobody holds a lock with a delay until it is over.
};
inline constexpr std::size_t kInvariants = 15;
[[nodiscard]] std::string_view name(Invariant invariant);

/// The path of the parent; empty for a child of the root.
[[nodiscard]] std::string parent_of(const std::string& path);
/// What a contender calls its entry, before the server numbers it.
[[nodiscard]] std::string without_number(const std::string& path);

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
  /// Tells the client that it no longer holds; without one, ended() has to follow.
  std::stop_token lost;
  /// When its lease was seen to be over.
  std::optional<Instant> over_since;
  /// It was seen not to believe. A loss is final.
  bool is_lost = false;
};

/// A client's wish for a lock.
struct Wish {
  std::size_t client = 0;
  testing::Process* process = nullptr;
  Instant deadline;  ///< By the process's clock.
  std::vector<Share> shares;
};

/// Looks on and says what is wrong. It builds the queues anew from the records of the log, and sees
/// from the wire who is well: of what the code it judges says about itself nothing excuses anybody
/// whose connection is.
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

  AskId asked(Wish wish);
  enum class Got : std::uint8_t { kNothing, kHold };
  void answered(AskId ask, Got got, std::int64_t session);
  HoldId granted(Announcement announcement);
  /// The holder has been told that it no longer holds.
  void told_lost(HoldId hold);
  void ended(HoldId hold);
  /// The holder is about to use the resource.
  void writes(HoldId hold);
  /// An observer was shown a leader with this token, after one with `last`.
  void shown(std::size_t site, const Token& last, const Token& token);
  /// The client's process has been killed.
  void died(std::size_t client);

  // What the nemesis says.

  /// Its clock is slow or stands still until then: it may believe for too long, and only the fence
  /// protects against it, until whatever it has believed meanwhile has run out.
  void mistrust(const testing::Process& process, Instant until = Instant::max());
  /// Its clock is fast until then, or was put forward: what it waits out may be over too soon.
  void hurries(const testing::Process& process, Instant until = Instant::max());
  /// The server ended it before its time.
  void mistrust(std::int64_t session) { ended_early_.insert(session); }
  /// It could not act from now until then.
  void hindered(const testing::Process& process, Instant until);
  /// Clocks are right and everybody runs, from now on.
  void healed();
  /// Somebody's place in a queue.
  struct Entry {
    std::string path;
    std::int64_t owner = 0;
    bool is_shared = false;
  };
  [[nodiscard]] std::optional<Entry> any_entry();

  // At the end, when nobody wants anything any more.

  /// Now and then.
  void check_followers();
  /// Now and then while there are no faults.
  void check_heads();
  /// `waits`: who still does, when nobody may.
  void check_liveness(const std::string& waits);
  void check_quiet();
  void check_replay();
  void fail(Invariant invariant, std::string what);

  [[nodiscard]] const std::optional<Violation>& violation() const { return violation_; }
  [[nodiscard]] const std::array<std::uint64_t, kInvariants>& checks() const { return checks_; }
  [[nodiscard]] std::uint64_t holds() const { return grants_; }
  [[nodiscard]] std::uint64_t stale_writes() const { return stale_writes_; }
  [[nodiscard]] std::size_t open_asks() const { return asks_.size(); }

  // Observer.

  void on_applied(const testing::LogEntry& entry) override;
  void on_sent(const testing::Message& message) override;
  void on_lost(const testing::Message& message) override;
  void on_arrived(std::uint64_t link, testing::Way way, std::size_t messages) override;
  void on_fault(testing::Fault fault, const testing::Process* process) override;
  void on_recovered(const testing::Recovery& recovery) override;
  void on_over(std::uint64_t link, testing::Over how) override;
  void after_event() override;

 private:
  struct Permit {
    std::int64_t zxid = 0;
    std::int64_t owner = 0;
    std::string waited_for;  ///< Somebody else's entry that was first in the queue in front.
  };
  /// An answer without a hold.
  struct Refusal {
    Instant asked;
    Instant answered;
    std::string entry;  ///< What it was an answer for, without its number; empty if not yet known.
  };
  /// A lock as the log and the announcements show it.
  struct Resource {
    Sort sort = Sort::kMutex;
    int seats = 1;
    std::map<std::int64_t, Entry> queue;           ///< By the zxid of the create.
    std::unordered_map<std::int64_t, Entry> ever;  ///< Every one that has been there.
    std::int64_t head = 0;                         ///< Of the queue, when it was looked at last.
    Instant head_since{};
    /// Those whose turn it is and who seem to sleep, and since when.
    std::map<std::int64_t, Instant> asleep;
    std::vector<HoldId> holds;
    /// Of a semaphore: its permits by their nodes, with the zxid of their create, and the sizes it
    /// has had, each from a zxid on.
    std::map<std::string, Permit> leases;
    std::map<std::string, Permit> past_leases;  ///< Every one that has been there.
    /// Entries that another hand has removed, and whether it was their turn by then.
    std::map<std::string, bool> removed;
    /// How often each session was robbed of a place in front of a semaphore and has not yet taken
    /// permits without one; and what those were called who did.
    std::map<std::int64_t, int> robbed;
    std::set<std::string> excused;
    std::vector<std::pair<std::int64_t, int>> sizes;
    Instant vanished = Instant::min();  ///< When a holder did.
    /// Answers of each session without a hold. What was made for the request is given up, and no
    /// answer is that of two entries.
    std::map<std::int64_t, std::vector<Refusal>> refused;
    Token newest{0};  ///< Of those announced.
    Token newest_exclusive{0};
    Token fence{0};
  };
  struct Ask {
    Wish wish;
    Instant since;  ///< True time.
  };
  struct Suspect {
    std::size_t site = 0;
    std::int64_t session = 0;
    testing::Process* process = nullptr;
    std::string entry;  ///< Without its number.
    Instant wanted;     ///< When the entry was.
    Instant due;        ///< When its answer is here, if it has one.
    std::string what;
  };
  struct Conversation {
    std::size_t server = 0;
    bool is_greeted = false;
    std::deque<std::int32_t> unanswered;
    std::int64_t zxid = 0;
  };

  /// Nobody has a longer time-out, however clocks drift.
  [[nodiscard]] Duration longest_lease() const { return plan_.timeout + plan_.timeout / 50; }
  [[nodiscard]] bool has_slow_clock(const testing::Process& process) const;
  [[nodiscard]] bool has_wrong_clock(const testing::Process& process) const;
  /// When whatever hindered it last was over; long ago if nothing did.
  [[nodiscard]] Instant hindered_until(const testing::Process& process) const;
  [[nodiscard]] bool is_mistrusted(const Announcement& one) const;
  /// Another hand has removed its entry, and it cannot know at once.
  [[nodiscard]] bool is_robbed(const Announcement& one, std::size_t site) const;
  /// Does no other session's entry that excludes this one stand before it?
  [[nodiscard]] static bool has_turn(const Resource& resource, std::int64_t zxid);
  /// May the session take this permit now? Otherwise names who is first in the queue in front.
  [[nodiscard]] static std::string waited_for(Resource& resource, const std::string& permit,
                                              std::int64_t session);
  [[nodiscard]] bool believes(Announcement& one);
  /// The session counts an entry of its own whose hold has ended, if only by its clock, as gone.
  [[nodiscard]] bool is_given_up(const std::string& path, std::int64_t owner, std::int64_t session);
  /// An entry of the session's own that was passed over seems to be one that still waits: the
  /// answer that says otherwise may be under way.
  void suspect(std::size_t site, const Entry& entry, const Announcement& granted);
  void check_suspects();
  /// Has the request that made the entry been answered without a hold?
  [[nodiscard]] bool is_refused(const Suspect& one);
  void check_time(const Announcement& one);
  /// Is it over, by its clock or by its own word? Does not ask for the word when its clock is
  /// enough: whoever is asked notices.
  [[nodiscard]] bool is_over(Announcement& one);
  /// Whose hold is over has been told, or is soon.
  void check_told(Announcement& one);
  /// The session has ended without having been told to, and nobody on it may believe.
  void check_session(std::int64_t session);
  void note_create(const testing::Message& message);
  void check_entry(const Announcement& one, const Share& share);
  void check_queue(const Announcement& one, const Share& share);
  void check_belief(const Announcement& one, const Share& share);
  void check_tokens(const Announcement& one, const Share& share);
  void check_permits(const Announcement& one, const Share& share);
  void check_delay(const Announcement& one, const Share& share);
  void forget(HoldId hold);
  void resized(std::int64_t zxid, const tree::Change& change);
  /// Somebody has left its mark in the directory of a lock with a delay.
  void marked(Resource& resource, const std::string& mark);
  /// Somebody has written under guard.
  void entered(const tree::Change& change);
  /// A session has ended, and took this node with it.
  void taken_along(const std::string& path);
  /// `session`: whose node was created, or who has deleted it.
  void apply_change(std::int64_t zxid, const std::string& path, bool is_create,
                    std::int64_t session);
  void check_tree(const tree::Tree& tree, const std::string& whose);
  /// Whoever's turn it is in a queue holds, or something that will wake it is on its way.
  void check_sleepers();
  using Place = std::pair<const std::int64_t, Entry>;
  /// The first in the queue and, if that is a reader, the readers right behind it.
  [[nodiscard]] static std::vector<const Place*> admissible(const Resource& resource);
  /// Is there a reason to wait, for whoever is first in the queue?
  [[nodiscard]] static bool may_sleep(const Resource& resource);
  [[nodiscard]] bool is_asleep(const Resource& resource, const Place& place);
  [[nodiscard]] bool is_idle(testing::SimHost& host);
  /// Is it connected, everything answered, and no event still to come?
  [[nodiscard]] bool is_at_rest(testing::SimHost& host);
  void check_watches();
  /// How many the server has that it talks to.
  [[nodiscard]] std::size_t watches_there(testing::SimHost& host);
  /// Is the entry one of a multi-lock's, which waits in another queue?
  [[nodiscard]] bool waits_elsewhere(const Resource& resource, std::int64_t zxid);
  /// For people.
  [[nodiscard]] std::string whose(std::int64_t session) const;
  void checked(Invariant invariant) { ++checks_.at(static_cast<std::size_t>(invariant)); }

  testing::World& world_;
  const Plan& plan_;
  std::vector<Resource> resources_;
  std::map<std::string, std::size_t, std::less<>> by_path_;
  std::unordered_map<HoldId, Announcement> holds_;
  std::unordered_map<AskId, Ask> asks_;
  std::map<std::uint64_t, Conversation> conversations_;
  /// Processes by their clocks, and until when those count as wrong.
  using Marks = std::map<std::uint32_t, Instant>;
  Marks slow_;
  Marks fast_;
  std::set<std::int64_t> ended_early_;
  std::set<std::int64_t> over_;            ///< Sessions that have ended.
  std::map<std::string, Instant> wanted_;  ///< When a create of this path was sent first.
  std::vector<Suspect> suspects_;
  std::map<std::string, std::int64_t> ledgers_;  ///< The newest token in each.
  std::set<std::string> announced_;              ///< Every node that was ever a hold's.
  std::set<std::string> unreleased_;             ///< Nodes of holds that nobody has let go of.
  bool wall_clock_is_ahead_ = false;             ///< The leader's, or has been.
  tree::Tree reference_;                         ///< What the log makes of an empty tree.
  /// The same for each follower, as far as it has come.
  struct Copy {
    tree::Tree tree;
    std::uint64_t position = 0;
  };
  std::deque<Copy> copies_;
  Witness witness_{reference_};
  Steadiness steadiness_;
  bool is_recovered_ = false;  ///< And not looked at since.
  Marks hindered_;
  std::int64_t applied_ = 0;  ///< The newest record that is durable.
  std::uint64_t last_ = 0;
  std::uint64_t events_ = 0;
  Instant looked_at_{};    ///< For sleepers.
  Instant listened_at_{};  ///< For those who are told.
  std::uint64_t grants_ = 0;
  std::uint64_t stale_writes_ = 0;
  std::array<std::uint64_t, kInvariants> checks_{};
  std::optional<Violation> violation_;
};

}  // namespace latchkey::sim
