#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/box.hpp"
#include "latchkey/error.hpp"
#include "queue/admission.hpp"
#include "queue/entry_machine.hpp"
#include "queue/farewell.hpp"
#include "queue/messages.hpp"
#include "queue/parent_maker.hpp"

namespace latchkey::queue {

enum class Wait : std::uint8_t { kYes, kNo };

/// When a waiter that was woken lists again.
enum class Relist : std::uint8_t {
  kWhenNeeded,  ///< Only if the deletions it saw do not already prove that it is first (P4).
  kAlways,      ///< On every wake.
};

/// What a waiter watches.
enum class Watching : std::uint8_t {
  kNearest,    ///< The nearest entry that stands in its way.
  kDirectory,  ///< The directory: it lists again on every change (the herd, on purpose).
};

/// What ends a hold that nobody lets go.
enum class Until : std::uint8_t {
  kLeaseEnds,  ///< The lease, by the local clock, if not the node or the session before it.
  kNodeGoes,   ///< Only those: it is a place before something else, and nobody acts on it alone.
};

/// What to do in a directory whose counter nears its end (H35).
enum class Spent : std::uint8_t {
  kDrain,  ///< Leave the queue, wait until the directory is empty, make it anew.
  kFail,   ///< With kCounterExhausted.
};

/// What to do when the directory is missing.
enum class Missing : std::uint8_t {
  kMake,  ///< It, and whatever is missing above it.
  kFail,  ///< With kNoNode.
};

/// One attempt at a lock, from the first create to the last delete, as a machine without I/O:
/// events in, actions out. It decides everything that is hard about a lock: what an answer proves,
/// whom to watch, when it is first, what it owes. docs/architecture.md has the road,
/// docs/hazards.md the dangers each rule answers.
///
///     Contender contender({.directory = "/locks/a"}, guids);
///     carry_out(contender.step(event::Start{}));
///
/// Exactly one of Grant and Fail comes out, once, and once more for a Downgrade; after a Grant at
/// most one Lose; Done comes last,
/// when nothing of the attempt is left on the server but debts of the session.
///
/// Thread safety: one thread at a time.
class Contender : EntryMachine<Action> {
 public:
  struct Options {
    std::string directory = {};
    Tag tag = Tag::kLock;
    std::string lock_name = {};                ///< See is_lock_name().
    std::vector<std::string> extra_tags = {};  ///< See parse_place().
    Wait wait = Wait::kYes;                    ///< kNo: fail with kBusy instead of waiting.
    Relist relist = Relist::kWhenNeeded;
    Watching watching = Watching::kNearest;
    Spent spent = Spent::kDrain;
    Until until = Until::kLeaseEnds;
    Missing missing = Missing::kMake;
    /// With at least as many left ahead it looks for its neighbour's farewell before it lists, and
    /// whoever has looked says one. Of use among those who exclude each other and nobody besides.
    std::size_t farewell_from = kNever;
  };
  static constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();

  Contender(std::shared_ptr<const Options> options, GuidSource guids);
  Contender(Options options, GuidSource guids)
      : Contender(std::make_shared<const Options>(std::move(options)), std::move(guids)) {}

  [[nodiscard]] std::vector<Action> step(Event event);

  [[nodiscard]] const Options& options() const { return *options_; }

  /// Is this the node it waits or holds with?
  [[nodiscard]] bool is_own(std::string_view name) const { return own_ && own_->name == name; }

  /// Has it a node in the queue, as far as it knows?
  [[nodiscard]] bool has_place() const { return own_.has_value(); }
  [[nodiscard]] const std::optional<Place>& place() const { return own_; }

  /// For people and tests: "entering", "waiting for _c_…", "holding", ...
  [[nodiscard]] std::string describe() const;
  /// Whom it waits for, as a sentence; empty while it waits for nobody.
  [[nodiscard]] std::string why_it_waits() const;

 private:
  friend struct ContenderProbe;  ///< Tests look inside to tell states apart.

  enum class Phase : std::uint8_t {
    kNew,        ///< Not started.
    kEntering,   ///< Create and list are out; the create is unanswered or the pair undecided.
    kMaking,     ///< A missing directory level is being created.
    kPausing,    ///< Backing off; `after_pause_` says what comes next.
    kSearching,  ///< Sync and list are out, to learn what became of a create (P7).
    kLooking,    ///< Whose are the nodes that carry our guid?
    kListing,    ///< Our node is known, a list will decide.
    kWaiting,    ///< Behind the places in `ahead_`, the nearest of them watched.
    kReading,    ///< The nearest has left: as the holder?
    kProving,    ///< First in line; the lease is being proven.
    kHolding,
    kExchanging,  ///< From a writer's entry to a reader's, in one transaction.
    kDraining,    ///< The counter nears its end: waiting for an empty directory (H35).
    kDone,
  };
  enum class AfterPause : std::uint8_t { kMake, kEnter, kSearch, kList, kDrain, kExchange };
  /// The requests whose answers still matter; 0: none.
  struct Asks {
    Ask create = 0;
    Ask list = 0;
    Ask sync = 0;
    Ask make = 0;
    Ask remove = 0;
    Ask watch = 0;
    Ask own_watch = 0;
    Ask prove = 0;
    Ask pause = 0;
    Ask exchange = 0;
    Ask look = 0;
    Ask farewell = 0;
  };

