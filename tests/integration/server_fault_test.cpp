#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "integration/held_disk.hpp"
#include "server/driver.hpp"
#include "server/words.hpp"
#include "support/eventually.hpp"
#include "support/raw_client.hpp"
#include "support/sockets.hpp"
#include "support/temp_dir.hpp"

// The border of the server over a journal that misbehaves.
namespace latchkey::server {
namespace {

using namespace std::chrono_literals;
using test_support::create_request;
using test_support::eventually;
using test_support::RawClient;
using testing::HasSubstr;
using wire::CreateMode;
using wire::Err;
using wire::Op;

class ServerFault : public testing::TestWithParam<CommitOn> {
 protected:
  /// Not so short that it runs out between two calls of a test that is kept waiting.
  static constexpr int kTimeoutMs = 8'000;
  static constexpr int kForEverMs = 600'000;

  ServerFault() : ServerFault([](ServerOptions&) {}) {}
  template <class Change>
  explicit ServerFault(Change change) : driver_(changed(options(errors_), change), nullptr) {}
  ~ServerFault() override { disk_.let_go(); }

  static ServerOptions options(std::atomic<int>& errors) {
    ServerOptions options;
    options.tick = 20ms;
    options.min_session_timeout = 50ms;
    options.max_session_timeout = std::chrono::milliseconds(kForEverMs);
    options.words = server::settle_words({"all"}).value();
    options.log = [&errors](LogLevel level, std::string_view) {
      if (level == LogLevel::kError) ++errors;
    };
    return options;
  }

  template <class Change>
  static ServerOptions changed(ServerOptions options, Change change) {
    change(options);
    return options;
  }

  Result<void> start() { return start(Listener::open_tcp("127.0.0.1:0").value()); }
  Result<void> start(Listener door) {
    Doors doors;
    doors.clients.push_back(std::move(door));
    return driver_.start(std::make_unique<DiskJournal>(disk_), GetParam(), std::move(doors));
  }
  [[nodiscard]] RawClient client() const { return RawClient(driver_.addresses().front()); }
  /// The value of a line of the word mntr.
  [[nodiscard]] int monitored(const std::string& name) const {
    const std::string lines = test_support::ask_word(
        test_support::Endpoint(driver_.addresses().front()), "mntr", deadline_in(20s));
    const std::size_t at = lines.find("zk_" + name + "\t");
    return at == std::string::npos ? -1 : std::stoi(lines.substr(at + name.size() + 4));
  }

