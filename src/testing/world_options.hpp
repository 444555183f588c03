#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "latchkey/deadline.hpp"
#include "session/machine.hpp"
#include "tree/service.hpp"
#include "wire/messages.hpp"

/// The vocabulary of the simulation: its options, its faults, and what an observer is told.
namespace latchkey::testing {

class Process;
class SimHost;
class World;

/// Times are drawn evenly from this.
struct Span {
  Duration least;
  Duration most;
};

/// What the leader's records are kept on.
enum class Store : std::uint8_t {
  kMemory,  ///< A disk that never fails and loses nothing that was committed.
  kDisk,    ///< The real FileJournal over storage::SimDisk.
};

struct WorldOptions {
  std::uint64_t seed = 1;
  std::size_t followers = 0;
  Store store = Store::kMemory;
  Span latency{std::chrono::microseconds(50), std::chrono::microseconds(500)};
  Span commit{std::chrono::microseconds(100), std::chrono::microseconds(1'000)};
  Span callback{std::chrono::microseconds(1), std::chrono::microseconds(50)};
  Span link{std::chrono::microseconds(50), std::chrono::microseconds(500)};  ///< To the leader.
  /// How often, in 1000 writes, bytes arrive in pieces.
  std::uint32_t split_permille = 50;
  /// A follower that has not heard from the leader for so long drops its clients.
  Duration sync_limit = std::chrono::seconds(5);
  /// Records of this many bytes fill a segment of the journal, and so many more are folded.
  std::uint64_t segment_bytes = 64U << 10U;
  std::uint64_t fold_bytes = 256U << 10U;
  /// Records older than this many are forgotten by log() once every follower has them.
  std::size_t keep_records = 100'000;
  session::Linger linger = session::Linger::kYes;  ///< Of every session.
  /// Without `secret` and `authenticate`, which are the world's. A follower tells the leader who
  /// was heard of twice in a `tick`.
  tree::ServiceOptions service;
};

/// The direction of a message as the client sees it.
enum class Way : std::uint8_t { kRequest, kReply };
enum class Silence : std::uint8_t { kRequests, kReplies, kBoth };
enum class Refusal : std::uint8_t { kOff, kOn };
enum class Tell : std::uint8_t { kNo, kYes };

/// How a server ends.
enum class Crash : std::uint8_t {
  kProcess,  ///< What was written survives, synced or not.
  kPower,    ///< What was not synced survives in any part, or not.
};

/// Faults by kind, for the summary of a run.
enum class Fault : std::uint8_t {
  kCut,
  kPartition,
  kRefuse,
  kSlow,
  kDropRequest,
  kDropReply,
  kHold,
  kPause,
  kSuspend,
  kClockRate,
  kClockJump,
  kExpire,
  kKill,
  kCrash,
  kPowerLoss,
  kWipe,
  kDiskFull,
  kSyncError,
  kDiskStall,
  kLag,
  kPartFollower,
  kDepose,
  kPauseServer,
  kWallJump,
  kAge,
  kTimeouts,
  kLeave,
  kMeddle,
  kRestore,
};
inline constexpr std::size_t kFaults = 29;
[[nodiscard]] std::string_view name(Fault fault);

/// One record that the leader has applied.
struct LogEntry {
  std::int64_t zxid = 0;
  std::string bytes;  ///< See tree::decode_record().
  Instant at;         ///< True time.
};

/// A part of the leader's log: the records from number `first` on.
struct Log {
  std::uint64_t first = 0;
  std::deque<LogEntry> entries;

  [[nodiscard]] std::uint64_t end() const { return first + entries.size(); }
  [[nodiscard]] const LogEntry& operator[](std::uint64_t number) const {
    return entries[static_cast<std::size_t>(number - first)];
  }
};

/// One message between a client and a server, as it was put on the wire. `op` is kCreateSession
/// for the two halves of the handshake, which have no xid, zxid and err.
struct Message {
  Way way = Way::kRequest;
  SimHost* host = nullptr;  ///< Null if the client is gone.
  std::uint64_t link = 0;   ///< Its connection; never used twice.
  std::size_t server = 0;
  std::int32_t xid = 0;
  wire::Op op = wire::Op::kError;
  std::int64_t zxid = 0;
  wire::Err err = wire::Err::kOk;
  std::string_view body;  ///< Without header; valid during the call.
};

/// Why a client hears nothing more on a connection.
enum class Over : std::uint8_t {
  kHeard,      ///< It was told, by the other end or by somebody in between.
  kGivenUp,    ///< It did not want it any more.
  kAbandoned,  ///< Its process has ended.
};

/// What a leader found when it started again.
struct Recovery {
  bool lost = false;           ///< A record that it had applied before was not there.
  std::size_t unanswered = 0;  ///< Records that were stored and that nobody was told about.
  std::size_t forgotten = 0;   ///< Records that were decided and not stored.
  bool torn = false;           ///< The last one had been stored in part.
  bool from_snapshot = false;
  Duration down{};
};

/// Told of what happens, as it happens and before anybody can act on it. Must not change the world.
class Observer {
 public:
  Observer() = default;
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;
  virtual ~Observer() = default;

  virtual void on_applied(const LogEntry& /*entry*/) {}
  virtual void on_sent(const Message& /*message*/) {}
  /// It was to be sent, and drop_next() took it.
  virtual void on_lost(const Message& /*message*/) {}
  /// So many more of the messages sent on the connection have arrived, in order.
  virtual void on_arrived(std::uint64_t /*link*/, Way /*way*/, std::size_t /*messages*/) {}
  virtual void on_over(std::uint64_t /*link*/, Over /*how*/) {}
  /// `process` is whose fault it is, if it is anybody's.
  virtual void on_fault(Fault /*fault*/, const Process* /*process*/) {}
  /// The leader has ended because of its disk.
  virtual void on_failed(const Error& /*error*/) {}
  /// The leader is about to serve after a restart.
  virtual void on_recovered(const Recovery& /*recovery*/) {}
  virtual void after_event() {}
};

}  // namespace latchkey::testing
