#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "latchkey/session.hpp"
#include "support/eventually.hpp"
#include "support/fault_proxy.hpp"
#include "support/shared_servers.hpp"

namespace latchkey::test_support {

using namespace std::chrono_literals;

/// Far enough that only a hang reaches it.
inline Deadline soon() { return deadline_in(60s); }

/// A whole ZooKeeper service, whatever it is made of. A suite that runs over several kinds takes
/// one as its parameter; another kind is another value of ServiceKind and one more class.
/// Thread safety: one thread at a time.
class Service {
 public:
  virtual ~Service() = default;

  /// "host:port" of each server.
  [[nodiscard]] virtual std::vector<std::string> servers() = 0;
  /// The answers of all servers to a four-letter word, one after the other.
  [[nodiscard]] virtual std::string word(std::string_view word) = 0;
  /// Every server is killed, then all come back with their data.
  virtual void kill_all() = 0;
  virtual void start_all() = 0;

  /// All servers, as a client would name them.
  [[nodiscard]] std::string connect_string();
  /// A server that is not the leader where there is a choice.
  [[nodiscard]] virtual std::string follower() = 0;

  /// How many connections, and watches, of this session the servers know of.
  [[nodiscard]] int connections_of(std::int64_t session);
  [[nodiscard]] int watches_of(std::int64_t session);
};

/// Apache ZooKeeper, alone or as three; and `latchkey serve`.
enum class ServiceKind { kStandalone, kEnsemble, kEmbedded };

std::ostream& operator<<(std::ostream& out, ServiceKind kind);

/// The program's one service of that kind, with every server up.
[[nodiscard]] Service& shared_service(ServiceKind kind);

/// Things that happen on other threads, in order. Copies share the list, so a callback that comes
/// after the test has ended does no harm. Thread safety: any thread.
template <class T>
class Recorder {
 public:
  void add(T item) const {
    const std::lock_guard lock(list_->mutex);
    list_->items.push_back(std::move(item));
    list_->changed.notify_all();
  }

  [[nodiscard]] std::vector<T> all() const {
    const std::lock_guard lock(list_->mutex);
    return list_->items;
  }
  [[nodiscard]] std::size_t size() const { return all().size(); }
  [[nodiscard]] T last() const { return all().back(); }

  /// Waits for at least `count` items. False: the deadline passed first.
  [[nodiscard]] bool wait_for(std::size_t count, Deadline deadline = soon()) const {
    std::unique_lock lock(list_->mutex);
    while (list_->items.size() < count) {
      const Instant now = BootClock::now();
      if (deadline.has_passed(now)) return false;
      list_->changed.wait_for(lock, deadline.at() - now);
    }
    return true;
  }

  /// A callback that adds what it is given.
  [[nodiscard]] auto adder() const {
    return [recorder = *this](T item) { recorder.add(std::move(item)); };
  }

 private:
  struct List {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<T> items;
  };

  std::shared_ptr<List> list_ = std::make_shared<List>();
};

/// For EXPECT_TRUE and ASSERT_TRUE, with the error in the message.
template <class T>
[[nodiscard]] testing::AssertionResult ok(const Result<T>& result) {
  if (result) return testing::AssertionSuccess();
  return testing::AssertionFailure() << result.error();
}
template <class T>
[[nodiscard]] testing::AssertionResult fails_with(const Result<T>& result, Code code) {
  if (result) return testing::AssertionFailure() << "it succeeded";
  if (result.error() == code) return testing::AssertionSuccess() << result.error();
  return testing::AssertionFailure() << "wanted " << code << ", got " << result.error();
}
/// Also asks for `part` in the message.
template <class T>
[[nodiscard]] testing::AssertionResult fails_with(const Result<T>& result, Code code,
                                                  std::string_view part) {
  testing::AssertionResult verdict = fails_with(result, code);
  if (!verdict || result.error().message().find(part) != std::string::npos) return verdict;
  return testing::AssertionFailure() << "no \"" << part << "\" in: " << result.error();
}

/// The shared servers grant time-outs from half a second on. A test that waits for the end of a
/// session wants a short one, all others one that a loaded machine does not sit out.
[[nodiscard]] SessionOptions quick(std::chrono::milliseconds timeout = 10s);

/// Opens a session or ends the test.
[[nodiscard]] Session open_session(const std::string& connect, SessionOptions options = quick());

/// Creates a node or ends the test.
void make_node(Session& session, const std::string& path, const std::string& data = {},
               Lifetime lifetime = Lifetime::kPersistent);

/// The events of watchers as texts: "created /a".
using Events = Recorder<std::string>;
[[nodiscard]] Watcher note(const Events& events);

inline constexpr auto kConnected = SessionState::kConnected;
inline constexpr auto kSuspended = SessionState::kSuspended;

/// The states a session goes through, and SessionOptions that fill it.
using States = Recorder<SessionState>;
[[nodiscard]] SessionOptions watched(const States& states, SessionOptions options = quick());
[[nodiscard]] bool reaches(const States& states, SessionState state, Deadline deadline = soon());

/// A suite over every kind of service.
class SessionTest : public testing::TestWithParam<ServiceKind> {
 protected:
  [[nodiscard]] static Service& service() { return shared_service(GetParam()); }
  [[nodiscard]] static Session open(SessionOptions options = quick()) {
    return open_session(service().connect_string(), std::move(options));
  }
};

}  // namespace latchkey::test_support
