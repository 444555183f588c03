#include "tree/expiry.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace latchkey::tree {

Expiry::Expiry(Duration tick) : tick_(tick) { LATCHKEY_ASSERT(tick > Duration::zero()); }

void Expiry::add(SessionId session, Duration timeout, Instant now) {
  remove(session);
  file(session, sessions_[session] = {.timeout = timeout, .deadline = now + timeout});
}

void Expiry::remove(SessionId session) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return;
  const auto bucket = buckets_.find(found->second.bucket);
  LATCHKEY_ASSERT(bucket != buckets_.end());
  std::vector<SessionId>& seats = bucket->second;
  const std::size_t seat = found->second.seat;
  seats[seat] = seats.back();
  sessions_.at(seats[seat]).seat = seat;
  seats.pop_back();
  if (seats.empty()) buckets_.erase(bucket);
  sessions_.erase(found);
}

void Expiry::touch(SessionId session, Instant now) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return;
  // Never backwards: a postponed deadline may be later than what this sign of life gives.
  found->second.deadline = std::max(found->second.deadline, now + found->second.timeout);
}

void Expiry::postpone(Duration stall, Instant now) {
  LATCHKEY_ASSERT(stall >= Duration::zero());
  for (auto& [id, session] : sessions_) {
    const Instant most = std::max(session.deadline, now + session.timeout);
    session.deadline = std::min(session.deadline + stall, most);
  }
}

std::vector<SessionId> Expiry::take_expired(Instant now) {
  std::vector<SessionId> expired;
  while (!buckets_.empty() && due(buckets_.begin()->first) <= now) {
    const auto bucket = buckets_.extract(buckets_.begin());
    for (const SessionId id : bucket.mapped()) {
      const auto found = sessions_.find(id);
      LATCHKEY_ASSERT(found != sessions_.end());
      if (found->second.deadline > now) {
        file(id, found->second);
      } else {
        sessions_.erase(found);
        expired.push_back(id);
      }
    }
  }
  return expired;
}

std::optional<Instant> Expiry::next() const {
  if (buckets_.empty()) return std::nullopt;
  return due(buckets_.begin()->first);
}

std::optional<Instant> Expiry::deadline_of(SessionId session) const {
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return std::nullopt;
  return found->second.deadline;
}

void Expiry::file(SessionId id, Session& session) {
  const Duration deadline = session.deadline.time_since_epoch();
  session.bucket = deadline / tick_;
  if (tick_ * session.bucket < deadline) ++session.bucket;
  std::vector<SessionId>& seats = buckets_[session.bucket];
  session.seat = seats.size();
  seats.push_back(id);
}

}  // namespace latchkey::tree
