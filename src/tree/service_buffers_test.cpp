#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "tree/service.hpp"
#include "tree/service_rig.hpp"

// What waits on either side of the connections, and who waits or goes because of it.
namespace latchkey::tree {
namespace {

using namespace std::chrono_literals;
using testing::SizeIs;
using wire::Err;
using wire::Op;
using Client = test::ServiceRig::Client;
using test::node;

constexpr std::size_t kMostBuffered = 4'000'000;
constexpr std::size_t kMostOutput = 3'000'000;
/// Two answers of it fill a connection.
constexpr std::size_t kLarge = 600'000;

ServiceOptions buffer_options() {
  ServiceOptions options;
  options.max_buffered = kMostBuffered;
  options.max_output_per_peer = kMostOutput;
  options.max_sessions_per_origin = 30;
  return options;
}

class ServiceBuffersTest : public testing::Test, public test::ServiceRig {
 protected:
  ServiceBuffersTest() : ServiceRig(buffer_options()) {
    Client& maker = open();
    call(maker, Op::kCreate, node("/large", std::string(kLarge, 'x')));
    call(maker, Op::kCreate, node("/hot"));
    call(maker, Op::kCloseSession, wire::Empty{});
  }

  static std::string reads_of_large(int count) {
    std::string bytes;
    for (int i = 1; i <= count; ++i) {
      wire::append_frame(bytes, wire::RequestHeader{i, Op::kGetData},
                         wire::PathWatch{"/large", false});
    }
    return bytes;
  }

