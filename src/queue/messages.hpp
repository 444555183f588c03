#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "latchkey/error.hpp"
#include "queue/estate.hpp"
#include "queue/farewell.hpp"

/// What goes into a Contender and what comes out of it.

namespace latchkey::queue {

/// Numbers the requests of one contender, so that an answer to a question that no longer matters is
/// recognised and dropped.
using Ask = std::uint32_t;

/// How a request ended, as far as a contender has to know.
struct Answer {
  enum class Kind {
    kOk,
    kNo,         ///< The server's definite refusal, `code` says which.
    kAmbiguous,  ///< Perhaps carried out; the session still exists.
  };
  Kind kind = Kind::kOk;
  Code code = Code::kServerError;  ///< Meaningless with kOk.
};

/// Why a caller does not get what it asked for: a human sentence, or nothing besides the code.
struct Refusal {
  Code code;
  std::string why;
};

/// What the contender wants done. Everything one step() returns goes out in one flush, in order.
namespace action {

/// create2, ephemeral and sequential, of directory + "/" + prefix. Answered by event::Created.
struct Create {
  Ask ask;
  std::string prefix;
};
/// getChildren of the directory. Answered by event::Listed. One that may wait is of no use before
/// those of our own session who are ahead have left, and may be answered from what they know.
struct List {
  Ask ask;
  bool may_wait = false;
};
/// As List, with a one-shot watch on the directory (event::DirectoryChanged).
struct ListAndWatch {
  Ask ask;
};
/// sync of the directory. Answered by event::Synced.
struct Sync {
  Ask ask;
};
/// Creates one missing directory level. Answered by event::Made.
struct MakeDirectory {
  Ask ask;
  std::string path;
};
/// Deletes the (empty) lock directory itself, to start its counter anew. Answered by
/// event::Removed.
struct RemoveDirectory {
  Ask ask;
};
/// Stat of a child. Answered by event::Looked.
struct Look {
  Ask ask;
  std::string name;
};
/// getData of a child with a one-shot watch: get, not exists, which would leave a watch behind on a
/// node that is already gone (H28). Answered by event::Watched, then perhaps event::Gone/Touched.
struct Watch {
  Ask ask;
  std::string name;
};
/// getData of the directory: has anybody said farewell? Answered by event::FarewellRead.
struct ReadFarewell {
  Ask ask;
};
/// The watch on `name` is no longer wanted, whether it is in place or still being asked for; the
/// server's goes too when we were the last (H29).
struct Unwatch {
  std::string name;
};
/// The same for the watch of a ListAndWatch.
struct UnwatchDirectory {};
/// In one transaction creates `to`, ephemeral with exactly this name, and deletes `from`, which is
/// ours. Answered by event::Exchanged.
struct Exchange {
  Ask ask;
  std::string from;
  std::string to;
};
/// Take back an unsent request, a Prove or a Pause. If it has left already its answer still comes.
/// A Create that was taken back in time is answered as well, with kNo and kCancelled: the contender
/// has to learn that nothing is on its way. For everything else silence is fine.
struct Withdraw {
  Ask ask;
};
/// Answered by event::Proved once the session's lease is proven fresh (P5, H12).
struct Prove {
  Ask ask;
};
/// Answered by event::Resumed after a back-off that grows with `round`.
struct Pause {
  Ask ask;
  int round;
};
/// A node of ours that has to go: becomes a debt of the session (H21). With the farewell if that
/// can be, without it otherwise.
struct Owe {
  std::string name;
  std::optional<Farewell> farewell = {};
};
/// For the next entry of the session, right before the Owe it speaks of; of no use with none.
struct Bequeath {
  Estate estate;
};
/// To the caller: held; after a Downgrade once more, with the node that stands for it now. `name`
/// is our node, `czxid` its creating transaction, `token` that of the first node of the attempt: a
/// downgraded writer keeps its token, for writers that came since have larger ones (H44).
struct Grant {
  std::string name;
  std::int64_t czxid;
  std::int64_t token;
};
/// To the caller: the attempt has ended without a hold. `why` is empty or a human sentence.
struct Fail {
  Code code;
  std::string why;
};
/// To the holder: the hold is over, not by its own wish. `code` is kSessionLost, kLost, ...
struct Lose {
  Code code;
};
/// Nothing more will come from this contender; it may be destroyed.
struct Done {};

}  // namespace action

using Action =
    std::variant<action::Create, action::List, action::ListAndWatch, action::Sync,
                 action::MakeDirectory, action::RemoveDirectory, action::Look, action::Watch,
                 action::ReadFarewell, action::Unwatch, action::UnwatchDirectory, action::Exchange,
                 action::Withdraw, action::Prove, action::Pause, action::Owe, action::Bequeath,
                 action::Grant, action::Fail, action::Lose, action::Done>;

/// What a contender is told.
namespace event {

struct Start {};
struct Created {
  Ask ask;
  Answer answer;
  std::string name;
  std::int64_t czxid = 0;
};
/// `children` without the nodes of our own session whose holds have ended: they are as good as gone
/// while their deletes are on the way (architecture, "same session"). What has ended is asked when
/// the answer is delivered, not when it arrives, or a hold that ends in between is neither left out
/// here nor told as Gone.
///
/// One that is not `fresh` was taken for another contender: it shows everybody who is ahead, and
/// perhaps some who have left; but our own entry may be gone since. One that is not `whole` may
/// lack some of those who are ahead: see queue/estate.hpp.
struct Listed {
  Ask ask;
  Answer answer;
  std::vector<std::string> children;
  bool fresh = true;
  bool whole = true;
};
struct Synced {
  Ask ask;
  Answer answer;
};
struct Made {
  Ask ask;
  Answer answer;
};
struct Removed {
  Ask ask;
  Answer answer;
};
/// `owned`: the node's ephemeralOwner is our present session (H04).
struct Looked {
  Ask ask;
  Answer answer;
  bool owned = false;
  std::int64_t czxid = 0;
};
/// `czxid`: the transaction that made the node; 0 if nobody knows.
struct Watched {
  Ask ask;
  Answer answer;
  std::int64_t czxid = 0;
};
/// The directory's data, which `version` it is and which transaction wrote it.
struct FarewellRead {
  Ask ask;
  Answer answer;
  std::string data = {};
  std::int32_t version = 0;
  std::int64_t mzxid = 0;
};
/// A watched node was deleted, or a node of our own session that we watch has ended its hold or
/// attempt. A fact about the name, whoever asked: names do not return.
struct Gone {
  std::string name;
};
/// Any other event on a watched node; its watch is used up (H34).
struct Touched {
  std::string name;
};
struct DirectoryChanged {};
/// While it enters: `name` stood last a moment ago and is likely to be the nearest ahead, so that
/// watching it can leave in the flush of the create.
struct Foreseen {
  std::string name;
};
/// The list that may wait does so: `name`, of our own session, is ahead. For people.
struct Behind {
  std::string name;
};
/// `answer.code` is that of the part that failed: kNodeExists for `to`, kNoNode for `from`.
struct Exchanged {
  Ask ask;
  Answer answer;
  std::int64_t czxid = 0;
};
struct Proved {
  Ask ask;
  Answer answer;
};
struct Resumed {
  Ask ask;
};
/// A heartbeat went out while we hold, or are about to, or others of our session say that our turn
/// is near: time to watch our own node, if not yet done.
struct Heartbeat {};
/// The lease's deadline passed by the local clock (H09).
struct LeaseOver {};
struct SessionOver {
  Code code;
};
/// Deadline (kTimedOut) or stop request (kCancelled). Too late after a grant: then it is ignored.
struct Cancel {
  Code code;
};
/// The holder lets go.
struct Release {};
/// The holder of a write entry wants to go on as a reader. A second answer follows, Grant or Fail;
/// until then the writer holds, so a loss before it is told as Lose and Fail.
struct Downgrade {};

}  // namespace event

using Event = std::variant<event::Start, event::Created, event::Listed, event::Synced, event::Made,
                           event::Removed, event::Looked, event::Watched, event::FarewellRead,
                           event::Gone, event::Touched, event::DirectoryChanged, event::Foreseen,
                           event::Behind, event::Proved, event::Resumed, event::Heartbeat,
                           event::LeaseOver, event::SessionOver, event::Cancel, event::Release,
                           event::Exchanged, event::Downgrade>;

}  // namespace latchkey::queue