  std::atomic<int> errors_ = 0;
  Disk disk_;
  Driver driver_;
};

INSTANTIATE_TEST_SUITE_P(, ServerFault, testing::Values(CommitOn::kLoop, CommitOn::kOwnThread),
                         [](const auto& where) {
                           return where.param == CommitOn::kLoop ? "OnTheLoop" : "OnItsOwnThread";
                         });

TEST_P(ServerFault, H82_WithoutADurableEpochNobodyIsLetIn) {
  disk_.fail_from_now_on();

  const Result<void> started = start();

  ASSERT_FALSE(started);
  EXPECT_EQ(started.error(), Code::kStorage);
}

TEST_P(ServerFault, H83_TheFirstErrorOfTheDiskEndsTheServerWithoutAnAnswer) {
  ASSERT_TRUE(start());
  RawClient writer = client();
  RawClient bystander = client();
  ASSERT_TRUE(writer.connect(10'000));
  ASSERT_TRUE(bystander.connect(10'000));
  disk_.fail_from_now_on();

  EXPECT_FALSE(writer.call(Op::kCreate, create_request("/a", CreateMode::kPersistent)));

  EXPECT_TRUE(bystander.ended());
  const Result<void> ended = driver_.wait();
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error(), Code::kStorage);
  EXPECT_THAT(ended.error().message(), HasSubstr("no space left"));
  EXPECT_EQ(driver_.stop().error(), Code::kStorage);
}

TEST_P(ServerFault, H83_ASessionThatCannotBeClosedDurablyIsNotExpired) {
  ASSERT_TRUE(start());
  RawClient owner = client();
  const auto session = owner.connect(10'000);
  ASSERT_TRUE(session);
  disk_.fail_from_now_on();

  const Result<void> expired = driver_.expire(session->session_id);

  EXPECT_EQ(expired.error(), Code::kClosed);
  EXPECT_EQ(driver_.wait().error(), Code::kStorage);
  EXPECT_TRUE(driver_.tree().sessions().contains(session->session_id));
}

TEST_P(ServerFault, H84_NothingIsAppendedAfterAFailure) {
  ASSERT_TRUE(start());
  RawClient writer = client();
  ASSERT_TRUE(writer.connect(10'000));
  const int before = disk_.appends();
  disk_.fail_from_now_on();

  for (int i = 0; i < 100; ++i) {
    writer.add(Op::kCreate, create_request("/" + std::to_string(i), CreateMode::kPersistent));
  }
  writer.flush();

  EXPECT_EQ(driver_.wait().error(), Code::kStorage);
  EXPECT_EQ(disk_.appends(), before + 1);
}

TEST_P(ServerFault, H85_AStallIsAddedToEverySessionsTime) {
  ASSERT_TRUE(start());
  RawClient writer = client();
  RawClient sender = client();
  RawClient silent = client();
  ASSERT_TRUE(writer.connect(kForEverMs));
  ASSERT_TRUE(sender.connect(kTimeoutMs));
  ASSERT_TRUE(silent.connect(kTimeoutMs));
  disk_.hold();
  writer.add(Op::kCreate, create_request("/a", CreateMode::kPersistent));
  ASSERT_TRUE(writer.flush());
  ASSERT_TRUE(eventually([&] { return disk_.waiting() == 1; }));

  // Longer than the time-out. One client keeps up its heartbeats, heard or not; the other one
  // sends nothing, and may do so if nobody could have heard it.
  const Instant over = BootClock::now() + std::chrono::milliseconds(kTimeoutMs * 3 / 2);
  int sent = 0;
  ASSERT_TRUE(eventually(
      [&] {
        sender.add(Op::kPing, wire::Empty{});
        ++sent;
        return !sender.flush() || BootClock::now() >= over;
      },
      deadline_in(60s)));
  disk_.let_go();

  if (GetParam() == CommitOn::kLoop) {
    const auto answer = silent.call(Op::kExists, wire::PathWatch{"/", false});
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->header.err, Err::kOk);
  }
  for (int i = 0; i < sent; ++i) ASSERT_TRUE(sender.receive()) << "heartbeat " << i;
  EXPECT_EQ(sender.call(Op::kCreate, create_request("/b", CreateMode::kEphemeral))->header.err,
            Err::kOk);
  EXPECT_EQ(writer.receive()->header.err, Err::kOk);
  if (GetParam() == CommitOn::kOwnThread) {
    EXPECT_TRUE(silent.ended());
  }
}

TEST_P(ServerFault, ADamageThatAFoldFindsIsShownAndTheServerGoesOn) {
  ASSERT_TRUE(start());
  RawClient writer = client();
  ASSERT_TRUE(writer.connect(10'000));
  disk_.fold_from_now_on(Disk::Folds::kWithDamage);
  ASSERT_TRUE(writer.call(Op::kCreate, create_request("/a", CreateMode::kPersistent)));

  const auto say = [this](const char* word) {
    return test_support::ask_word(test_support::Endpoint(driver_.addresses().front()), word,
                                  deadline_in(20s));
  };
  EXPECT_TRUE(
      eventually([&] { return say("mntr").find("zk_journal_damaged\t1\n") != std::string::npos; }));
  EXPECT_THAT(say("mntr"), HasSubstr("zk_snap_error_count\t1\n"));
  EXPECT_THAT(say("srvr"), HasSubstr("Journal: DAMAGED"));
  EXPECT_EQ(errors_, 1);
  EXPECT_EQ(writer.call(Op::kCreate, create_request("/b", CreateMode::kPersistent))->header.err,
            Err::kOk);
}

TEST_P(ServerFault, StopDoesNotWaitForAFold) {
  ASSERT_TRUE(start());
  RawClient writer = client();
  ASSERT_TRUE(writer.connect(10'000));
  disk_.fold_from_now_on(Disk::Folds::kForEver);
  ASSERT_TRUE(writer.call(Op::kCreate, create_request("/a", CreateMode::kPersistent)));
  ASSERT_TRUE(eventually([&] { return disk_.is_folding(); }));

  EXPECT_TRUE(driver_.stop());
}

/// While a journal works on the loop nothing is seen at all.
class ServerCommit : public ServerFault {};
INSTANTIATE_TEST_SUITE_P(, ServerCommit, testing::Values(CommitOn::kOwnThread),
                         [](const auto&) { return "OnItsOwnThread"; });

TEST_P(ServerCommit, H78_NobodySeesWhatIsNotDurable) {
  ASSERT_TRUE(start());
  RawClient writer = client();
  RawClient reader = client();
  ASSERT_TRUE(writer.connect(10'000));
  ASSERT_TRUE(reader.connect(10'000));
  const std::int64_t before = reader.call(Op::kExists, wire::PathWatch{"/a", true})->header.zxid;
  disk_.hold();
  writer.add(Op::kCreate, create_request("/a", CreateMode::kPersistent));
  ASSERT_TRUE(writer.flush());
  ASSERT_TRUE(eventually([&] { return disk_.waiting() == 1; }));

  const auto during = reader.call(Op::kExists, wire::PathWatch{"/a", false});

  ASSERT_TRUE(during);
  EXPECT_EQ(during->header.err, Err::kNoNode);
  EXPECT_EQ(during->header.zxid, before);
  disk_.let_go();
  EXPECT_EQ(reader.receive()->header.xid, wire::kNotificationXid);
  EXPECT_EQ(writer.receive()->header.err, Err::kOk);
}

/// 72 MB on their way to a disk that stands still: more than the server takes up.
TEST_P(ServerCommit, AFloodOfWritesHoldsUpNoReadNoHeartbeatAndNoEnd) {
  ASSERT_TRUE(start());
  std::vector<RawClient> flood;
  for (int i = 0; i < 80; ++i) {
    // Patient: who is left outside gets rid of its request only when the disk goes on.
    ASSERT_TRUE(flood.emplace_back(driver_.addresses().front(), 120s).connect(kForEverMs));
  }
  RawClient reader = client();
  RawClient silent = client();
  ASSERT_TRUE(reader.connect(kForEverMs));
  ASSERT_TRUE(silent.connect(kTimeoutMs));
  disk_.hold();
  std::vector<std::jthread> senders;
  for (std::size_t i = 0; i < flood.size(); ++i) {
    wire::Create request = create_request("/" + std::to_string(i), CreateMode::kPersistent);
    request.data = std::string(900'000, 'x');
    flood[i].add(Op::kCreate, request);
    senders.emplace_back([&, i] { EXPECT_TRUE(flood[i].flush()); });
  }

  // Some are left outside, and stay there: the rest goes on.
  ASSERT_TRUE(
      eventually([&] { return monitored("outstanding_requests") >= 70; }, deadline_in(60s)));
  ASSERT_TRUE(eventually(
      [&] {
        const auto read = reader.call(Op::kExists, wire::PathWatch{"/", false});
        const auto ping = reader.call(Op::kPing, wire::Empty{});
        EXPECT_TRUE(read && ping);
        return !read || !ping || monitored("stale_sessions_expired") > 0;
      },
      deadline_in(60s)));
  EXPECT_LT(monitored("outstanding_requests"), 80);
  EXPECT_EQ(disk_.waiting(), 1) << "nothing was durable meanwhile";

  disk_.let_go();
  for (std::jthread& sender : senders) sender.join();
  for (RawClient& writer : flood) EXPECT_EQ(writer.receive()->header.err, Err::kOk);
  EXPECT_TRUE(silent.ended());
  EXPECT_TRUE(reader.call(Op::kExists, wire::PathWatch{"/", false}));
}

class ServerPatience : public ServerFault {
 protected:
  ServerPatience()
      : ServerFault([](ServerOptions& options) { options.max_requests_per_connection = 1; }) {}

  const test_support::TempDir folder_;
};
INSTANTIATE_TEST_SUITE_P(, ServerPatience, testing::Values(CommitOn::kOwnThread),
                         [](const auto&) { return "OnItsOwnThread"; });

/// It is not listened to while its one request is under way, and by then its answers fill the
/// socket, so that nothing can be written to it either.
TEST_P(ServerPatience, H85_WhoDoesNotReadIsHeardAgainWhenItsRequestIsDone) {
  ASSERT_TRUE(start(Listener::open_unix(folder_.path() / "socket").value()));
  RawClient maker = client();
  RawClient slow = client();
  ASSERT_TRUE(maker.connect(kForEverMs));
  wire::Create large = create_request("/large", CreateMode::kPersistent);
  large.data = std::string(900'000, 'x');
  ASSERT_TRUE(maker.call(Op::kCreate, large));
  ASSERT_TRUE(slow.connect(kTimeoutMs));
  ASSERT_TRUE(slow.call(Op::kCreate, create_request("/slow", CreateMode::kEphemeral)));
  disk_.hold();
  slow.add(Op::kGetData, wire::PathWatch{"/large", false});
  slow.add(Op::kCreate, create_request("/more", CreateMode::kPersistent));
  ASSERT_TRUE(slow.flush());
  ASSERT_TRUE(eventually([&] { return disk_.waiting() == 1; }));
  disk_.let_go();
  RawClient silent = client();
  ASSERT_TRUE(silent.connect(kTimeoutMs));
  ASSERT_TRUE(silent.call(Op::kCreate, create_request("/silent", CreateMode::kEphemeral)));
  const auto is_there = [&](const char* path) {
    return maker.call(Op::kExists, wire::PathWatch{path, false})->header.err == Err::kOk;
  };

  ASSERT_TRUE(eventually(
      [&] {
        slow.add(Op::kPing, wire::Empty{});
        return !slow.flush() || !is_there("/silent");
      },
      deadline_in(60s)));

  EXPECT_TRUE(is_there("/slow"));
}

TEST_P(ServerFault, WhatGathersWhileTheDiskWorksIsOneBatch) {
  ASSERT_TRUE(start());
  RawClient writer = client();
  RawClient crowd = client();
  ASSERT_TRUE(writer.connect(10'000));
  ASSERT_TRUE(crowd.connect(10'000));
  const int before = disk_.appends();
  disk_.hold();
  writer.add(Op::kCreate, create_request("/first", CreateMode::kPersistent));
  ASSERT_TRUE(writer.flush());
  ASSERT_TRUE(eventually([&] { return disk_.waiting() == 1; }));
  for (int i = 0; i < 500; ++i) {
    crowd.add(Op::kCreate, create_request("/" + std::to_string(i), CreateMode::kPersistent));
  }
  ASSERT_TRUE(crowd.flush());
  disk_.let_go();

  for (int i = 0; i < 500; ++i) ASSERT_EQ(crowd.receive()->header.err, Err::kOk);

  EXPECT_LE(disk_.appends() - before, 10);
}

TEST_P(ServerFault, StopAnswersWhatWasTaken) {
  ASSERT_TRUE(start());
  RawClient writer = client();
  ASSERT_TRUE(writer.connect(10'000));
  disk_.hold();
  writer.add(Op::kCreate, create_request("/a", CreateMode::kPersistent));
  ASSERT_TRUE(writer.flush());
  ASSERT_TRUE(eventually([&] { return disk_.waiting() == 1; }));

  std::thread stopping([this] { EXPECT_TRUE(driver_.stop()); });
  disk_.let_go();
  const auto answer = writer.receive();
  stopping.join();

  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->header.err, Err::kOk);
  EXPECT_TRUE(writer.ended());
}

/// More than the sockets hold between them; the reader begins when the server has closed its doors.
TEST_P(ServerFault, StopLetsALateReaderTakeItsAnswers) {
  constexpr int kAnswers = 24;
  ASSERT_TRUE(start());
  RawClient reader = client();
  ASSERT_TRUE(reader.connect(kForEverMs));
  wire::Create large = create_request("/large", CreateMode::kPersistent);
  large.data = std::string(1'000'000, 'x');
  ASSERT_TRUE(reader.call(Op::kCreate, large));
  for (int i = 0; i < kAnswers; ++i) reader.add(Op::kGetData, wire::PathWatch{"/large", false});
  ASSERT_TRUE(reader.flush());
  ASSERT_TRUE(reader.receive());  // They have come, all of them.
  reader.add(Op::kPing, wire::Empty{});
  ASSERT_TRUE(reader.flush());  // What is not read any more must not become a reset.

  std::thread stopping([this] { EXPECT_TRUE(driver_.stop()); });
  EXPECT_TRUE(eventually([this] { return !client().dial(); }));
  int taken = 1;
  while (taken < kAnswers && reader.receive()) ++taken;
  stopping.join();

  EXPECT_EQ(taken, kAnswers);
}

}  // namespace
}  // namespace latchkey::server
