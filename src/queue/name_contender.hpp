#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "latchkey/error.hpp"
#include "queue/contender.hpp"
#include "queue/messages.hpp"
#include "queue/node_machine.hpp"
#include "queue/parent_maker.hpp"

namespace latchkey::queue {

/// The data of a node by which an attempt knows its own again: what people may read, and a line
/// with the attempt's guid.
[[nodiscard]] std::string sign(std::string owner, std::string_view guid);
/// Does `data` carry that line? Nobody else's line can pose as it: see format_owner().
[[nodiscard]] bool is_signed(std::string_view data, std::string_view guid);

/// What a NameContender wants done, besides what messages.hpp has.
namespace action {

/// create2, ephemeral, of the node itself, with data signed by the guid. Answered by
/// event::Created.
struct CreateNode {
  Ask ask;
};
/// getData of the node. Answered by event::NodeRead.
struct ReadNode {
  Ask ask;
};
/// As ReadNode, with a one-shot watch (event::NodeGone, event::NodeTouched).
struct ReadAndWatchNode {
  Ask ask;
};
/// That watch is no longer wanted, in place or on its way.
struct UnwatchNode {};
/// As UnwatchNode; the server's goes with the node, which is about to be deleted.
struct ForgetWatch {};
/// Deletes the node, once: the name returns, so a delete that is sent again blindly may hit
/// somebody else's. Answered by event::Removed.
struct RemoveNode {
  Ask ask;
};
/// To whoever waits for it: our node is gone, or, with kNo, stays until the session ends.
struct NodeRemoved {
  Answer answer;
};

}  // namespace action

using NameAction =
    std::variant<action::CreateNode, action::ReadNode, action::ReadAndWatchNode,
                 action::UnwatchNode, action::ForgetWatch, action::RemoveNode, action::NodeRemoved,
                 action::Sync, action::MakeDirectory, action::Withdraw, action::Prove,
                 action::Pause, action::Grant, action::Fail, action::Lose, action::Done>;

/// What a NameContender is told, besides what messages.hpp has.
namespace event {

struct NodeRead {
  Ask ask;
  Answer answer;
  bool owned = false;  ///< Its ephemeralOwner is our present session (H04).
  bool is_signed = false;
  std::int64_t czxid = 0;
};
struct NodeGone {};
struct NodeTouched {};
/// The holder knows that it no longer holds: what it held may go (H09).
struct LossTold {};

}  // namespace event

using NameEvent = std::variant<event::Start, event::Created, event::NodeRead, event::NodeGone,
                               event::NodeTouched, event::Removed, event::Synced, event::Made,
                               event::Proved, event::Resumed, event::Heartbeat, event::LeaseOver,
                               event::SessionOver, event::Cancel, event::Release, event::LossTold>;

/// One attempt at a lock that is a single ephemeral node: whoever creates it holds. A machine
/// without I/O, as Contender is, and with the same promises: exactly one of Grant and Fail, after a
/// Grant at most one Lose, Done last, when nothing of the attempt is left on the server.
///
/// What differs from a queue is that the name returns. So a node is ours only if our session owns
/// it and it carries our guid, or was created by the very transaction that created ours: two
/// attempts of one session are strangers to each other (H07). And a delete whose answer was lost is
/// never repeated before a look, behind a sync (P7), has shown that our node is still there.
///
/// A node that is not ephemeral, made by hand perhaps, is somebody else's like any other.
///
/// Thread safety: one thread at a time.
class NameContender : NodeMachine<NameAction> {
 public:
  struct Options {
    std::string node = {};
    Wait wait = Wait::kYes;  ///< kNo: fail with kBusy if the node exists.
  };

  explicit NameContender(Options options);

  [[nodiscard]] std::vector<NameAction> step(const NameEvent& event);

  /// Is the node that this transaction created ours?
  [[nodiscard]] bool is_own(std::int64_t czxid) const { return own_ == czxid; }

 private:
  friend struct NameContenderProbe;  ///< Tests look inside to tell states apart.

  enum class Phase {
    kNew,
    kCreating,
    kMaking,     ///< A missing directory level is being created.
    kPausing,    ///< `after_pause_` says what comes next.
    kReading,    ///< It exists; a read with a watch is out.
    kWaiting,    ///< For somebody else's node to go.
    kSearching,  ///< Sync and read are out, to learn what became of a create or delete (P7).
    kProving,    ///< Created; the lease is being proven.
    kHolding,
    kTelling,   ///< Lost by the clock; the node goes once the holder knows.
    kRemoving,  ///< The delete is out.
    kDone,
  };
  enum class AfterPause { kMake, kCreate, kRead, kSearch, kRemove };
  /// The requests whose answers still matter; 0: none.
  struct Asks {
    Ask create = 0;
    Ask read = 0;
    Ask sync = 0;
    Ask make = 0;
    Ask remove = 0;
    Ask prove = 0;
    Ask pause = 0;
  };

  void on(const event::Start&);
  void on(const event::Created& created);
  void on(const event::NodeRead& read);
  void on(const event::NodeGone&);
  void on(const event::NodeTouched&);
  void on(const event::Removed& removed);
  void on(const event::Synced& synced);
  void on(const event::Made& made);
  void on(const event::Proved& proved);
  void on(const event::Resumed& resumed);
  void on(const event::Heartbeat&);
  void on(const event::LeaseOver&);
  void on(const event::SessionOver& over);
  void on(const event::Cancel& cancel);
  void on(const event::Release&);
  void on(const event::LossTold&);

  void create();
  void make(ParentMaker::Next next);
  void read_and_watch();
  void node_exists(const event::NodeRead& read);
  void own_read(const event::NodeRead& read);
  void search();
  void settle_search();
  void search_refused(const std::string& what, Code code);
  void searched();
  void adopt(const event::NodeRead& read);
  void wait_or_give_up();
  void prove();
  void pause(AfterPause next);
  void own_is_gone();
  void leave();
  void remove();
  void removed(Answer answer);
  void drop_watch();
  void finish();

  [[nodiscard]] bool is_ours(const event::NodeRead& read) const;

  Options options_;
  Phase phase_ = Phase::kNew;
  AfterPause after_pause_ = AfterPause::kCreate;
  Asks asks_;

  std::optional<std::int64_t> own_;  ///< The transaction that created our node, once known.
  Arm arm_ = Arm::kNo;               ///< Is the node, whosever it is, watched?
  std::optional<Answer> sync_answer_;
  std::optional<event::NodeRead> read_;
  ParentMaker parents_;
};

}  // namespace latchkey::queue