  static std::string half_request() {
    std::string bytes;
    wire::append_frame(bytes, wire::RequestHeader{1, Op::kCreate},
                       node("/a", std::string(600'000, 'x')));
    bytes.resize(bytes.size() - 1'000);
    return bytes;
  }

  /// A client to whom so much is sent that it does not take.
  Client& open_slow(std::size_t bytes) {
    Client& client = open();
    client.reads = false;
    const std::string path = "/" + std::string(bytes, 'n');
    ask(client, Op::kSync, wire::PathOnly{path.substr(0, bytes)});
    sync();
    if (client.closed) return client;
    const std::string output = service->take_output(client.peer, moment());
    service->left_unwritten(client.peer, output.size(), moment());
    return client;
  }

  [[nodiscard]] const Peer& peer(const Client& client) const {
    return *service->peers().at(client.peer);
  }
};

TEST_F(ServiceBuffersTest, H90_WhenAllTogetherHoldTooMuchThoseWithTheMostGo) {
  Client& little = open_slow(100'000);
  Client& some = open_slow(500'000);
  std::vector<Client*> greedy;
  for (int i = 0; i < 4; ++i) greedy.push_back(&open_slow(800'000));
  EXPECT_EQ(service->statistics().crowded_out, 0U);

  Client& last = open_slow(700'000);

  EXPECT_LE(service->buffered_bytes(), kMostBuffered);
  EXPECT_EQ(service->statistics().crowded_out, 2U);
  EXPECT_EQ(std::ranges::count_if(greedy, [](Client* client) { return client->closed; }), 2);
  for (const Client* client : {&little, &some, &last}) EXPECT_FALSE(client->closed);
}

TEST_F(ServiceBuffersTest, H90_EventsAreBoundedInAllAndNoSingleOneIsLost) {
  Client& writer = open();
  Client& reader = open();
  std::vector<Client*> watchers = {&reader};
  for (int i = 0; i < 20; ++i) watchers.push_back(&open());
  for (Client* watcher : watchers) {
    call(*watcher, Op::kAddWatch, wire::AddWatch{"/hot", wire::AddWatchMode::kPersistent});
    watcher->reads = watcher == &reader;
  }
  wire::Multi multi;
  multi.ops.assign(1'000, {Op::kSetData, wire::SetData{"/hot", "y", -1}});
  std::size_t most = 0;
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(call(writer, Op::kMulti, multi).header.err, Err::kOk);
    most = std::max(most, service->buffered_bytes());
  }

  EXPECT_LE(most, kMostBuffered);
  EXPECT_THAT(reader.inbox, SizeIs(20'000));
  EXPECT_GT(service->statistics().crowded_out, 0U);
  // Whoever is still there has all that came, and nobody else has a watch left.
  for (Client* watcher : watchers) {
    EXPECT_EQ(service->tree().watches().count(watcher->peer) == 0, watcher->closed);
    if (watcher->closed) continue;
    watcher->reads = true;
    const auto ping = ask(*watcher, Op::kPing, wire::Empty{});
    EXPECT_EQ(watcher->inbox.back().header.xid, ping);
    EXPECT_GE(watcher->inbox.size(), 20'000U);
  }
}

TEST_F(ServiceBuffersTest, H90_WhoHasTakenNothingForAWhileGoesFirst) {
  Client& dead = open_slow(10'000);
  Client& lively = open_slow(900'000);
  for (std::size_t i = 1; i <= 4; ++i) {
    pass(2'000ms);
    ask(dead, Op::kPing, wire::Empty{});
    service->left_unwritten(lively.peer, 900'000 - 40'000 * i, moment());
  }
  ASSERT_FALSE(dead.closed);
  ASSERT_FALSE(lively.closed);

  // The last one is over the bound, by less than the dead one holds.
  for (int i = 0; i < 3; ++i) open_slow(900'000);
  open_slow(555'000);

  EXPECT_TRUE(dead.closed);
  EXPECT_FALSE(lively.closed) << "it takes what it gets";
}

/// Its requests wait for their answers to be taken; nothing more is to come from it.
TEST_F(ServiceBuffersTest, H90_AReaderThatTakesWhatItGetsOutstaysHalfRequestsThatTrickle) {
  Client& reader = open();
  reader.reads = false;
  feed(reader, reads_of_large(10));
  std::size_t left = service->take_output(reader.peer, moment()).size();
  service->left_unwritten(reader.peer, left, moment());
  std::vector<Client*> trickling;
  for (int i = 0; i < 4; ++i) {
    trickling.push_back(&open());
    feed(*trickling.back(), half_request());
  }
  for (int i = 0; i < 12; ++i) {
    pass(500ms);
    for (Client* client : trickling) feed(*client, "x");
    left -= 40'000;
    service->left_unwritten(reader.peer, left, moment());
  }
  EXPECT_EQ(service->statistics().crowded_out, 0U);

  for (int i = 0; i < 2; ++i) feed(open(), half_request());

  EXPECT_FALSE(reader.closed);
  EXPECT_GT(service->statistics().crowded_out, 0U);
}

TEST_F(ServiceBuffersTest, H89_HalfRequestsCount) {
  std::vector<Client*> halves;
  for (int i = 0; i < 20; ++i) {
    halves.push_back(&open());
    std::string bytes;
    wire::append_frame(bytes, wire::RequestHeader{1, Op::kCreate},
                       node("/a", std::string(900'000, 'x')));
    bytes.resize(bytes.size() - 1);
    feed(*halves.back(), bytes);
    EXPECT_LE(service->buffered_bytes(), kMostBuffered);
  }

  EXPECT_TRUE(halves.front()->closed);
  EXPECT_FALSE(halves.back()->closed);
}

TEST_F(ServiceBuffersTest, NothingIsCountedThatIsGone) {
  Client& client = open_slow(500'000);
  Client& half = open();
  feed(half, std::string("\0\0\1\0half", 8));
  EXPECT_GT(service->buffered_bytes(), 500'000U);

  hang_up(half);
  client.reads = true;
  ask(client, Op::kPing, wire::Empty{});

  EXPECT_EQ(service->buffered_bytes(), 0U);
  EXPECT_EQ(service->in_flight_bytes(), 0U);
}

TEST_F(ServiceBuffersTest, H89_WhatIsBehindAnAnswerWaitsUntilThatHasBeenTaken) {
  Client& client = open();
  client.reads = false;
  feed(client, reads_of_large(100));
  EXPECT_EQ(peer(client).output.size() / kLarge, 2U);

  const std::string first = service->take_output(client.peer, moment());
  service->left_unwritten(client.peer, first.size(), moment());
  ask(client, Op::kPing, wire::Empty{});

  EXPECT_EQ(peer(client).output.size(), 0U);
  client.reads = true;
  service->left_unwritten(client.peer, 0, moment());
  ask(client, Op::kPing, wire::Empty{});
  EXPECT_THAT(client.inbox, SizeIs(98 + 2));
  EXPECT_EQ(service->buffered_bytes(), 0U);
}

TEST_F(ServiceBuffersTest, H89_WhenMemoryIsShortOnlyWhoTakesAnswersGetsMore) {
  Client& slow = open();
  Client& quick = open();
  slow.reads = false;
  service->left_unwritten(slow.peer, 100'000, moment());
  ask(slow, Op::kPing, wire::Empty{});
  const std::size_t one = peer(slow).output.size();
  EXPECT_GT(one, 0U) << "there is enough";

  for (int i = 0; i < 4; ++i) open_slow(600'000);
  ask(slow, Op::kPing, wire::Empty{});

  EXPECT_EQ(peer(slow).output.size(), one);
  EXPECT_EQ(call(quick, Op::kGetData, wire::PathWatch{"/large", false}).header.err, Err::kOk);
  EXPECT_EQ(service->statistics().crowded_out, 0U);
}

TEST_F(ServiceBuffersTest, H89_ReadsBehindAWriteWaitForRoomToo) {
  Client& client = open();
  std::string bytes;
  wire::append_frame(bytes, wire::RequestHeader{0, Op::kCreate}, node("/a"));
  feed(client, bytes + reads_of_large(50));
  EXPECT_THAT(client.inbox, SizeIs(0));
  sync();

  EXPECT_FALSE(client.closed) << "it reads all it gets";
  ASSERT_THAT(client.inbox, SizeIs(51));
  for (int i = 0; i <= 50; ++i) {
    const auto message = take(client);
    EXPECT_EQ(message.header.xid, i);
    EXPECT_EQ(message.header.err, Err::kOk);
  }
  EXPECT_EQ(service->buffered_bytes(), 0U);
  EXPECT_EQ(service->in_flight_bytes(), 0U);
}

TEST_F(ServiceBuffersTest, G2_ReadsThatWaitForRoomDoNotSeeALaterWriteOfTheirOwn) {
  Client& client = open();
  std::string bytes;
  wire::append_frame(bytes, wire::RequestHeader{0, Op::kCreate}, node("/a"));
  bytes += reads_of_large(4);
  wire::append_frame(bytes, wire::RequestHeader{5, Op::kSetData},
                     wire::SetData{"/large", "short", -1});
  wire::append_frame(bytes, wire::RequestHeader{6, Op::kGetData}, wire::PathWatch{"/large", false});
  feed(client, bytes);
  sync();

  ASSERT_THAT(client.inbox, SizeIs(7));
  for (int i = 0; i <= 6; ++i) {
    const auto message = take(client);
    EXPECT_EQ(message.header.xid, i);
    if (i == 0 || i == 5) continue;
    EXPECT_EQ(message.as<wire::GetDataReply>().data->size(), i < 5 ? kLarge : 5U) << i;
  }
}

TEST_F(ServiceBuffersTest, H89_ManyLargeReadsBetweenTwoWritesAreAnsweredAsTheyAreTaken) {
  Client& client = open();
  wire::SetData second{"/large", "short", -1};
  std::string bytes;
  wire::append_frame(bytes, wire::RequestHeader{0, Op::kSetData},
                     wire::SetData{"/hot", std::string(kLarge, 'h'), -1});
  for (int i = 1; i <= 70; ++i) {
    wire::append_frame(bytes, wire::RequestHeader{i, Op::kGetData},
                       wire::PathWatch{i % 2 == 0 ? "/large" : "/hot", false});
  }
  wire::append_frame(bytes, wire::RequestHeader{71, Op::kSetData}, second);
  wire::append_frame(bytes, wire::RequestHeader{72, Op::kGetData},
                     wire::PathWatch{"/large", false});
  service->receive(client.peer, bytes, moment());
  std::size_t most = 0;
  while (client.inbox.size() < 73 && !client.closed) {
    const std::size_t before = client.inbox.size();
    for (auto& entry : service->take_batch()) pending.push_back(std::move(entry));
    if (!pending.empty()) {
      const std::int64_t zxid = pending.back().zxid;
      pending.clear();
      service->stored(zxid, moment());
    }
    most = std::max(most, peer(client).output.size());
    deliver();
    ASSERT_TRUE(client.inbox.size() > before || !pending.empty());
  }

  ASSERT_FALSE(client.closed) << "it reads all it gets";
  EXPECT_LT(most, kMostOutput);
  for (int i = 0; i <= 72; ++i) {
    const auto message = take(client);
    ASSERT_EQ(message.header.xid, i);
    if (i == 0 || i == 71) continue;
    EXPECT_EQ(message.as<wire::GetDataReply>().data->size(), i < 71 ? kLarge : 5U) << i;
  }
}

TEST_F(ServiceBuffersTest, H90_WhatTheSocketHasNotTakenCountsForTheLimitOfOneConnection) {
  Client& client = open();
  Client& writer = open();
  call(client, Op::kAddWatch, wire::AddWatch{"/hot", wire::AddWatchMode::kPersistent});
  client.reads = false;
  service->left_unwritten(client.peer, kMostOutput - 1'000, moment());

  for (int i = 0; i < 10; ++i) call(writer, Op::kSetData, wire::SetData{"/hot", "y", -1});
  EXPECT_FALSE(client.closed);
  for (int i = 0; i < 30; ++i) call(writer, Op::kSetData, wire::SetData{"/hot", "y", -1});

  EXPECT_TRUE(client.closed);
  EXPECT_EQ(service->statistics().slow_readers_closed, 1U);
}

/// Nobody else is held up by them, and a dead client's session ends.
TEST_F(ServiceBuffersTest, H85_ReadsThatWaitForTheirOwnClientAreNotOnTheirWay) {
  Client& dead = open();
  dead.reads = false;
  std::string bytes;
  wire::append_frame(bytes, wire::RequestHeader{0, Op::kCreate}, node("/a"));
  feed(dead, bytes + reads_of_large(50));
  sync();
  EXPECT_EQ(service->in_flight_bytes(), 0U);
  EXPECT_GT(peer(dead).requests, 40U);

  for (int i = 0; i < 6; ++i) pass(2'000ms);
  sync();

  EXPECT_TRUE(dead.closed);
  EXPECT_EQ(service->statistics().sessions_expired, 1U);
}

TEST_F(ServiceBuffersTest, H85_AConnectionThatIsHeldBackIsStillHeard) {
  Client& slow = open();
  slow.reads = false;
  feed(slow, reads_of_large(3));
  service->left_unwritten(slow.peer, 2 * kLarge, moment());
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(service->wants_input(slow.peer));
    ask(slow, Op::kPing, wire::Empty{});
    pass(2'000ms);
  }
  sync();

  EXPECT_FALSE(slow.closed);
  feed(slow, reads_of_large(300));
  EXPECT_FALSE(service->wants_input(slow.peer)) << "but not for ever";
}

// Lists.

ServiceOptions short_lists() {
  ServiceOptions options;
  options.max_output_per_peer = 10'000;
  return options;
}

class ServiceListTest : public testing::Test, public test::ServiceRig {
 protected:
  ServiceListTest() : ServiceRig(short_lists()) {}
};

TEST_F(ServiceListTest, H89_AListThatIsTooLongIsRefusedAndSetsNoWatch) {
  Client& client = open();
  call(client, Op::kCreate, node("/many"));
  call(client, Op::kCreate, node("/few"));
  call(client, Op::kCreate, node("/few/one"));
  const auto ask_for = [&](Op op, const std::string& path) {
    return call(client, op, wire::PathWatch{path, true}).header.err;
  };
  const auto make = [&](int number) {
    wire::Create request = node("/many/" + std::string(96 - 4, 'n') + std::to_string(number));
    request.mode = wire::CreateMode::kEphemeral;
    EXPECT_EQ(call(client, Op::kCreate, request).header.err, Err::kOk);
  };
  for (int i = 0; i < 100; ++i) make(1'000 + i);
  EXPECT_EQ(ask_for(Op::kGetChildren, "/many"), Err::kOk) << "100 names of 96 bytes, and a length";
  EXPECT_EQ(service->tree().watches().size(), 1U);
  make(1'100);
  take(client);  // The event.
  ASSERT_EQ(service->tree().watches().size(), 0U);

  for (const Op op : {Op::kGetChildren, Op::kGetChildren2}) {
    EXPECT_EQ(ask_for(op, "/many"), Err::kQuotaExceeded);
  }
  EXPECT_EQ(call(client, Op::kGetEphemerals, wire::PathOnly{"/"}).header.err, Err::kQuotaExceeded);
  wire::Multi multi;
  multi.ops.push_back({Op::kGetChildren, wire::PathWatch{"/many", false}});
  EXPECT_EQ(call(client, Op::kMultiRead, multi).header.err, Err::kQuotaExceeded);

  EXPECT_EQ(service->tree().watches().size(), 0U);
  EXPECT_EQ(ask_for(Op::kGetChildren, "/few"), Err::kOk);
  EXPECT_EQ(call(client, Op::kGetEphemerals, wire::PathOnly{"/few"}).header.err, Err::kOk);
  EXPECT_FALSE(client.closed);
}

// Sessions of one origin.

class ServiceOriginTest : public ServiceBuffersTest {
 protected:
  /// Whether a client from there gets a session.
  bool comes_in(const std::string& address, Client** client = nullptr) {
    Client& made = dial(address);
    greet(made);
    sync();
    if (client != nullptr) *client = &made;
    return made.greeted && made.session.session_id != 0;
  }
};

TEST_F(ServiceOriginTest, H94_OneOriginHasSoManySessionsConnectedOrNot) {
  for (int i = 0; i < 30; ++i) {
    Client* client = nullptr;
    ASSERT_TRUE(comes_in("10.0.0.7:" + std::to_string(i), &client)) << i;
    hang_up(*client);
  }

  Client* refused = nullptr;
  EXPECT_FALSE(comes_in("10.0.0.7:99", &refused));
  EXPECT_TRUE(refused->closed);
  EXPECT_EQ(service->statistics().sessions_refused, 1U);
  EXPECT_TRUE(comes_in("10.0.0.8:1")) << "others are not concerned";
  for (int i = 0; i < 4; ++i) pass(2'000ms);
  sync();
  EXPECT_TRUE(comes_in("10.0.0.7:99")) << "they have run out";
}

TEST_F(ServiceOriginTest, H94_SessionsOnTheirWayToTheDiskCount) {
  for (int i = 0; i < 40; ++i) greet(dial("10.0.0.7:" + std::to_string(i)));
  sync();

  EXPECT_EQ(service->statistics().sessions_refused, 10U);
}

TEST_F(ServiceOriginTest, AClosedSessionMakesRoomAndAnOldOneCanBeTakenUpAgain) {
  std::vector<Client*> there(30);
  for (Client*& client : there) ASSERT_TRUE(comes_in("10.0.0.7:1", &client));
  hang_up(*there[0]);
  Client& again = dial("10.0.0.7:2");
  greet(again, 4'000, there[0]->session);
  sync();
  EXPECT_EQ(again.session.session_id, there[0]->session.session_id);
  EXPECT_FALSE(comes_in("10.0.0.7:3"));

  call(again, Op::kCloseSession, wire::Empty{});

  EXPECT_TRUE(comes_in("10.0.0.7:3"));
  EXPECT_FALSE(comes_in("10.0.0.7:4"));
}

TEST_F(ServiceOriginTest, WhoCannotBeToldApartIsNotCounted) {
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(comes_in("")) << i;
}

}  // namespace
}  // namespace latchkey::tree
