#include <poll.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "latchkey/server.hpp"
#include "support/child.hpp"
#include "support/embedded_server.hpp"
#include "support/eventually.hpp"
#include "support/raw_client.hpp"
#include "support/sockets.hpp"
#include "support/temp_dir.hpp"

/// `latchkey serve` asked to end, killed or held up at the worst moments.
namespace latchkey::test_support {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;
using wire::CreateMode;
using wire::Err;
using wire::Op;

/// Writes as fast as it can until the server hangs up.
class Busy {
 public:
  Busy(const std::string& endpoint, int number)
      : client_(endpoint, 60s), prefix_("/" + std::to_string(number) + "-") {
    EXPECT_TRUE(client_.connect(60'000));
  }

  void run() {
    constexpr int kAtOnce = 50;
    for (;;) {
      const int first = acknowledged_;
      for (int i = 0; i < kAtOnce; ++i) {
        client_.add(Op::kCreate,
                    create_request(prefix_ + std::to_string(first + i), CreateMode::kPersistent));
      }
      if (!client_.flush()) return;
      for (int i = 0; i < kAtOnce; ++i) {
        const auto reply = client_.receive();
        if (!reply || reply->header.err != Err::kOk) return;
        ++acknowledged_;
      }
    }
  }

  [[nodiscard]] int acknowledged() const { return acknowledged_; }
  [[nodiscard]] std::string last() const { return prefix_ + std::to_string(acknowledged_ - 1); }

 private:
  RawClient client_;
  const std::string prefix_;
  std::atomic<int> acknowledged_ = 0;
};

TEST(ServerProcess, SigtermUnderLoadLosesNothingThatWasAnswered) {
  constexpr int kCrowd = 4;
  EmbeddedServer server(LATCHKEY_COMMAND);
  server.start();
  std::vector<std::unique_ptr<Busy>> crowd;
  for (int i = 0; i < kCrowd; ++i) {
    crowd.push_back(std::make_unique<Busy>(server.connect_string(), i));
  }
  std::vector<std::thread> threads;
  for (const auto& busy : crowd) threads.emplace_back([&] { busy->run(); });
  // Each of them: one may come to its turn long after the others.
  EXPECT_TRUE(eventually(
      [&] {
        return std::ranges::all_of(crowd,
                                   [](const auto& busy) { return busy->acknowledged() > 100; });
      },
      deadline_in(60s)));

  ::kill(server.pid(), SIGTERM);

  EXPECT_EQ(server.wait(deadline_in(60s)), kFine);
  for (std::thread& thread : threads) thread.join();
  server.start();
  EXPECT_THAT(server.log(), Not(HasSubstr("was cut"))) << "its journal has its end";
  RawClient client(server.connect_string(), 60s);
  ASSERT_TRUE(client.connect(60'000));
  for (const auto& busy : crowd) {
    ASSERT_GT(busy->acknowledged(), 0);
    const auto last = client.call(Op::kExists, wire::PathWatch{busy->last(), false});
    EXPECT_EQ(last->header.err, Err::kOk) << busy->last();
  }
}

/// While it stands still, one client asks for a lot and another one for a word. Everything is there
/// when it goes on, so that who comes first is up to the server alone.
TEST(ServerProcess, H89_LongWorkOfOneDoesNotHoldUpTheOthers) {
  constexpr int kRequests = 400;
  EmbeddedServer server(LATCHKEY_COMMAND);
  server.start();
  RawClient greedy(server.connect_string(), 60s);
  RawClient other(server.connect_string(), 60s);
  ASSERT_TRUE(greedy.connect(60'000));
  ASSERT_TRUE(other.connect(60'000));
  wire::Create guarded = create_request("/guarded", CreateMode::kPersistent);
  guarded.acl.clear();
  for (int i = 0; i < 20'000; ++i) {
    guarded.acl.push_back({{31, "digest", "user" + std::to_string(i) + ":x"}});
  }
  guarded.acl.push_back({{31, "ip", "127.0.0.1"}});
  ASSERT_EQ(greedy.call(Op::kCreate, guarded)->header.err, Err::kOk);

  server.pause();
  for (int i = 0; i < kRequests; ++i) {
    greedy.add(Op::kGetData, wire::PathWatch{"/guarded", false});
  }
  ASSERT_TRUE(greedy.flush());
  const Fd asker = connect_to(Endpoint(server.connect_string()), deadline_in(60s));
  ASSERT_TRUE(send_all(asker.get(), "mntr", deadline_in(60s)));
  other.add(Op::kPing, wire::Empty{});
  ASSERT_TRUE(other.flush());
  server.resume();

  std::string answer;
  Received received = Received::kNothing;
  while (received != Received::kEnd) {
    ASSERT_TRUE(wait_ready(asker.get(), POLLIN, deadline_in(60s)));
    received = receive_some(asker.get(), answer);
  }
  const std::string_view label = "zk_packets_received\t";
  const std::size_t at = answer.find(label);
  ASSERT_NE(at, std::string::npos) << answer;
  EXPECT_LT(std::stoi(answer.substr(at + label.size())), kRequests / 2) << "all others came first";
  EXPECT_TRUE(other.receive());
  for (int i = 0; i < kRequests; ++i) ASSERT_EQ(greedy.receive()->header.err, Err::kOk) << i;
}

TEST(ServerProcess, H79_KilledWhileItMakesASnapshotItLosesNothing) {
  constexpr int kNodes = 4;
  const TempDir folder;
  EmbeddedOptions options;
  options.data = folder.path() / "data";
  EmbeddedServer second(LATCHKEY_COMMAND, options);
  options.environment = {std::string("LD_PRELOAD=") + LATCHKEY_FDATASYNC_SHIM,
                         "KILL_AT_FDATASYNC_OF=snapshot.tmp",
                         // The shim comes before the sanitizer's own library.
                         "ASAN_OPTIONS=verify_asan_link_order=0"};
  EmbeddedServer first(LATCHKEY_COMMAND, options);
  first.start();
  RawClient client(first.connect_string(), 60s);
  ASSERT_TRUE(client.connect(60'000));
  for (int i = 0; i < kNodes; ++i) {
    const auto made =
        client.call(Op::kCreate, create_request("/" + std::to_string(i), CreateMode::kPersistent));
    ASSERT_EQ(made->header.err, Err::kOk);
  }

  // A snapshot is due after 64 MiB; the folder is read back, written anew, and then synced.
  std::map<int, int> acknowledged;
  for (int i = 0; i < 2'000; ++i) {
    const std::string path = "/" + std::to_string(i % kNodes);
    const std::string data = std::to_string(i) + "," + std::string(1'000'000, 'x');
    const auto reply = client.call(Op::kSetData, wire::SetData{path, data, -1});
    if (!reply) break;
    acknowledged[i % kNodes] = i;
  }

  EXPECT_EQ(first.wait(deadline_in(60s)), kKilled);
  EXPECT_TRUE(std::filesystem::exists(options.data / "snapshot.tmp"));
  second.start();
  // Before anybody writes: then a new one is due.
  EXPECT_FALSE(std::filesystem::exists(options.data / "snapshot.tmp"));
  RawClient again(second.connect_string(), 60s);
  ASSERT_TRUE(again.connect(60'000));
  ASSERT_EQ(acknowledged.size(), static_cast<std::size_t>(kNodes));
  for (const auto& [node, last] : acknowledged) {
    const auto read = again.call(Op::kGetData, wire::PathWatch{"/" + std::to_string(node), false});
    ASSERT_EQ(read->header.err, Err::kOk);
    // The one that was on its way may be there or not.
    const int found = std::stoi(read->as<wire::GetDataReply>()->data.value_or("-1"));
    EXPECT_TRUE(found == last || found == last + kNodes) << found << " in place of " << last;
  }
}

/// The signal is there before the process is: it is asked to end before it has read anything.
TEST(ServerProcess, ASignalWhileItReadsItsDataEndsIt) {
  const TempDir folder;
  EmbeddedOptions options;
  options.data = folder.path() / "data";
  EmbeddedServer server(LATCHKEY_COMMAND, options);
  server.start();
  RawClient client(server.connect_string(), 60s);
  ASSERT_TRUE(client.connect(60'000));
  ASSERT_TRUE(client.call(Op::kCreate, create_request("/kept", CreateMode::kPersistent)));
  server.kill();
  options.prefix = {"/usr/bin/env", "--block-signal=TERM", "/bin/bash", "-c",
                    "kill -TERM $$; exec \"$0\" \"$@\""};
  EmbeddedServer asked(LATCHKEY_COMMAND, options);

  asked.launch();

  EXPECT_EQ(asked.wait(deadline_in(60s)), kFine);
  EXPECT_THAT(asked.log(), HasSubstr("ended before it had read its data"));
  EXPECT_THAT(asked.log(), Not(HasSubstr("serves on")));
  server.start();
  ASSERT_TRUE(client.connect(60'000));
  EXPECT_EQ(client.call(Op::kExists, wire::PathWatch{"/kept", false})->header.err, Err::kOk);
}

TEST(ServerProcess, AStartCanBeCancelledAndTriedAgain) {
  const TempDir folder;
  ServerOptions options;
  options.data_folder = folder.path() / "data";
  {
    auto server = Server::start(options);
    ASSERT_TRUE(server);
    RawClient client(server->connect_string());
    ASSERT_TRUE(client.connect(60'000));
    ASSERT_TRUE(client.call(Op::kCreate, create_request("/kept", CreateMode::kPersistent)));
  }
  std::stop_source source;
  source.request_stop();
  options.cancel_start = source.get_token();

  const auto cancelled = Server::start(options);

  ASSERT_FALSE(cancelled);
  EXPECT_EQ(cancelled.error(), Code::kCancelled);
  options.cancel_start = {};
  auto server = Server::start(options);
  ASSERT_TRUE(server);
  RawClient client(server->connect_string());
  ASSERT_TRUE(client.connect(60'000));
  EXPECT_EQ(client.call(Op::kExists, wire::PathWatch{"/kept", false})->header.err, Err::kOk);
}

TEST(ServerProcess, H94_TheUnixSocketIsForItsUserOnly) {
  const mode_t before = ::umask(0);
  auto server = Server::start_in_temp_folder();
  ::umask(before);
  ASSERT_TRUE(server);
  struct stat status {};

  ASSERT_EQ(::stat(server->unix_path().c_str(), &status), 0);

  EXPECT_TRUE(S_ISSOCK(status.st_mode));
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
}

}  // namespace
}  // namespace latchkey::test_support
