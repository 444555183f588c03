#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "queue/contender.hpp"
#include "queue/entry_machine.hpp"
#include "queue/messages.hpp"
#include "queue/node_name.hpp"

namespace latchkey::queue {

/// The size of a semaphore as it stands in the data of its node: a decimal number, as kazoo writes
/// it. Nothing for data that is no number: then no size is stored, as with a semaphore that Curator
/// made.
[[nodiscard]] std::optional<int> parse_size(std::string_view data);

/// How many permits are taken when the last of `own` is counted: ours and all that came before it.
/// Whatever carries no number counts too, because Curator would count it.
[[nodiscard]] std::size_t taken_up_to(std::span<const std::string> leases,
                                      std::span<const Place> own);

/// The entries of other locks among the children of a semaphore's path: whoever queues there knows
/// nothing of permits.
[[nodiscard]] std::vector<std::string> strangers(std::span<const std::string> children);

/// What the semaphore's machine wants done beyond what a Contender does.
namespace action {

/// Enter the queue in front. Answered by event::First or event::OutOfLine.
struct Queue {
  Missing missing;
};
/// Leave it again, whether waiting or first.
struct Unqueue {};
/// One multi of `count` ephemeral sequential creates of directory + "/" + prefix. Answered by
/// event::AllCreated.
struct CreateAll {
  Ask ask;
  std::string prefix;
  int count;
};
/// getData of the semaphore's own node, perhaps with a one-shot watch. Answered by event::SizeRead,
/// then perhaps event::SizeChanged.
struct ReadSize {
  Ask ask;
  bool watch;
};
struct UnwatchSize {};
/// setData of the semaphore's own node, if it is still that version. Answered by event::SizeStored.
struct StoreSize {
  Ask ask;
  int size;
  std::int32_t version;
};
/// getChildren of the semaphore's own node. Answered by event::PathListed.
struct ListPath {
  Ask ask;
};
/// To the caller: held, with one node for each permit, all made by the transaction `czxid`.
struct GrantAll {
  std::vector<std::string> names;
  std::int64_t czxid;
};
/// To the log: no size is stored, the caller's is taken on trust.
struct Warn {
  std::string text;
};

}  // namespace action

using PermitAction =
    std::variant<action::Queue, action::Unqueue, action::CreateAll, action::ReadSize,
                 action::UnwatchSize, action::StoreSize, action::ListPath, action::GrantAll,
                 action::Warn, action::List, action::ListAndWatch, action::Sync,
                 action::MakeDirectory, action::RemoveDirectory, action::Look, action::Watch,
                 action::Unwatch, action::UnwatchDirectory, action::Withdraw, action::Prove,
                 action::Pause, action::Owe, action::Fail, action::Lose, action::Done>;

namespace event {

/// We are at the head of the queue in front.
struct First {};
/// We are no longer in it, or never got there.
struct OutOfLine {
  Code code;
};
struct AllCreated {
  Ask ask;
  Answer answer;
  std::vector<std::string> names;
  std::int64_t czxid = 0;
};
struct SizeRead {
  Ask ask;
  Answer answer;
  std::string data;
  int children = 0;          ///< How many the node has.
  std::int32_t version = 0;  ///< Of the data.
};
struct SizeStored {
  Ask ask;
  Answer answer;
};
struct SizeChanged {};
struct PathListed {
  Ask ask;
  Answer answer;
  std::vector<std::string> children;
  std::vector<std::string> elders;  ///< Strangers among them that are older than the leases.
};

}  // namespace event

using PermitEvent =
    std::variant<event::Start, event::First, event::OutOfLine, event::AllCreated, event::SizeRead,
                 event::SizeStored, event::SizeChanged, event::PathListed, event::Listed,
                 event::Synced, event::Made, event::Removed, event::Looked, event::Watched,
                 event::Gone, event::Touched, event::DirectoryChanged, event::Proved,
                 event::Resumed, event::Heartbeat, event::LeaseOver, event::SessionOver,
                 event::Cancel, event::Release>;

/// One claim to some permits of a semaphore, from the place in the queue to the last delete, as a
/// machine without I/O, of the same kind as Contender.
///
///     Permits permits({.path = "/pools/gpu", .count = 2}, guids);
///     carry_out(permits.step(event::Start{}));
///
/// A queue in front orders the callers, and only its head comes here to take permits. It creates
/// all its lease nodes in one transaction first and decides by their order after that: it holds iff
/// all leases up to the last of its own are no more than the size. The number of leases before our
/// own only falls (P1 carries over), so nothing can make that untrue again but a reduction of the
/// size, which evicts nobody (H46, H48). The size is read after the list, never before: between the
/// two the leases can only become fewer, so there was a moment at which both were as we saw them.
///
/// While there are too many, the head watches the list of leases and the size: with several permits
/// any holder may leave first, so no single node would do (H47).
///
/// A queue of entries at the path itself is another lock, which does not exclude this one. Whoever
/// would make the queue in front looks before, so that nothing is left where it is refused. Those
/// contenders fail where they find `leases`, so whoever makes that looks once more, and whoever
/// takes permits looks once more if the path has more children than a semaphore's two: an entry
/// that stays is older than `leases`, and one that goes was a contender that fails.
///
/// Exactly one of GrantAll and Fail comes out, once; after a grant at most one Lose; Done comes
/// last. Losing one node is losing all of them.
///
/// Thread safety: one thread at a time.
class Permits : EntryMachine<PermitAction> {
 public:
  struct Options {
    std::string path = {};         ///< Of the semaphore; the leases lie in path + "/leases".
    int count = 1;                 ///< How many permits are wanted: at least 1.
    std::optional<int> size = {};  ///< What the caller takes it for; nothing: whatever is stored.
    Wait wait = Wait::kYes;
  };

