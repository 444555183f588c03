#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

#include "integration/mutex_fixture.hpp"
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

TEST_F(MutexCounterTest, H35_AForeignChildInTheWayIsNamed) {
  start_at(1 << 30);
  Session session = open();
  make_node(session, "/locks/somebody's note");

  EXPECT_TRUE(fails_with(Mutex(session, directory).lock(deadline_in(500ms)), Code::kTimedOut,
                         "somebody's note"));
}

}  // namespace
}  // namespace latchkey::test_support
