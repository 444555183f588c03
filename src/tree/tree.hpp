#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/function_ref.hpp"
#include "latchkey/result.hpp"
#include "tree/nodes.hpp"
#include "tree/pending.hpp"
#include "tree/record.hpp"
#include "tree/watches.hpp"
#include "wire/messages.hpp"

namespace latchkey::tree {

/// Who asks, as far as permissions and ownership go.
struct Caller {
  SessionId session = 0;
  std::span<const Identity> identities;
};

/// A request to change something. In a plain request the body fits the op; in a multi each part
/// brings its own op.
struct Write {
  wire::Op op = wire::Op::kCreate;
  std::variant<wire::Create, wire::CreateTtl, wire::PathVersion, wire::SetData, wire::SetAcl,
               wire::Multi>
      body;
};

/// What was decided. Either way a zxid is spent. `record` is to be stored and applied, even before
/// the answer may leave; without one the request was refused with `err`, and `refused_part` says
/// which part of a multi was the culprit.
struct Verdict {
  std::int64_t zxid = 0;
  wire::Err err = wire::Err::kOk;
  std::size_t refused_part = 0;
  std::optional<Record> record;
};

/// What applying a record leads to, in the order it must happen: first the notices leave, then the
/// reply, made of the record and of what its changes have made of their nodes: one for each, empty
/// for what is gone.
struct Effects {
  std::vector<Notice> notices;
  std::vector<wire::WireStat> stats;
};

/// A read's answer: the value counts only if there is no error.
template <class T>
struct Answer {
  wire::Err err = wire::Err::kOk;
  T value{};
};

/// How large a node is.
struct Extent {
  std::size_t data_bytes = 0;
  std::size_t children = 0;
  std::size_t permissions = 0;  ///< Entries of its list.
};

struct TreeLimits {
  std::size_t nodes = 10'000'000;
  std::size_t bytes = std::size_t{4} << 30U;
  /// Of the paths of one session's ephemeral nodes, and 32 for each: all of them go in one record,
  /// and nobody is served meanwhile.
  std::size_t ephemeral_bytes_per_session = std::size_t{8} << 20U;
  std::size_t watches = 10'000'000;
  std::size_t watches_per_peer = 1'000'000;
  /// Of the paths that are watched, each of them once.
  std::size_t watch_bytes = std::size_t{1} << 30U;
  std::size_t watch_bytes_per_peer = std::size_t{64} << 20U;  ///< Of their paths.
};

/// ZooKeeper's state as a machine without I/O, threads or clocks: nodes, sessions, watches. Writing
/// has two doors:
///
///     Verdict verdict = tree.decide(caller, write, wall_ms);  // sees what is pending
///     store(encode(*verdict.record));                         // may take its time
///     Effects effects = tree.apply(*verdict.record, who);     // once it is durable, in order
///
/// Reads see what has been applied and nothing else, so that nobody learns of what a crash could
/// still undo (H78). Thread safety: one thread at a time.
class Tree {
 public:
  explicit Tree(TreeLimits limits = {}) : limits_(limits) {}

  // Decisions. Each takes the next zxid.