  Permits(Options options, GuidSource guids);

  [[nodiscard]] std::vector<PermitAction> step(const PermitEvent& event);

  /// Is this one of the nodes it waits or holds with?
  [[nodiscard]] bool is_own(std::string_view name) const;

  /// For people and tests: "queueing", "waiting", "holding", ...
  [[nodiscard]] std::string_view describe() const;

  /// Where the leases of the semaphore at `path` lie, and its queue in front.
  [[nodiscard]] static std::string leases_of(const std::string& path);
  [[nodiscard]] static std::string locks_of(const std::string& path);

 private:
  friend struct PermitsProbe;  ///< Tests look inside to tell states apart.

  enum class Phase {
    kNew,        ///< Not started.
    kQueueing,   ///< Reading the size, waiting in the queue in front, or both.
    kEntering,   ///< The creates are out, and the first view with them.
    kChecking,   ///< Is there another kind of lock at the path?
    kStoring,    ///< Nobody has said yet how large it is: we do.
    kMaking,     ///< The directory of the leases is being created.
    kPausing,    ///< Backing off; `after_pause_` says what comes next.
    kSearching,  ///< Sync and list are out, to learn what became of the creates (P7).
    kLooking,    ///< Whose are the nodes that carry our guid?
    kViewing,    ///< Our nodes are known, a list and the size read after it will decide.
    kWaiting,    ///< Too many leases; both watches are in place.
    kProving,    ///< Enough permits are ours; the session's lease is being proven.
    kHolding,
    kDraining,  ///< The counter nears its end: waiting for an empty directory (H35).
    kDone,
  };
  enum class AfterPause { kSurvey, kCheck, kMake, kSearch, kView, kDrain };
  struct Own {
    Place place;
    Ask watch = 0;
    Arm arm = Arm::kNo;
  };
  /// The requests whose answers still matter; 0: none.
  struct Asks {
    Ask survey = 0;
    Ask survey_sync = 0;
    Ask create = 0;
    Ask list = 0;
    Ask size = 0;
    Ask store = 0;
    Ask path = 0;
    Ask sync = 0;
    Ask make = 0;
    Ask remove = 0;
    Ask prove = 0;
    Ask pause = 0;
  };

  void on(const event::Start&);
  void on(const event::First&);
  void on(const event::OutOfLine& out);
  void on(const event::AllCreated& created);
  void on(const event::SizeRead& read);
  void on(const event::SizeStored& stored);
  void on(const event::SizeChanged&);
  void on(const event::PathListed& listed);
  void on(const event::Listed& listed);
  void on(const event::Synced& synced);
  void on(const event::Made& made);
  void on(const event::Removed& removed);
  void on(const event::Looked& looked);
  void on(const event::Watched& watched);
  void on(const event::Gone& gone);
  void on(const event::Touched& touched);
  void on(const event::DirectoryChanged&);
  void on(const event::Proved& proved);
  void on(const event::Resumed& resumed);
  void on(const event::Heartbeat&);
  void on(const event::LeaseOver&);
  void on(const event::SessionOver& over);
  void on(const event::Cancel& cancel);
  void on(const event::Release&);

