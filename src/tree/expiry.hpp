#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "latchkey/deadline.hpp"

namespace latchkey::tree {

using SessionId = std::int64_t;

/// When each session runs out unless it is heard of. touch() is the hot call, made for every frame
/// of every client, and must be cheap: it moves a number, not a place in an ordered set.
///
///     expiry.touch(session, now);
///     for (SessionId gone : expiry.take_expired(now)) close(gone);
///
/// Sessions wait in buckets, one for each tick. When a bucket comes due, those that were heard of
/// in the meantime move on to a later one, so each moves about once in a time-out however often it
/// is heard of. A session never runs out early, and at most one `tick` late if take_expired() is
/// called at next(). Thread safety: one thread at a time.
class Expiry {
 public:
  explicit Expiry(Duration tick);

  /// The session was heard of at `now`. One that is here already starts anew, with this time-out.
  void add(SessionId session, Duration timeout, Instant now);
  void remove(SessionId session);
  /// The session was heard of at `now`. Unknown sessions are ignored.
  void touch(SessionId session, Instant now);
  /// Nobody could be heard for so long (a stalled disk or loop): everybody gets it added (H85), up
  /// to a whole time-out from `now`, which is all that anybody can believe in.
  void postpone(Duration stall, Instant now);

  /// Sessions that have run out, each given out once and forgotten here.
  [[nodiscard]] std::vector<SessionId> take_expired(Instant now);
  /// When to come back at the earliest; nothing without sessions. Coming back may find nobody.
  [[nodiscard]] std::optional<Instant> next() const;

  /// Nothing if the session is unknown.
  [[nodiscard]] std::optional<Instant> deadline_of(SessionId session) const;

  [[nodiscard]] std::size_t size() const { return sessions_.size(); }

 private:
  struct Session {
    Duration timeout{};
    Instant deadline{};       ///< Only grows.
    std::int64_t bucket = 0;  ///< Never one after the deadline's own.
    std::size_t seat = 0;     ///< Its index there.
  };

  /// Puts the session into the bucket of its deadline.
  void file(SessionId id, Session& session);
  /// When everybody in the bucket has run out, unless their deadline has moved.
  [[nodiscard]] Instant due(std::int64_t bucket) const { return Instant(tick_ * bucket); }

  Duration tick_;
  std::unordered_map<SessionId, Session> sessions_;
  std::map<std::int64_t, std::vector<SessionId>> buckets_;  ///< None is empty.
};

}  // namespace latchkey::tree
