#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

#include "integration/mutex_fixture.hpp"
#include "latchkey/multi_lock.hpp"
#include "latchkey/semaphore.hpp"
#include "support/raw_client.hpp"
#include "wire/jute.hpp"

/// A lock directory whose sequence counter nears its end, on a real server (H35). Nobody has the
/// time to create a billion nodes, so the server starts from a transaction log written here.
namespace latchkey::test_support {
namespace {

using testing::HasSubstr;

std::int64_t adler32(std::string_view bytes) {
  std::uint32_t a = 1;
  std::uint32_t b = 0;
  for (const char byte : bytes) {
    a = (a + static_cast<unsigned char>(byte)) % 65'521;
    b = (b + a) % 65'521;
  }
  return static_cast<std::int64_t>(b) << 16U | a;
}

/// One of Apache's log files, with nodes whose parents have seen any number of creates.
class TransactionLog {
 public:
  TransactionLog() { put(std::int32_t{0x5A4B4C47}, std::int32_t{2}, std::int64_t{0}); }  // "ZKLG"

  /// `creates` is what the parent's counter will be behind it.
  void create(const std::string& path, std::int32_t creates) {
    std::string body;
    wire::Writer writer(body);
    const wire::Create open = create_request(path, wire::CreateMode::kPersistent);
    writer(path, open.data, open.acl, false, creates);
    add(1, body);
  }

  void remove(const std::string& path) {
    std::string body;
    wire::Writer{body}(path);
    add(2, body);
  }

  void save(const std::filesystem::path& data) const {
    std::filesystem::create_directories(data / "version-2");
    std::ofstream(data / "version-2" / "log.1", std::ios::binary) << bytes_;
  }

 private:
  template <class... Fields>
  void put(const Fields&... fields) {
    wire::Writer{bytes_}(fields...);
  }

  void add(std::int32_t type, const std::string& body) {
    std::string record;
    wire::Writer{record}(std::int64_t{0}, std::int32_t{0}, ++zxid_, std::int64_t{0}, type);
    record += body;
    put(adler32(record), record);
    bytes_ += 'B';
  }

  std::string bytes_;
  std::int64_t zxid_ = 0;
};

class MutexCounterTest : public testing::Test {
 protected:
  /// The next entry of /locks gets this number.
  void start_at(std::int32_t next) {
    TransactionLog log;
    log.create("/locks", 1);
    log.create("/locks/seed", next);
    log.remove("/locks/seed");
    start_with(log);
  }
  /// The next lease of the semaphore /pool gets this number.
  void start_semaphore_at(std::int32_t next) {
    TransactionLog log;
    log.create("/pool", 1);
    log.create("/pool/locks", 1);
    log.create("/pool/leases", 2);
    log.create("/pool/leases/seed", next);
    log.remove("/pool/leases/seed");
    start_with(log);
  }
  void start_with(const TransactionLog& log) {
    log.save(server.folder() / "data");
    server.start();
  }
  [[nodiscard]] Session open() { return open_session(server.connect_string(), patient()); }

