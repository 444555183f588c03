#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <csignal>
#include <fstream>

#include <asio/ip/tcp.hpp>
#include <gmock/gmock.h>

#include "integration/mutex_fixture.hpp"
#include "support/child.hpp"
#include "support/temp_dir.hpp"

/// The examples do what their first lines say.
namespace latchkey::test_support {
namespace {

class ExampleTest : public testing::TestWithParam<ServiceKind> {
 protected:
  const std::string connect = shared_service(GetParam()).connect_string();
  TempDir folder;
};

INSTANTIATE_TEST_SUITE_P(Standalone, ExampleTest, testing::Values(ServiceKind::kStandalone));
INSTANTIATE_TEST_SUITE_P(Embedded, ExampleTest, testing::Values(ServiceKind::kEmbedded));

TEST(Example, SaysHowItIsUsedToWhoDoesNotKnow) {
  const std::vector<std::vector<std::string>> wrong = {
      {"coroutine_server"}, {"cron"}, {"leader", "one"}, {"read_write"}, {"semaphore", "many"}};
  const TempDir folder;
  for (std::vector<std::string> command : wrong) {
    command[0] = LATCHKEY_EXAMPLE + command[0];
    const std::filesystem::path said = folder.path() / command[0].substr(command[0].rfind('/') + 1);
    Child process(command, {.output_file = said});

    EXPECT_EQ(process.wait(soon()), (ExitStatus{64, 0})) << command[0];
    std::string line;
    std::getline(std::ifstream(said), line);
    EXPECT_THAT(line, testing::StartsWith("usage: " + command[0] + " ")) << command[0];
  }
}

/// See examples/leader.cpp.
class Contestant {
 public:
  Contestant(const std::string& connect, const std::string& directory, const std::string& store,
             const std::string& name)
      : process_({LATCHKEY_EXAMPLE "leader", connect, directory, store, name}) {}

  [[nodiscard]] Child& process() { return process_; }
  /// Waits until it has written to the store, and says with which token.
  [[nodiscard]] std::int64_t token() {
    const auto line = process_.wait_for_line("wrote ", soon());
    if (!line) throw std::runtime_error("it does not lead");
    return std::stoll(line->substr(6));
  }