  // Before it is our turn (permits.cpp).
  void survey();
  void surveyed(const event::SizeRead& read);
  void survey_refused(Code code, const std::string& what);
  void queue();

  // Another kind of lock at the path (permits_path.cpp).
  void check_path();
  void survey_anew();
  void path_is_free(bool is_semaphore);
  void wait_for_strangers(const std::vector<std::string>& here);
  void refuse_path(const std::vector<std::string>& entries);

  // Our turn (permits.cpp).
  void enter();
  void not_created(const Answer& answer);
  /// How a view asks for its list and its size.
  enum class Vigil { kNo, kYes };
  void view(Vigil vigil);
  void list(Vigil vigil);
  void read_size();
  void retract_view();
  void make_directory();
  void pause(AfterPause next);
  void view_refused(const Answer& answer, const std::string& what);
  void decide();
  void wait_on();
  void woken();
  void prove();
  [[nodiscard]] std::optional<Refusal> judge(std::optional<int> stored) const;

  // Identity (permits_identity.cpp).
  void search();
  void settle_search();
  void search_refused(const std::string& what, Code code);
  void identify();
  void settle_identity();
  void adopt_or_lose(const std::vector<Traces::Trace>& ours);
  void own_watched(Own& own, const Answer& answer);
  void watch_own(Own& own);

  // Draining (permits_end.cpp).
  void drain();
  void list_to_drain();
  void drain_listed(const Answer& answer);
  void start_over();

  // Ending (permits_end.cpp).
  void own_is_gone(const std::string& name);
  void leave();
  void unqueue();
  void owe_own();
  void drop_watches();
  void drop_list_watch();
  void drop_size_watch();
  void finish();

  [[nodiscard]] std::string prefix() const { return node_prefix(guid_, Tag::kLease); }
  [[nodiscard]] bool has_prefix(std::string_view child) const {
    return has_node_prefix(child, guid_, Tag::kLease);
  }
  [[nodiscard]] std::size_t count() const { return static_cast<std::size_t>(options_.count); }

  Options options_;
  std::string directory_;

  Phase phase_ = Phase::kNew;
  AfterPause after_pause_ = AfterPause::kView;
  Asks asks_;

  // Before it is our turn.
  bool queued_ = false;               ///< In the queue in front, as far as we know.
  Missing missing_ = Missing::kFail;  ///< Of the queue in front: made once the path is looked at.
  bool suspicious_ = false;           ///< The first look gave cause to look again, behind a sync.
  std::optional<Answer> survey_synced_;  ///< What that sync was answered.
  bool unseen_ = false;                  ///< There was no such path.
  std::optional<std::int32_t> blank_;    ///< The version of data that say nothing of a size.
  std::optional<Code> out_of_line_;      ///< Told while a second look is on its way.
  bool agreed_ = false;     ///< The caller's size was the stored one; from then on that one counts.
  bool made_once_ = false;  ///< The directory of the leases.

  std::vector<Own> own_;  ///< In the order of their numbers.

  // What we see.
  std::optional<Answer> sync_answer_;
  std::optional<Answer> list_answer_;
  std::vector<std::string> children_;
  bool size_known_ = false;  ///< Read after the list in `children_`.
  std::optional<int> stored_;
  int children_of_path_ = 0;            ///< Read with the size.
  bool path_is_clear_ = false;          ///< No other kind of lock is at the path.
  std::vector<std::string> strangers_;  ///< Seen at every check of the path since the first.
  int looks_ = 0;                       ///< At the path, for those to go.
  std::int32_t given_up_ = 0;           ///< The number of leases that came too late.
  std::optional<std::int32_t> later_one_;
  int later_ones_seen_ = 0;
  std::string shortage_;  ///< Why the last view was not enough, for people.
  Vigil vigil_ = Vigil::kNo;
  Arm list_arm_ = Arm::kNo;
  Arm size_arm_ = Arm::kNo;
  bool warned_ = false;
};

}  // namespace latchkey::queue