  void on(const event::Start&);
  void on(const event::Created& created);
  void on(event::Listed& listed);
  void on(const event::Synced& synced);
  void on(const event::Made& made);
  void on(const event::Removed& removed);
  void on(const event::Looked& looked);
  void on(const event::Watched& watched);
  void on(const event::FarewellRead& read);
  void on(const event::Gone& gone);
  void on(const event::Touched& touched);
  void on(const event::Foreseen& foreseen);
  void on(const event::DirectoryChanged&);
  void on(const event::Behind& behind) { behind_.emplace(behind.name); }
  void on(const event::Proved& proved);
  void on(const event::Resumed& resumed);
  void on(const event::Heartbeat&);
  void on(const event::LeaseOver&);
  void on(const event::SessionOver& over);
  void on(const event::Cancel& cancel);
  void on(const event::Release&);
  void on(const event::Downgrade&);
  void on(const event::Exchanged& exchanged);

  // Entering (contender.cpp).
  void enter();
  void settle_pair();
  void list_refused(const Answer& answer);
  void make_parents();
  void make(ParentMaker::Next next);
  void pause(AfterPause next);
  void relist();
  void ask_list(bool may_wait = false);

  // Identity (contender_identity.cpp).
  void search();
  void settle_search();
  void search_refused(const std::string& what, Code code);
  void identify();
  void settle_identity();
  void keep_lowest(const std::vector<Traces::Trace>& ours);

  // Deciding and waiting (contender.cpp).
  void decide();
  void note_who_came_later(std::vector<Place>& places);
  void be_first();
  void wait_behind();
  /// `left`: the neighbour that has left, by its czxid; 0: somebody else, or nobody knows.
  void advance(std::int64_t left = 0);
  void own_watched(const Answer& answer);
  void watch_own();
  void watch_nearest();
  void drop_watch();
  void drop_own_watch();
  void prove();
  void grant();

  // Farewells (contender_farewell.cpp).
  [[nodiscard]] bool may_have_said_farewell(std::int64_t left) const;
  void read_farewell(std::int64_t left);
  [[nodiscard]] std::optional<Farewell> farewell() const;

  // Draining (contender_drain.cpp).
  void drain();
  void list_to_drain();
  void drain_listed(const Answer& answer);
  void start_over();
  void drop_directory_watch();
  [[nodiscard]] std::string why_not_drained() const;

  // Downgrading (contender_downgrade.cpp).
  void exchange();
  void look_at_exchanged();
  void exchanged_looked(const event::Looked& looked);
  void exchanged_for(std::int64_t czxid);
  void exchange_lost(Code code, const std::string& why);
  /// Holds still, while a second answer is to come.
  [[nodiscard]] bool is_downgrading() const { return downgrading_ && outcome_ == Outcome::kOpen; }
  /// An exchange is on its way, or will be asked for again: either of the two entries may be there.
  [[nodiscard]] bool is_exchanging() const {
    return phase_ == Phase::kExchanging ||
           (phase_ == Phase::kPausing && after_pause_ == AfterPause::kExchange);
  }
  [[nodiscard]] std::string reader_name() const;

  // Ending (contender_end.cpp).
  void own_is_gone();
  void leave();
  void owe_own();
  void bequeath();
  void finish();

  [[nodiscard]] std::string prefix() const;
  [[nodiscard]] bool has_prefix(std::string_view child) const;
  [[nodiscard]] bool counts_the_gone() const;
  [[nodiscard]] bool shortcut_is_sound() const;

  std::shared_ptr<const Options> options_;  ///< Perhaps those of many.
  Tag tag_;                                 ///< Theirs, until a downgrade.
  Phase phase_ = Phase::kNew;
  AfterPause after_pause_ = AfterPause::kEnter;
  bool downgrading_ = false;           ///< See is_downgrading().
  std::optional<std::int64_t> token_;  ///< Once granted.
  Asks asks_;

  std::optional<Place> own_;

  // The last answers of the list and of what went with it.
  std::optional<Answer> create_answer_;
  std::optional<Answer> list_answer_;
  std::optional<Answer> sync_answer_;
  std::vector<std::string> children_;
  bool fresh_ = true;              ///< See event::Listed.
  bool whole_ = true;              ///< See event::Listed.
  base::Box<std::string> behind_;  ///< See event::Behind.

  // Waiting.
  std::vector<std::string> ahead_;  ///< Not known to be gone, the nearest last (P4's set A).
  bool may_downgrade_ = false;      ///< See Admission.
  bool was_first_ = false;          ///< In the last list.
  bool too_many_behind_ = false;    ///< There, to be left to an heir.
  std::int32_t last_ = 0;           ///< The largest number in there.
  std::vector<std::string>
      after_;            ///< Who came later, by that list, the last one last; see Estate.
  std::string watched_;  ///< The one of `ahead_` we watch; see also event::Foreseen.
  std::int64_t watched_czxid_ = 0;  ///< 0: not known.
  Arm watched_arm_ = Arm::kNo;
  Arm own_arm_ = Arm::kNo;

  // Farewells.
  std::int64_t left_ = 0;  ///< Whose is looked for.
  /// Of the directory's data, if a farewell may be written over it.
  std::optional<std::int32_t> version_;

  base::Box<ParentMaker> parents_;  ///< While the directory is missing.

  // Draining.
  std::optional<std::int32_t> given_up_;   ///< The number of an entry that came too late.
  std::optional<std::int32_t> later_one_;  ///< The newest that was first in line after that.
  int later_ones_seen_ = 0;
  bool directory_watched_ = false;
  base::Box<std::string>
      in_the_way_;  ///< Who kept the directory from being removed, for the sentence.
};

}  // namespace latchkey::queue
