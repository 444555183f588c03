#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "tree/service.hpp"
#include "tree/service_rig.hpp"

// More is on its way to a slow disk than may be: whose turn does not come, and whose does.
namespace latchkey::tree {
namespace {

using namespace std::chrono_literals;
using testing::SizeIs;
using wire::Err;
using wire::Op;
using Client = test::ServiceRig::Client;
using test::node;

ServiceOptions overfull_options() {
  ServiceOptions options;
  options.max_request_bytes = 26'000;
  return options;
}

class ServiceOverfullTest : public testing::Test, public test::ServiceRig {
 protected:
  ServiceOverfullTest() : ServiceRig(overfull_options()) {}

  /// So many clients that each have one write accepted; with four the server is overfull.
  std::vector<Client*> flood(int count = 4) {
    std::vector<Client*> writers;
    for (int i = 0; i < count; ++i) writers.push_back(&open());
    for (Client* writer : writers) ask(*writer, Op::kCreate, large());
    return writers;
  }

  wire::Create large() { return node("/large" + std::to_string(++made_), std::string(7'000, 'x')); }

 private:
  int made_ = 0;
};

TEST_F(ServiceOverfullTest, H89_AllConnectionsTogetherHaveSoManyBytesUnderWay) {
  const std::vector<Client*> writers = flood(6);

  EXPECT_EQ(service->in_flight(), 4U);
  EXPECT_FALSE(service->wants_input(writers[4]->peer));
  EXPECT_FALSE(service->wants_input(writers[5]->peer));
  sync();
  for (const Client* writer : writers) {
    EXPECT_THAT(writer->inbox, SizeIs(1));
    EXPECT_TRUE(service->wants_input(writer->peer));
  }
}

/// 250 bytes of memory for each, whatever they say.
TEST_F(ServiceOverfullTest, H89_ManySmallRequestsAreMuchAsWell) {
  std::vector<Client*> crowd;
  for (int i = 0; i < 300; ++i) crowd.push_back(&open());
  ask(*crowd.front(), Op::kCreate, node("/a"));
  for (Client* client : crowd) ask(*client, Op::kSync, wire::PathOnly{""});

  EXPECT_LT(service->in_flight(), 150U);
  sync();
  EXPECT_EQ(service->in_flight_bytes(), 0U);
}

TEST_F(ServiceOverfullTest, H89_ReadsBehindAWriteOfTheirOwnWaitOutside) {
  const std::vector<Client*> writers = flood();
  const std::size_t before = service->in_flight_bytes();
  std::string bytes;
  for (int i = 0; i < 100; ++i) {
    wire::append_frame(bytes, wire::RequestHeader{100 + i, Op::kExists},
                       wire::PathWatch{"/" + std::string(500, 'x'), false});
  }
  for (Client* writer : writers) feed(*writer, bytes);

  EXPECT_EQ(service->in_flight_bytes(), before);
  sync();
  for (const Client* writer : writers) EXPECT_THAT(writer->inbox, SizeIs(101));
}

TEST_F(ServiceOverfullTest, AReadOrAHeartbeatWaitsForNobodysWrite) {
  Client& reader = open();
  Client& maker = open();
  call(maker, Op::kCreate, node("/a"));
  flood();

  ask(reader, Op::kGetData, wire::PathWatch{"/a", true});
  ask(reader, Op::kPing, wire::Empty{});

  EXPECT_THAT(reader.inbox, SizeIs(2));
  EXPECT_TRUE(service->wants_input(reader.peer));
}

TEST_F(ServiceOverfullTest, WhatComesBehindAWriteThatWaitsKeepsItsPlace) {
  Client& client = open();
  flood();
  const auto read = ask(client, Op::kExists, wire::PathWatch{"/late", false});
  const auto write = ask(client, Op::kCreate, node("/late"));
  const auto again = ask(client, Op::kExists, wire::PathWatch{"/late", false});

  ASSERT_THAT(client.inbox, SizeIs(1)) << "the first has nothing to wait for";
  EXPECT_FALSE(service->wants_input(client.peer));
  sync();
  ASSERT_THAT(client.inbox, SizeIs(3));
  EXPECT_EQ(client.inbox[0].header.xid, read);
  EXPECT_EQ(client.inbox[0].header.err, Err::kNoNode);
  EXPECT_EQ(client.inbox[1].header.xid, write);
  EXPECT_EQ(client.inbox[2].header.xid, again);
  EXPECT_EQ(client.inbox[2].header.err, Err::kOk);
}

/// So that those who wait hold little: what has not come stays with its sender.
TEST_F(ServiceOverfullTest, AWriteIsKnownBeforeAllOfItHasCome) {
  Client& client = open();
  flood();
  std::string frame;
  wire::append_frame(frame, wire::RequestHeader{1, Op::kSetData},
                     wire::SetData{"/a", std::string(100'000, 'x'), -1});

  feed(client, std::string_view(frame).substr(0, 11));
  EXPECT_TRUE(service->wants_input(client.peer)) << "it may be a read";
  feed(client, std::string_view(frame).substr(11, 1));
  EXPECT_FALSE(service->wants_input(client.peer));

  sync();
  EXPECT_TRUE(service->wants_input(client.peer));
  feed(client, std::string_view(frame).substr(12));
  sync();
  EXPECT_THAT(client.inbox, SizeIs(1));
}

TEST_F(ServiceOverfullTest, WhoeverCameFirstIsTakenUpFirst) {
  std::vector<Client*> line;
  for (int i = 0; i < 40; ++i) line.push_back(&open());
  flood();
  for (Client* client : line) ask(*client, Op::kCreate, large());
  std::vector<std::int64_t> zxids;
  sync();

  for (Client* client : line) zxids.push_back(take(*client).header.zxid);
  EXPECT_TRUE(std::ranges::is_sorted(zxids));
}

TEST_F(ServiceOverfullTest, WhoHangsUpWhileItWaitsIsForgotten) {
  Client& client = open();
  flood();
  ask(client, Op::kCreate, node("/never"));
  hang_up(client);

  sync();

  EXPECT_EQ(service->tree().nodes().find("/never"), nullptr);
  EXPECT_EQ(service->in_flight_bytes(), 0U);
}

// Sessions and handshakes.

TEST_F(ServiceOverfullTest, H85_TheDeadRunOutAndWhoWaitsForUsDoesNot) {
  Client& silent = open();
  Client& pinging = open();
  const std::vector<Client*> writers = flood(5);  // The last one waits outside.
  for (int i = 0; i < 6; ++i) {
    pass(2'000ms);
    ask(pinging, Op::kPing, wire::Empty{});
  }
  EXPECT_EQ(service->statistics().sessions_expired, 1U);
  sync();

  EXPECT_TRUE(silent.closed);
  EXPECT_FALSE(pinging.closed);
  for (const Client* writer : writers) {
    EXPECT_FALSE(writer->closed);
    EXPECT_THAT(writer->inbox, SizeIs(1));
  }
  for (int i = 0; i < 6; ++i) pass(2'000ms);
  sync();
  EXPECT_TRUE(writers.back()->closed) << "nor does it live for ever";
}

TEST_F(ServiceOverfullTest, H85_HalfAWriteIsNoSignOfLifeHoweverOftenWeAreFull) {
  Client& dead = open();
  Client& slow = open();
  std::string frame;
  wire::append_frame(frame, wire::RequestHeader{1, Op::kCreate}, node("/late"));
  feed(dead, std::string_view(frame).substr(0, 20));
  feed(slow, std::string_view(frame).substr(0, 20));
  const std::vector<Client*> writers = flood();
  for (std::size_t i = 0; i < 8; ++i) {
    ASSERT_FALSE(service->wants_input(slow.peer));
    static_cast<void>(service->wants_input(dead.peer));
    pass(2'000ms);
    sync();
    feed(slow, std::string_view(frame).substr(20 + i, 1));
    for (Client* writer : writers) ask(*writer, Op::kCreate, large());
  }
  sync();

  EXPECT_TRUE(dead.closed);
  EXPECT_FALSE(slow.closed);
}

/// The line is long and the disk slow: the rest of its write lies in its socket all the while.
TEST_F(ServiceOverfullTest, H85_WhoeverCouldNotBeReadFromWasNotSilent) {
  Client& last = open();
  const std::vector<Client*> writers = flood(60);  // A second's batch takes four of them.
  std::string frame;
  wire::append_frame(frame, wire::RequestHeader{1, Op::kCreate}, node("/late"));
  feed(last, std::string_view(frame).substr(0, 20));
  int seconds = 0;
  for (; !service->wants_input(last.peer); ++seconds) {
    ASSERT_FALSE(last.closed) << "after " << seconds << " s";
    ASSERT_LT(seconds, 60);
    const std::int64_t zxid = pending.back().zxid;
    now += 1'000ms;
    service->stored(zxid, moment());
    deliver();
    service->tick(moment());
    deliver();
  }

  feed(last, std::string_view(frame).substr(20));
  sync();

  EXPECT_GT(seconds, 8) << "twice its time-out";
  EXPECT_THAT(last.inbox, SizeIs(1));
  for (const Client* writer : writers) EXPECT_THAT(writer->inbox, SizeIs(1));
}

TEST_F(ServiceOverfullTest, H85_NorInTheVeryMomentInWhichTheWaitEnds) {
  const std::vector<Client*> writers = flood(5);
  for (int i = 0; i < 6; ++i) pass(2'000ms);

  sync_and_strike(4'000ms);

  EXPECT_FALSE(writers.back()->closed);
  EXPECT_THAT(writers.back()->inbox, SizeIs(1));
}

/// Half a record of TLS, say, is no input, and the driver asks all the same.
TEST_F(ServiceOverfullTest, H85_WhoIsRefusedInputIsWokenHoweverItCameToThat) {
  Client& client = open();
  std::string frame;
  wire::append_frame(frame, wire::RequestHeader{1, Op::kCreate}, node("/late"));
  feed(client, std::string_view(frame).substr(0, 20));
  flood();
  ASSERT_FALSE(service->wants_input(client.peer));
  const std::int64_t last = pending.back().zxid;

  service->stored(last, moment());

  EXPECT_THAT(service->take_ready(), testing::Contains(client.peer));
  EXPECT_TRUE(service->wants_input(client.peer));
}

TEST_F(ServiceOverfullTest, HandshakesGoOn) {
  Client& old = open();
  hang_up(old);
  flood();

  Client& fresh = dial();
  greet(fresh);
  Client& again = dial();
  greet(again, 4'000, old.session);

  EXPECT_EQ(service->in_flight(), 6U);
  sync();
  EXPECT_NE(fresh.session.session_id, 0);
  EXPECT_EQ(again.session.session_id, old.session.session_id);
}

TEST_F(ServiceOverfullTest, H89_HandshakesInTheirThousandsWaitAndNoneIsGivenUp) {
  flood();
  std::vector<Client*> crowd;
  for (int i = 0; i < 200; ++i) greet(*crowd.emplace_back(&dial()));
  Client& slow = dial();
  EXPECT_LT(service->in_flight_bytes(), 40'000U);
  for (int i = 0; i < 10; ++i) pass(2'000ms);
  sync();

  for (const Client* client : crowd) EXPECT_NE(client->session.session_id, 0);
  EXPECT_FALSE(slow.closed);
  for (int i = 0; i < 6; ++i) {
    pass(2'000ms);
    sync();
  }
  EXPECT_TRUE(slow.closed) << "now it is not we who keep it waiting";
}

/// The disk takes longer than a handshake may.
TEST_F(ServiceOverfullTest, WhoHasAskedForASessionWaitsForUs) {
  Client& client = dial();
  greet(client);
  for (int i = 0; i < 10; ++i) pass(2'000ms);
  EXPECT_FALSE(client.closed);

  sync();

  EXPECT_NE(client.session.session_id, 0);
}

}  // namespace
}  // namespace latchkey::tree
