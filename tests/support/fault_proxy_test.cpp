#include "support/fault_proxy.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "support/eventually.hpp"
#include "support/raw_client.hpp"
#include "support/shared_servers.hpp"

namespace latchkey::test_support {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using wire::CreateMode;
using wire::Err;
using wire::Op;

/// A client that speaks through a proxy_, and a witness that does not.
class FaultProxyTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto session = client_.connect(30'000);
    ASSERT_TRUE(session);
    earlier_ = *session;
    ASSERT_TRUE(witness_.connect(30'000));
  }

  void add_create(const std::string& node) {
    client_.add(Op::kCreate2, create_request(node, CreateMode::kPersistent));
  }
  void add_list() { client_.add(Op::kGetChildren, wire::PathWatch{"/", false}); }

  bool on_server(const std::string& node) {
    const auto reply = witness_.call(Op::kExists, wire::PathWatch{node, false});
    return reply && reply->header.err == Err::kOk;
  }

  std::optional<std::int32_t> next_xid() {
    const auto reply = client_.receive();
    if (!reply) return std::nullopt;
    return reply->header.xid;
  }

  const std::string path_ = fresh_path();
  FaultProxy proxy_{shared_server().connect_string()};
  RawClient client_{proxy_.connect_string()};
  RawClient witness_{shared_server().connect_string()};
  wire::ConnectResponse earlier_;
};

TEST_F(FaultProxyTest, RecordsWhatPassesAndWhatCameInOneFlush) {
  add_create(path_);
  add_list();
  ASSERT_TRUE(client_.flush());
  ASSERT_EQ(next_xid(), 1);
  ASSERT_EQ(next_xid(), 2);
  ASSERT_TRUE(client_.call(Op::kDelete, wire::PathVersion{path_, -1}));

  const std::vector<TrafficRecord> records = proxy_.log().records();
  std::vector<TrafficRecord> requests;
  std::copy_if(records.begin(), records.end(), std::back_inserter(requests),
               [](const TrafficRecord& r) { return r.direction == Direction::kToServer; });
  ASSERT_EQ(requests.size(), 4U);
  EXPECT_EQ(requests[0].op, Op::kCreateSession);
  EXPECT_EQ(requests[1].op, Op::kCreate2);
  EXPECT_EQ(requests[1].path, path_);
  EXPECT_EQ(requests[1].xid, 1);
  EXPECT_EQ(requests[2].op, Op::kGetChildren);
  EXPECT_EQ(requests[2].flush, requests[1].flush);
  EXPECT_EQ(requests[3].flush, requests[2].flush + 1);
  EXPECT_EQ(requests[3].connection, 1);
  EXPECT_EQ(proxy_.log().count(replies_to(Op::kDelete)), 1U);
  EXPECT_GT(proxy_.log().bytes(Direction::kToClient), 0U);
}

TEST_F(FaultProxyTest, CutBeforeRequestAnswersWhatCameFirstAndHidesTheRest) {
  const int cut = proxy_.cut_before_request(Op::kGetChildren);
  add_create(path_);
  add_list();
  add_create(path_ + "-after");
  ASSERT_TRUE(client_.flush());

  EXPECT_EQ(next_xid(), 1);
  EXPECT_TRUE(client_.ended());
  EXPECT_TRUE(proxy_.wait_until_fired(cut));
  EXPECT_TRUE(on_server(path_));
  EXPECT_FALSE(on_server(path_ + "-after"));
  EXPECT_EQ(proxy_.log().count(replies_to(Op::kGetChildren)), 0U);
}

TEST_F(FaultProxyTest, CutAfterRequestLosesTheReplyButNotTheEffect) {
  const int cut = proxy_.cut_after_request(Op::kCreate2);
  add_create(path_);
  add_create(path_ + "-after");
  ASSERT_TRUE(client_.flush());

  EXPECT_EQ(next_xid(), std::nullopt);
  EXPECT_TRUE(proxy_.wait_until_fired(cut));
  EXPECT_TRUE(on_server(path_));
  EXPECT_FALSE(on_server(path_ + "-after"));
}

TEST_F(FaultProxyTest, CutBeforeReplyLetsEveryRequestThrough) {
  const int cut = proxy_.cut_before_reply({Op::kCreate2, 2});
  add_create(path_);
  add_create(path_ + "-second");
  add_create(path_ + "-third");
  ASSERT_TRUE(client_.flush());

  EXPECT_EQ(next_xid(), 1);
  EXPECT_EQ(next_xid(), std::nullopt);
  EXPECT_TRUE(proxy_.wait_until_fired(cut));
  EXPECT_TRUE(on_server(path_ + "-second"));
  EXPECT_TRUE(eventually([&] { return on_server(path_ + "-third"); }));
}

TEST_F(FaultProxyTest, CutAfterReplyDeliversItAndNothingElse) {
  proxy_.cut_after_reply(Op::kCreate2);
  add_create(path_);
  add_list();
  ASSERT_TRUE(client_.flush());

  EXPECT_EQ(next_xid(), 1);
  EXPECT_EQ(next_xid(), std::nullopt);
  EXPECT_TRUE(client_.ended());
}

TEST_F(FaultProxyTest, ACutSessionCanAttachAgain) {
  proxy_.cut_after_reply(Op::kCreateSession);
  const auto again = client_.connect(30'000, earlier_);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->session_id, earlier_.session_id);
  EXPECT_TRUE(client_.ended());

  proxy_.cut_before_request({Op::kCreateSession, 1, 2});
  EXPECT_FALSE(client_.connect(30'000, earlier_));
  EXPECT_FALSE(client_.connect(30'000, earlier_));
  EXPECT_TRUE(client_.connect(30'000, earlier_));
  EXPECT_EQ(proxy_.connections_accepted(), 5);
}

TEST_F(FaultProxyTest, OnlyTheNamedPathIsStruck) {
  const int cut = proxy_.cut_after_request(Match(Op::kCreate2).on("-struck"));
  add_create(path_);
  ASSERT_TRUE(client_.flush());
  EXPECT_EQ(next_xid(), 1);
  EXPECT_EQ(proxy_.fired(cut), 0);

  add_create(path_ + "-struck");
  ASSERT_TRUE(client_.flush());
  EXPECT_EQ(next_xid(), std::nullopt);
  EXPECT_TRUE(on_server(path_ + "-struck"));
}

TEST_F(FaultProxyTest, DelaysARequestOrReplyAndAllBehindIt) {
  proxy_.delay_reply(Op::kCreate2, milliseconds(150));
  const Instant start = BootClock::now();
  add_create(path_);
  add_list();
  ASSERT_TRUE(client_.flush());

  EXPECT_EQ(next_xid(), 1);
  EXPECT_GE(BootClock::now() - start, milliseconds(150));
  EXPECT_EQ(next_xid(), 2);
}

TEST_F(FaultProxyTest, StopsAtARequestUntilReleased) {
  const int stop = proxy_.stop_at_request(Op::kCreate2);
  add_create(path_);
  add_list();
  ASSERT_TRUE(client_.flush());
  ASSERT_TRUE(proxy_.wait_until_fired(stop));
  EXPECT_FALSE(on_server(path_));

  proxy_.release();

  EXPECT_EQ(next_xid(), 1);
  EXPECT_EQ(next_xid(), 2);
  EXPECT_TRUE(on_server(path_));
}

TEST_F(FaultProxyTest, HoldsOneDirectionWhileTcpStaysUp) {
  proxy_.hold(Hold::kToClient);
  add_create(path_);
  ASSERT_TRUE(client_.flush());
  EXPECT_TRUE(eventually([&] { return on_server(path_); }));
  EXPECT_EQ(proxy_.connections_open(), 1U);
  proxy_.release();
  EXPECT_EQ(next_xid(), 1);

  proxy_.hold(Hold::kToServer);
  add_create(path_ + "-b");
  ASSERT_TRUE(client_.flush());
  EXPECT_FALSE(eventually([&] { return on_server(path_ + "-b"); }, deadline_in(milliseconds(100))));
  proxy_.release();
  EXPECT_EQ(next_xid(), 2);
}

TEST_F(FaultProxyTest, CutsRefusesAndAcceptsOnCommand) {
  proxy_.refuse();
  EXPECT_EQ(proxy_.connections_open(), 1U);
  proxy_.cut_all();
  EXPECT_TRUE(client_.ended());
  EXPECT_FALSE(connect_to(Endpoint(proxy_.connect_string()), deadline_in(seconds(1))));

  proxy_.accept();
  ASSERT_TRUE(client_.connect(30'000, earlier_));
  proxy_.reset_all();
  EXPECT_TRUE(client_.ended());
  EXPECT_EQ(proxy_.connections_open(), 0U);
}

TEST_F(FaultProxyTest, PassesWatchEventsAndFourLetterWords) {
  ASSERT_TRUE(client_.call(Op::kExists, wire::PathWatch{path_, true}));
  ASSERT_TRUE(witness_.call(Op::kCreate2, create_request(path_, CreateMode::kPersistent)));
  EXPECT_EQ(next_xid(), wire::kNotificationXid);
  const std::vector<TrafficRecord> records = proxy_.log().records();
  EXPECT_EQ(records.back().op, Op::kNotification);
  EXPECT_EQ(records.back().path, path_);

  const Fd fd = connect_to(Endpoint(proxy_.connect_string()), deadline_in(seconds(20)));
  ASSERT_TRUE(send_all(fd.get(), "ruok", deadline_in(seconds(20))));
  std::string answer;
  EXPECT_TRUE(eventually([&] { return receive_some(fd.get(), answer) == Received::kEnd; }));
  EXPECT_EQ(answer, "imok");
}

TEST_F(FaultProxyTest, ListensOnAUnixSocketAndCanBePointedElsewhere) {
  const TempDir folder;
  FaultProxyOptions options;
  options.listen = "unix:" + (folder.path() / "socket").string();
  FaultProxy local(loopback(free_port()), options);
  RawClient through(local.connect_string());
  EXPECT_FALSE(through.connect(4000));

  local.retarget(shared_server().connect_string());

  EXPECT_TRUE(through.connect(4000));
}

}  // namespace
}  // namespace latchkey::test_support