 private:
  Child process_;
};

std::int64_t token_in(const std::string& store) {
  std::int64_t token = 0;
  std::ifstream(store) >> token;
  return token;
}

bool is_unlocked(const std::string& store) {
  const Fd file(::open((store + ".lock").c_str(), O_RDWR | O_CLOEXEC));
  return ::flock(file.get(), LOCK_EX | LOCK_NB) == 0;
}

TEST_P(ExampleTest, H73_ALeaderThatIsKilledIsReplaced) {
  const std::string directory = fresh_path();
  const std::string store = folder.path() / "store";
  Contestant first(connect, directory, store, "first");
  const std::int64_t old = first.token();
  Contestant second(connect, directory, store, "second");

  first.process().signal(SIGKILL);

  EXPECT_GT(second.token(), old);
  second.process().close_stdin();
  EXPECT_EQ(second.process().wait(soon()), (ExitStatus{0, 0}));
}

TEST_P(ExampleTest, H73_ALeaderThatWasStoppedCannotWriteAfterItsSuccessor) {
  const std::string directory = fresh_path();
  const std::string store = folder.path() / "store";
  Contestant first(connect, directory, store, "first");
  static_cast<void>(first.token());
  Contestant second(connect, directory, store, "second");
  // Not while it has the file locked: that lock knows no lost holders.
  ASSERT_TRUE(eventually([&] {
    first.process().pause();
    if (is_unlocked(store)) return true;
    first.process().resume();
    return false;
  }));
  const std::int64_t current = second.token();

  first.process().resume();

  // Either the store refuses it or it has noticed first.
  const auto line = first.process().next_line(soon());
  ASSERT_TRUE(line.has_value());
  EXPECT_THAT(*line, testing::AnyOf(testing::StartsWith("refused"), testing::StartsWith("queued"),
                                    testing::StartsWith("failed")));
  EXPECT_EQ(token_in(store), current);
  EXPECT_EQ(first.process().wait(soon()), (ExitStatus{1, 0})) << "its session is over";
}

TEST_P(ExampleTest, ANightlyJobRunsOnceHoweverManyHostsHaveIt) {
  const std::string name = fresh_path().substr(1);
  const std::string runs = folder.path() / "runs";
  const auto host = [&](const std::string& day) {
    return std::make_unique<Child>(
        std::vector<std::string>{LATCHKEY_EXAMPLE "cron", connect, name, day, "echo x >> " + runs});
  };
  for (const char* day : {"2024-05-17", "2024-05-18"}) {
    std::vector<std::unique_ptr<Child>> hosts;
    for (int i = 0; i < 4; ++i) hosts.push_back(host(day));
    for (const auto& one : hosts) EXPECT_EQ(one->wait(soon()), (ExitStatus{0, 0}));
    // One that comes late, when the lock is free again.
    EXPECT_TRUE(eventually([&] { return host(day)->next_line(soon()) == "done before"; }));
  }

  std::ifstream file(runs);
  EXPECT_EQ(std::count(std::istreambuf_iterator<char>(file), {}, 'x'), 2);
}

TEST_P(ExampleTest, ANightlyJobThatFailsIsTriedAgainByTheNextHost) {
  const std::string name = fresh_path().substr(1);
  Child failing({LATCHKEY_EXAMPLE "cron", connect, name, "2024-05-17", "false"});
  EXPECT_EQ(failing.wait(soon()), (ExitStatus{1, 0}));
  Child next({LATCHKEY_EXAMPLE "cron", connect, name, "2024-05-17", "true"});

  EXPECT_EQ(next.next_line(soon()), "done now");
}

TEST_P(ExampleTest, APriceListIsPublishedAndRead) {
  Child writer({LATCHKEY_EXAMPLE "read_write", "write", "apples 3", connect});
  EXPECT_EQ(writer.next_line(soon()), "published: apples 3");
  EXPECT_EQ(writer.wait(soon()), (ExitStatus{0, 0}));
  Child reader({LATCHKEY_EXAMPLE "read_write", "read", connect});
  EXPECT_EQ(reader.next_line(soon()), "apples 3");
  EXPECT_EQ(reader.wait(soon()), (ExitStatus{0, 0}));
}

TEST_P(ExampleTest, SomeTakeAllOfTheirPermitsAndOthersWait) {
  Child first({LATCHKEY_EXAMPLE "semaphore", "5", connect});
  ASSERT_TRUE(first.wait_for_line("holding 5 permits", soon()));
  Child second({LATCHKEY_EXAMPLE "semaphore", "4", connect});
  first.write("\n");
  EXPECT_EQ(first.wait(soon()), (ExitStatus{0, 0}));
  ASSERT_TRUE(second.wait_for_line("holding 4 permits", soon()));
  second.write("\n");
  EXPECT_EQ(second.wait(soon()), (ExitStatus{0, 0}));
}

TEST_P(ExampleTest, AServerOfCoroutinesBooksForManyOnOneThread) {
  Child server({LATCHKEY_EXAMPLE "coroutine_server", "0", connect});
  const auto line = server.wait_for_line("listening on ", soon());
  ASSERT_TRUE(line);
  const std::string port = line->substr(line->rfind(':') + 1);
  asio::ip::tcp::iostream alice("127.0.0.1", port);
  asio::ip::tcp::iostream bob("127.0.0.1", port);
  alice << "alice\nalice\n" << std::flush;
  bob << "bob\n" << std::flush;
  std::string answer;
  for (auto* client : {&alice, &bob, &alice}) {
    ASSERT_TRUE(std::getline(*client, answer));
    EXPECT_THAT(answer, testing::StartsWith("booked on "));
  }
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(soon()), (ExitStatus{0, 0}));
}

}  // namespace
}  // namespace latchkey::test_support
