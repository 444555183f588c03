#include <dlfcn.h>
#include <netdb.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>

#include <gmock/gmock.h>

#include "integration/session_fixture.hpp"
#include "latchkey/asio.hpp"
#include "latchkey/mutex.hpp"

/// Name lookups that hang or change. This program has a getaddrinfo of its own for names that end
/// in
/// ".test"; all others go to the system's.
namespace latchkey::test_support {
namespace {

/// What the names of the test domain resolve to. Never destroyed: lookups may outlive a test.
struct Names {
  std::mutex mutex;
  std::condition_variable changed;
  std::string address = "127.0.0.1";
  bool hangs = false;
  int waiting = 0;
  std::map<std::string, int> asked;  ///< How often, by port: threads of earlier tests may ask late.
  std::vector<std::string> hosts;    ///< Everything that was ever looked up.

  void set(const std::string& now_at, bool now_hangs) {
    const std::lock_guard lock(mutex);
    address = now_at;
    hangs = now_hangs;
    changed.notify_all();
  }
  int count_waiting() {
    const std::lock_guard lock(mutex);
    return waiting;
  }
  int count_asked(const std::string& port) {
    const std::lock_guard lock(mutex);
    return asked[port];
  }
  bool was_asked_for(const std::string& name) {
    const std::lock_guard lock(mutex);
    return std::find(hosts.begin(), hosts.end(), name) != hosts.end();
  }
  void note(std::string_view host) {
    const std::lock_guard lock(mutex);
    hosts.emplace_back(host);
  }
  std::string look_up(const std::string& port) {
    std::unique_lock lock(mutex);
    ++asked[port];
    ++waiting;
    changed.notify_all();
    changed.wait(lock, [&] { return !hangs; });
    --waiting;
    return address;
  }
};

Names& names() {
  static auto* const kNames = new Names;
  return *kNames;
}

class SessionResolver : public testing::TestWithParam<ServiceKind> {
 protected:
  SessionResolver() : proxy(server()) {
    names().set("127.0.0.1", false);
    port = proxy.connect_string().substr(proxy.connect_string().rfind(':') + 1);
    connect = "zk.test:" + port;
  }
  ~SessionResolver() override {
    names().set("127.0.0.1", false);
    EXPECT_TRUE(eventually([] { return names().count_waiting() == 0; }));
  }

  static std::string server() { return shared_service(GetParam()).connect_string(); }

  FaultProxy proxy;
  std::string port;
  std::string connect;
};

INSTANTIATE_TEST_SUITE_P(Standalone, SessionResolver, testing::Values(ServiceKind::kStandalone));
INSTANTIATE_TEST_SUITE_P(Embedded, SessionResolver, testing::Values(ServiceKind::kEmbedded));

TEST_P(SessionResolver, H68_OpeningReturnsByItsDeadlineWhileTheLookUpHangs) {
  names().set("127.0.0.1", true);

  EXPECT_TRUE(
      fails_with(Session::open(connect, quick(), deadline_in(2s)), Code::kUnreachable, connect));
}

TEST_P(SessionResolver, H68_OneNameIsAskedForOnceHoweverOftenItIsTried) {
  names().set("127.0.0.1", true);
  const int before = names().count_asked(port);
  auto session = Session::start(connect, quick(3s));
  ASSERT_TRUE(ok(session));
  ASSERT_TRUE(eventually([&] { return names().count_asked(port) > before; }));
  // Several tries, a third of the time-out each.
  EXPECT_FALSE(session->wait_connected(deadline_in(4s)));
  EXPECT_EQ(names().count_asked(port), before + 1);

  names().set("127.0.0.1", false);

  EXPECT_TRUE(ok(session->wait_connected(soon())));
}

TEST_P(SessionResolver, H68_AHangingLookUpDelaysNeitherLossNorExpiryNorClose) {
  States states;
  Session session = open_session(connect, watched(states, quick(6s)));
  Mutex mutex(session, fresh_path());
  auto lease = mutex.lock(soon());
  ASSERT_TRUE(ok(lease));
  Session other = open_session(connect, quick(60s));
  Session bystander = open_session(server());

  names().set("127.0.0.1", true);
  proxy.cut_all();
  ASSERT_TRUE(eventually([] { return names().count_waiting() >= 2; }));

  EXPECT_TRUE(ok(bystander.get("/", soon())));
  EXPECT_TRUE(eventually([&] { return lease->lost().stop_requested(); }));
  EXPECT_TRUE(reaches(states, SessionState::kExpired));
  EXPECT_TRUE(fails_with(other.close(deadline_in(100ms)), Code::kTimedOut));
  EXPECT_EQ(other.state(), SessionState::kClosed);
}

TEST_P(SessionResolver, H68_NamesAreLookedUpAgainAtEachReconnect) {
  FaultProxy moved(server(), {.listen = "[::1]:" + port});
  Session session = open_session(connect);
  const int asked = names().count_asked(port);

  names().set("::1", false);
  proxy.cut_all();

  EXPECT_TRUE(ok(session.get("/", soon())));
  EXPECT_GT(names().count_asked(port), asked);
  EXPECT_GE(moved.connections_accepted(), 1);
}

TEST_P(SessionResolver, H68_ALookUpMayOutliveTheUsersContext) {
  names().set("127.0.0.1", true);
  {
    asio::io_context context;
    auto session = start(context, connect, quick());
    ASSERT_TRUE(ok(session));
    ASSERT_TRUE(eventually([] { return names().count_waiting() > 0; }));
    session = Error(Code::kClosed);
  }
  names().set("127.0.0.1", false);

  EXPECT_TRUE(eventually([] { return names().count_waiting() == 0; }));
}

TEST_P(SessionResolver, H68_ANumericAddressIsNeverLookedUp) {
  Session session = open_session(proxy.connect_string());
  proxy.cut_all();

  EXPECT_TRUE(ok(session.get("/", soon())));
  EXPECT_FALSE(names().was_asked_for("127.0.0.1"));
}

}  // namespace

/// The address of a name of the test domain; nothing for other names.
std::optional<std::string> look_up_test_name(std::string_view host, const std::string& port) {
  names().note(host);
  if (!host.ends_with(".test")) return std::nullopt;
  return names().look_up(port);
}

}  // namespace latchkey::test_support

extern "C" __attribute__((visibility("default"))) int getaddrinfo(const char* host,
                                                                  const char* service,
                                                                  const addrinfo* hints,
                                                                  addrinfo** found) {
  using Function = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
  static const auto kSystem = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  const auto address = latchkey::test_support::look_up_test_name(host == nullptr ? "" : host,
                                                                 service == nullptr ? "" : service);
  return kSystem(address ? address->c_str() : host, service, hints, found);
}