  [[nodiscard]] Verdict decide(const Caller& caller, const Write& write, std::int64_t time_ms);
  [[nodiscard]] Record open_session(SessionId session, std::int32_t timeout_ms,
                                    std::string password, std::int64_t time_ms);
  /// Ends a session and removes its nodes. Nothing if there is no such session or it is ending.
  [[nodiscard]] std::optional<Record> close_session(SessionId session, std::int64_t time_ms);
  /// Removes a container or TTL node that has no children; nothing if it is no such node (any
  /// more), or if what is pending has put a fresh one in its place.
  [[nodiscard]] std::optional<Record> reap(const std::string& path, std::int64_t time_ms);
  /// The first record of every run, and of every 2^32 decisions: later zxids are above all that
  /// were ever given out, stored or not (H82).
  [[nodiscard]] Record begin_epoch(std::int64_t time_ms);
  /// Zxids up to this epoch were given out, even if the journal has lost them: the next one is
  /// above.
  void raise_epoch(std::int64_t epoch) { last_ = std::max(last_, epoch << 32); }
  /// The counter in the low half of the zxid nears its end: begin_epoch() is due.
  [[nodiscard]] bool needs_epoch() const { return (last_ & 0xFFFF'FFFF) > 0xFFF0'0000; }
  /// A zxid for a request that fails before anything can be decided.
  [[nodiscard]] std::int64_t spend_zxid() { return next_zxid(); }
  /// The refusal with this zxid may be seen now: everything before it has been applied.
  void show_refusal(std::int64_t zxid) { applied_ = zxid; }

  using IdentitiesOf = base::FunctionRef<std::span<const Identity>(PeerId)>;
  Effects apply(const Record& record, IdentitiesOf identities_of);
  /// The same, and what a change fires is told at once instead of being gathered: a large record
  /// under many watches would fire more than memory holds. `tell` may drop watches, and change
  /// nothing else.
  using Tell = base::FunctionRef<void(const std::vector<Notice>&)>;
  std::vector<wire::WireStat> apply(const Record& record, IdentitiesOf identities_of, Tell tell);

  // Reads.

  [[nodiscard]] Answer<wire::WireStat> exists(PeerId peer, const wire::PathWatch& request);
  [[nodiscard]] Answer<wire::GetDataReply> get_data(const Caller& caller, PeerId peer,
                                                    const wire::PathWatch& request);
  /// The node whose children are asked for; kQuotaExceeded, and no watch, if their names would take
  /// more than `most_bytes` of a reply.
  struct Listing {
    const Node* node = nullptr;
    std::size_t bytes = 0;  ///< Of the names and their lengths.
  };
  [[nodiscard]] Answer<Listing> list(const Caller& caller, PeerId peer,
                                     const wire::PathWatch& request, std::size_t most_bytes);
  [[nodiscard]] Answer<wire::GetAclReply> get_acl(const Caller& caller, const std::string& path);
  [[nodiscard]] Answer<wire::ChildrenNumberReply> count_below(const Caller& caller,
                                                              const std::string& path);
  [[nodiscard]] Answer<wire::EphemeralsReply> ephemerals(SessionId session, std::string_view prefix,
                                                         std::size_t most_bytes) const;
  /// Of a node as it is, or as it will be once everything decided has been applied, whichever is
  /// more; for planning, and for nobody to see.
  [[nodiscard]] Extent extent(std::string_view path) const;
  /// What answers, decisions and events have taken so far, about, beyond taking in the request and
  /// copying the answer: names found, permissions compared, watchers told. 64 to find one in
  /// memory, and whoever shares out time counts the rest in the same measure, a few nanoseconds.
  [[nodiscard]] std::uint64_t work() const { return work_; }
  /// One request that would take more than that is refused: a second or so. Only one of many parts
  /// can, such as one that has a huge permission list looked through, or a crowd of watchers told,
  /// for each (H89).
  static constexpr std::uint64_t kMostWorkAtOnce = std::uint64_t{1} << 29U;
  /// Nodes that may be reaped now: unused containers, TTL nodes past their time. At most `limit` of
  /// each kind. No other is looked at.
  [[nodiscard]] std::vector<std::string> reapable(std::int64_t time_ms, std::size_t limit) const;

  // Watches without a read.

  wire::Err add_watch(PeerId peer, const wire::AddWatch& request);
  /// Checks and registers in one step (H91): a watch whose node changed after the client's zxid
  /// fires at once, the others are set. The notices are for `peer`.
  wire::Err set_watches(PeerId peer, const wire::SetWatches2& request,
                        std::vector<Notice>& notices);
  [[nodiscard]] wire::Err check_watches(PeerId peer, const wire::PathWatcherType& request) const;
  wire::Err remove_watches(PeerId peer, const wire::PathWatcherType& request);
  void drop_watches(PeerId peer) { watches_.drop(peer); }

  // Sessions that are there: opened by an applied record and not closed by one.

  struct SessionEntry {
    std::int32_t timeout_ms = 0;
    std::string password;
    bool closing = false;  ///< A pending record closes it.
  };
  using Sessions = std::unordered_map<SessionId, SessionEntry>;
  [[nodiscard]] const Sessions& sessions() const { return sessions_; }
  [[nodiscard]] bool knows(SessionId session) const;

  // The whole.

  [[nodiscard]] const Nodes& nodes() const { return nodes_; }
  [[nodiscard]] const Watches& watches() const { return watches_; }
  /// Of the newest decision that may be seen: what a reply may carry.
  [[nodiscard]] std::int64_t applied_zxid() const { return applied_; }

  /// The state as a list of items, the same for equal states, and back. A snapshot.
  void save(base::FunctionRef<void(std::string_view item)> sink) const;
  Result<void> load(std::string_view item);
  /// A record out of the journal.
  Result<void> replay(std::int64_t zxid, std::string_view bytes);

 private:
  [[nodiscard]] std::int64_t next_zxid() { return ++last_; }
  /// Counting what is pending, and the decision so far.
  [[nodiscard]] bool has_room_for(const Growth& more, const Caller& caller,
                                  const Draft& draft) const;
  [[nodiscard]] bool allows(const AclList& acl, std::int32_t permissions,
                            const Caller& caller) const;
  [[nodiscard]] std::optional<Shadow> look(const Draft& draft, std::string_view path) const;
  Record conclude(Record record, Draft draft);

  wire::Err decide_part(const Caller& caller, wire::Op op, const wire::Create& create,
                        std::optional<std::int64_t> ttl_ms, Draft& draft, Change& change) const;
  wire::Err decide_part(const Caller& caller, const wire::SetData& set, Draft& draft,
                        Change& change) const;
  wire::Err decide_part(const Caller& caller, const wire::SetAcl& set, Draft& draft,
                        Change& change) const;
  wire::Err decide_part(const Caller& caller, wire::Op op, const wire::PathVersion& request,
                        Draft& draft, Change& change) const;
  wire::Err decide_multi(const Caller& caller, const wire::Multi& multi, Draft& draft,
                         std::vector<Change>& changes, std::size_t& culprit) const;
  void draft_delete(const std::string& path, Draft& draft) const;

  wire::WireStat carry_out(const Change& change, const Record& record,
                           std::vector<Notice>& notices);
  [[nodiscard]] bool has_room(PeerId peer, const Watches::Addition& more) const;
  /// Err::kQuotaExceeded if there is no room for it. One that is there already needs none.
  wire::Err watch(Watches::Kind kind, PeerId peer, std::string_view path);
  /// Can the record be applied to this very state? A journal is not trusted blindly.
  [[nodiscard]] bool fits(const Record& record) const;

  TreeLimits limits_;
  Nodes nodes_;
  Watches watches_;
  Sessions sessions_;
  Pending pending_;
  std::int64_t last_ = 0;  ///< The newest zxid given out.
  std::int64_t applied_ = 0;
  mutable std::uint64_t work_ = 0;  ///< Looking at something is work too.
};

}  // namespace latchkey::tree
