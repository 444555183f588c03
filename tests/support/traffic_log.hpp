#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "latchkey/deadline.hpp"
#include "wire/messages.hpp"

namespace latchkey::test_support {

enum class Direction { kToServer, kToClient };

/// What a proxy did with a message. kDropped: the fault at this message swallowed it.
enum class Fate { kForwarded, kDropped };

/// One message as it reached the proxy.
struct TrafficRecord {
  int connection = 0;  ///< 1 for the first one the proxy accepted.
  Direction direction = Direction::kToServer;
  /// Replies carry the op of their request, watch events Op::kNotification, and the handshake in
  /// both directions Op::kCreateSession.
  wire::Op op = wire::Op::kNotification;
  std::int32_t xid = 0;
  /// Of watch events, of requests that begin with one, and of the replies to those.
  std::string path;
  /// Which read of the sender's socket completed the message, counted per connection and
  /// direction. Different numbers mean different sends; equal numbers nearly always one send.
  std::uint64_t flush = 0;
  std::size_t bytes = 0;           ///< With the length prefix.
  wire::Err err = wire::Err::kOk;  ///< Of replies.
  Fate fate = Fate::kForwarded;
  Instant at;
};

/// Chooses records; an empty function would choose none.
using TrafficFilter = std::function<bool(const TrafficRecord&)>;

[[nodiscard]] TrafficFilter requests_of(wire::Op op);
[[nodiscard]] TrafficFilter replies_to(wire::Op op);

/// What went through a FaultProxy, and which of its faults have struck.
/// Thread safety: any thread.
class TrafficLog {
 public:
  void append(TrafficRecord record);
  void add_bytes(Direction direction, std::size_t count);
  void note_fired(int fault);

  [[nodiscard]] std::vector<TrafficRecord> records() const;
  [[nodiscard]] std::size_t count(const TrafficFilter& filter) const;
  [[nodiscard]] std::uint64_t bytes(Direction direction) const;
  [[nodiscard]] int fired(int fault) const;

  /// Waits until at least `count` records pass the filter. False: the deadline passed first.
  [[nodiscard]] bool wait_for(const TrafficFilter& filter, std::size_t count, Deadline deadline);
  [[nodiscard]] bool wait_until_fired(int fault, int times, Deadline deadline);

  /// Forgets records and bytes, not the faults.
  void clear();

 private:
  [[nodiscard]] std::size_t count_locked(const TrafficFilter& filter) const;
  template <class Predicate>
  bool wait_locked(std::unique_lock<std::mutex>& lock, Deadline deadline, Predicate predicate);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<TrafficRecord> records_;
  std::uint64_t bytes_to_server_ = 0;
  std::uint64_t bytes_to_client_ = 0;
  std::map<int, int> fired_;
};

}  // namespace latchkey::test_support