  ApacheServer server{[] {
    ApacheOptions options;
    options.java_flags.emplace_back("-Dzookeeper.snapshot.trust.empty=true");
    return options;
  }()};
  const std::string directory = "/locks";
};

TEST_F(MutexCounterTest, H35_AnEmptyDirectoryNearTheEndOfItsCounterIsMadeAnew) {
  for (const std::int32_t next : {1 << 30, INT32_MAX - 1, INT32_MAX}) {
    start_at(next);
    Session session = open();

    Lease lease = take(session, directory);

    EXPECT_THAT(lease.node(), HasSubstr("-lock-0000000000")) << next;
    EXPECT_TRUE(fails_with(Mutex(session, directory).try_lock(), Code::kBusy));
    server.wipe();
  }
}

TEST_F(MutexCounterTest, H35_NewcomersHoldBackUntilTheOldQueueHasDrained) {
  start_at((1 << 30) - 1);
  Session first = open();
  Session second = open();
  Session third = open();
  Lease old = take(first, directory);
  EXPECT_THAT(old.node(), HasSubstr("-lock-1073741823"));

  Mutex late(second, directory);
  EXPECT_TRUE(fails_with(late.lock(deadline_in(300ms)), Code::kTimedOut, "sequence counter"));
  EXPECT_TRUE(fails_with(late.try_lock(), Code::kBusy));
  Waiter one(Mutex(second, directory));
  Waiter two(Mutex(third, directory));
  ASSERT_TRUE(eventually([&] { return server.word("wchp").find(directory) != std::string::npos; }));
  EXPECT_EQ(old.state(), LeaseState::kHeld);
  EXPECT_FALSE(one.has_answer());
  old.release();

  ASSERT_TRUE(eventually([&] { return one.has_answer() || two.has_answer(); }));
  Waiter& winner = one.has_answer() ? one : two;
  Waiter& other = one.has_answer() ? two : one;
  ASSERT_TRUE(winner.holds());
  EXPECT_GT(winner.lease().token(), old.token());
  EXPECT_FALSE(other.has_answer());
  winner.lease().release();
  ASSERT_TRUE(other.holds());
  EXPECT_GT(other.lease().token(), winner.lease().token());
  EXPECT_THAT(other.lease().node(), HasSubstr("-lock-000000000"));
}

TEST_F(MutexCounterTest, H35_AMultiLockSaysWhatToDoAndLeavesNothing) {
  start_at(1 << 30);
  Session session = open();
  const MultiLock both(session, {"/other", directory});

  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(fails_with(both.lock(soon()), Code::kCounterExhausted, "once with a Mutex"));
    EXPECT_TRUE(fails_with(both.try_lock(), Code::kCounterExhausted, directory));
  }
  EXPECT_TRUE(eventually([&] { return session.call(Ephemerals{"/"}, soon())->empty(); }));

  ASSERT_TRUE(ok(take(session, directory).release(soon())));  // As it says.
  auto lease = both.lock(soon());
  ASSERT_TRUE(ok(lease));
  EXPECT_THAT(lease->nodes().back(), HasSubstr("-lock-000000000"));
}

TEST_F(MutexCounterTest, H35_ASemaphoreMakesItsLeasesAnewWhenTheyAreAllBack) {
  for (const std::int32_t next : {1 << 30, INT32_MAX - 1}) {
    start_semaphore_at(next);
    Session session = open();
    const Semaphore pool(session, "/pool", {.size = 2});

    auto both = pool.permits(2).lock(soon());

    ASSERT_TRUE(ok(both)) << next;
    EXPECT_THAT(both->nodes(), testing::Each(HasSubstr("-lease-000000000"))) << next;
    EXPECT_TRUE(fails_with(pool.permits(1).try_lock(), Code::kBusy));
    server.wipe();
  }
}

TEST_F(MutexCounterTest, H35_WhoeverHasAnOldLeaseIsWaitedFor) {
  start_semaphore_at((1 << 30) - 1);
  Session first = open();
  Session second = open();
  auto old = Semaphore(first, "/pool", {.size = 2}).permits(1).lock(soon());
  ASSERT_TRUE(ok(old));
  EXPECT_THAT(old->node(), HasSubstr("-lease-1073741823"));

  // A permit is free, but its number would be beyond the limit.
  Waiter next(Semaphore(second, "/pool", {.size = 2}).permits(1));
  ASSERT_TRUE(eventually([&] { return first.children("/pool/locks", soon())->names.size() == 1; }));
  EXPECT_TRUE(fails_with(Semaphore(first, "/pool", {.size = 2}).permits(1).lock(deadline_in(300ms)),
                         Code::kTimedOut));
  EXPECT_FALSE(next.has_answer());
  EXPECT_EQ(old->state(), LeaseState::kHeld);
  old->release();

  ASSERT_TRUE(next.holds());
  EXPECT_GT(next.lease().token(), old->token());
  EXPECT_THAT(next.lease().node(), HasSubstr("-lease-000000000"));
}

TEST_F(MutexCounterTest, H35_AForeignChildInTheWayIsNamed) {
  start_at(1 << 30);
  Session session = open();
  make_node(session, "/locks/somebody's note");

  EXPECT_TRUE(fails_with(Mutex(session, directory).lock(deadline_in(500ms)), Code::kTimedOut,
                         "somebody's note"));
}

}  // namespace
}  // namespace latchkey::test_support
