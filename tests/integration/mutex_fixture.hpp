#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "integration/session_fixture.hpp"
#include "latchkey/mutex.hpp"

namespace latchkey::test_support {

/// For sessions that are not meant to end: long enough for a loaded machine to look at a hold
/// before it is in doubt.
inline SessionOptions patient() { return quick(20s); }

/// A lock() on a thread of its own. The destructor cancels it if it still waits. The deadline is
/// for whatever a test does while somebody waits: servers may be restarted one after the other.
///
///     Waiter second(mutex);
///     ASSERT_TRUE(holder.release());
///     ASSERT_TRUE(second.holds());
///
/// Thread safety: one thread at a time.
class Waiter {
 public:
  explicit Waiter(const Lock& lock, Deadline deadline = deadline_in(300s));
  ~Waiter();
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  [[nodiscard]] bool has_answer() const { return state_->answered; }
  /// Waits for the answer, and says whether it is a lease.
  [[nodiscard]] testing::AssertionResult holds(Deadline deadline = soon());
  /// Only after has_answer() or holds().
  [[nodiscard]] Result<Lease>& answer() { return *state_->answer; }
  [[nodiscard]] Lease& lease() { return answer().value(); }
  [[nodiscard]] Instant answered_at() const { return state_->at; }
  void cancel() { thread_.request_stop(); }

 private:
  struct State {
    std::atomic<bool> answered = false;
    std::optional<Result<Lease>> answer;
    Instant at;
  };

  std::shared_ptr<State> state_ = std::make_shared<State>();
  std::jthread thread_;
};

/// The resource a lock protects, as docs/guarantees.md wants it: it remembers the largest token it
/// has seen, together with the data, and refuses smaller ones; equal ones are the same hold (H17).
/// Thread safety: any thread.
class FencedResource {
 public:
  bool write(Token token) {
    const std::lock_guard lock(mutex_);
    if (largest_ && token < *largest_) return false;
    largest_ = token;
    return true;
  }

 private:
  std::mutex mutex_;
  std::optional<Token> largest_;
};

/// Notices when two holders are inside at once, or when tokens do not grow with every hold.
/// Thread safety: any thread.
class Section {
 public:
  void enter(const Lease& lease);
  void leave();

  [[nodiscard]] int overlaps() const { return overlaps_; }
  [[nodiscard]] int disorders() const { return disorders_; }
  [[nodiscard]] int holds() const { return holds_; }

 private:
  std::atomic<int> inside_ = 0;
  std::atomic<int> overlaps_ = 0;
  std::atomic<int> disorders_ = 0;
  std::atomic<int> holds_ = 0;
  std::atomic<std::int64_t> last_ = 0;
};

/// Looks into lock directories with a session of its own.
class Witness {
 public:
  explicit Witness(Service& service);

  [[nodiscard]] Session& session() { return session_; }
  /// For reading what others have written: a server may lag behind theirs.
  [[nodiscard]] Session& synced() {
    static_cast<void>(session_.sync("/", soon()));
    return session_;
  }
  /// The entries of a lock's directory, in order of arrival; none if there is no directory.
  [[nodiscard]] std::vector<std::string> queue(const std::string& directory);
  [[nodiscard]] bool queue_reaches(const std::string& directory, std::size_t size,
                                   Deadline deadline = soon());
  /// A session other than its owner's not only stands behind this entry: it has looked at it, and
  /// watches. Waits for that.
  [[nodiscard]] bool is_watched(const std::string& node);
  /// How many watches the servers keep on nodes at or below a path.
  [[nodiscard]] int watches_below(const std::string& path);
  /// Neither node nor watch is left in the directory, now or soon.
  [[nodiscard]] testing::AssertionResult is_quiet(const std::string& directory);

 private:
  Service& service_;
  Session session_;
};

/// What a client has sent through a proxy, handshakes, pings and proving heartbeats left out.
[[nodiscard]] std::vector<wire::Op> requests(FaultProxy& proxy);
[[nodiscard]] std::size_t count(FaultProxy& proxy, wire::Op op);

/// A session behind a proxy of its own.
struct Proxied {
  explicit Proxied(const std::string& server, SessionOptions options = patient())
      : proxy(std::make_unique<FaultProxy>(server)),
        session(open_session(proxy->connect_string(), std::move(options))) {}

  std::unique_ptr<FaultProxy> proxy;
  Session session;
};

/// Gets a lock or ends the test.
[[nodiscard]] Lease take(const Session& session, const std::string& directory,
                         MutexOptions options = {});

/// A suite over every kind of service, each test with a lock directory of its own.
class MutexTest : public testing::TestWithParam<ServiceKind> {
 protected:
  [[nodiscard]] static Service& service() { return shared_service(GetParam()); }
  [[nodiscard]] static Session open(SessionOptions options = patient()) {
    return open_session(service().connect_string(), std::move(options));
  }
  [[nodiscard]] static Proxied open_proxied(SessionOptions options = patient()) {
    return Proxied(service().follower(), std::move(options));
  }
  [[nodiscard]] Mutex mutex(const Session& session) const { return Mutex(session, directory); }

  const std::string directory = fresh_path();
  Witness witness{service()};
};

/// Leases are a suite of their own, for the same services.
class LeaseTest : public MutexTest {};

}  // namespace latchkey::test_support
