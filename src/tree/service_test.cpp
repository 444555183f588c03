#include "tree/service.hpp"

#include <array>
#include <set>

#include <gmock/gmock.h>

#include "tree/service_rig.hpp"

namespace latchkey::tree {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using wire::Err;
using wire::EventType;
using wire::Op;
using Client = test::ServiceRig::Client;
using test::node;
using Message = test::ServiceRig::Message;

class ServiceTest : public testing::Test, public test::ServiceRig {
 protected:
  explicit ServiceTest(ServiceOptions options = {}) : ServiceRig(std::move(options)) {}

  static EventType event(const Message& message) {
    EXPECT_TRUE(message.is_notice());
    return message.as<wire::WatcherEvent>().type;
  }
};

TEST_F(ServiceTest, ASessionIsThereOnceItIsDurable) {
  Client& client = dial();
  greet(client);

  EXPECT_FALSE(client.greeted);
  sync();
  EXPECT_TRUE(client.greeted);
  EXPECT_EQ(client.session.timeout_ms, 4'000);
  EXPECT_EQ(client.session.password->size(), 16U);
  EXPECT_NE(client.session.session_id, 0);
}

/// Clients before 3.4 send no flag, and stumble over one that they did not send.
TEST_F(ServiceTest, TheFlagOfTheHandshakeIsAnsweredToWhoeverSentIt) {
  for (const wire::Handshake form : {wire::Handshake::kOld, wire::Handshake::kWithReadOnly}) {
    const PeerId peer = service->connect({"10.0.0.1:1", {}, {}}, moment());
    std::string frame;
    wire::append_connect_request(frame, {0, 0, 4'000, 0, ""}, form);
    service->receive(peer, frame, moment());
    sync();

    wire::FrameSplitter splitter(1'000);
    splitter.feed(service->take_output(peer, moment()));
    const auto greeting = wire::decode_connect_response(splitter.next().value_or(""));
    ASSERT_TRUE(greeting);
    EXPECT_EQ(greeting->form, form);
    EXPECT_FALSE(greeting->read_only) << "one may write here";
    EXPECT_NE(greeting->message.session_id, 0);
  }
}

TEST_F(ServiceTest, ARequestInTheSameSegmentAsTheHandshakeIsAnswered) {
  Client& client = dial();
  std::string bytes;
  wire::append_connect_request(bytes, {0, 0, 4'000, 0, std::string(16, '\0')},
                               wire::Handshake::kOld);
  wire::append_frame(bytes, wire::RequestHeader{1, Op::kExists}, wire::PathWatch{"/", false});
  feed(client, bytes);
  sync();

  EXPECT_TRUE(client.greeted);
  EXPECT_EQ(take(client).header.xid, 1);
}

TEST_F(ServiceTest, H78_NobodySeesAWriteBeforeItIsDurable) {
  Client& writer = open();
  Client& reader = open();
  const std::int64_t before = durable.back().zxid;
  ask(writer, Op::kCreate, node("/a"));
  ask(reader, Op::kExists, wire::PathWatch{"/a", true});
  ask(reader, Op::kPing, wire::Empty{});

  EXPECT_THAT(writer.inbox, IsEmpty());
  const Message read = take(reader);
  EXPECT_EQ(read.header.err, Err::kNoNode);
  EXPECT_EQ(read.header.zxid, before);
  EXPECT_EQ(take(reader).header.zxid, before);
  sync();
  EXPECT_EQ(take(writer).header.err, Err::kOk);
  EXPECT_EQ(event(take(reader)), EventType::kCreated);
}

TEST_F(ServiceTest, H78_ARefusalWaitsForWhatItShows) {
  Client& first = open();
  Client& second = open();
  ask(first, Op::kCreate, node("/a"));
  ask(second, Op::kCreate, node("/a"));

  EXPECT_THAT(second.inbox, IsEmpty());
  sync();
  EXPECT_EQ(take(second).header.err, Err::kNodeExists);
}

TEST_F(ServiceTest, H78_ACrashBeforeTheSyncTakesBackOnlyWhatNobodySaw) {
  Client& client = open();
  call(client, Op::kCreate, node("/kept"));
  const std::int64_t seen = durable.back().zxid;
  ask(client, Op::kCreate, node("/lost"));
  ask(client, Op::kDelete, wire::PathVersion{"/kept", -1});
  restart();

  Client& again = dial();
  greet(again, 4'000, client.session, seen);
  sync();
  EXPECT_EQ(again.session.session_id, client.session.session_id);
  EXPECT_EQ(call(again, Op::kExists, wire::PathWatch{"/kept", false}).header.err, Err::kOk);
  EXPECT_EQ(call(again, Op::kExists, wire::PathWatch{"/lost", false}).header.err, Err::kNoNode);
}

TEST_F(ServiceTest, AReadComesAfterItsOwnWriteAndBeforeTheNext) {
  Client& client = open();
  ask(client, Op::kCreate, node("/a"));
  ask(client, Op::kGetData, wire::PathWatch{"/a", true});
  ask(client, Op::kSetData, wire::SetData{"/a", "new", -1});
  ask(client, Op::kGetData, wire::PathWatch{"/a", false});
  sync();

  EXPECT_EQ(take(client).as<wire::CreateReply>().path, "/a");
  EXPECT_EQ(take(client).as<wire::GetDataReply>().data, "x");
  EXPECT_EQ(event(take(client)), EventType::kDataChanged);
  EXPECT_EQ(take(client).as<wire::StatReply>().stat.version, 1);
  EXPECT_EQ(take(client).as<wire::GetDataReply>().data, "new");
}

TEST_F(ServiceTest, AReadDoesNotWaitForAnothersWrite) {
  Client& writer = open();
  Client& reader = open();
  ask(writer, Op::kCreate, node("/a"));
  ask(reader, Op::kGetChildren, wire::PathWatch{"/", false});

  EXPECT_THAT(take(reader).as<wire::ChildrenReply>().children, ElementsAre("zookeeper"));
}

TEST_F(ServiceTest, H88_SyncComesAfterEverythingAcceptedBeforeIt) {
  Client& writer = open();
  Client& reader = open();
  ask(writer, Op::kCreate, node("/a"));
  ask(reader, Op::kSync, wire::PathOnly{"/"});
  ask(reader, Op::kExists, wire::PathWatch{"/a", false});

  EXPECT_THAT(reader.inbox, IsEmpty());
  sync();
  EXPECT_EQ(take(reader).as<wire::SyncReply>().path, "/");
  EXPECT_EQ(take(reader).header.err, Err::kOk);
}

TEST_F(ServiceTest, H88_WhatTheOldConnectionAskedForComesBeforeTheNewOne) {
  Client& old = open();
  ask(old, Op::kCreate, node("/a", wire::CreateMode::kEphemeral));
  Client& fresh = dial();
  greet(fresh, 4'000, old.session);

  EXPECT_TRUE(old.closed);
  EXPECT_FALSE(fresh.greeted);
  sync();
  EXPECT_TRUE(fresh.greeted);
  EXPECT_EQ(call(fresh, Op::kExists, wire::PathWatch{"/a", false}).header.err, Err::kOk);
}

TEST_F(ServiceTest, H87_AWrongPasswordCostsNobodyButTheAttacker) {
  Client& victim = open();
  Client& attacker = dial();
  wire::ConnectResponse guess = victim.session;
  guess.password->back() ^= 1;
  greet(attacker, 4'000, guess);

  EXPECT_TRUE(attacker.closed);
  EXPECT_EQ(attacker.session.session_id, 0);
  EXPECT_EQ(attacker.session.timeout_ms, 0);
  EXPECT_EQ(attacker.session.password, std::string(16, '\0'));
  EXPECT_FALSE(victim.closed);
  EXPECT_EQ(call(victim, Op::kExists, wire::PathWatch{"/", false}).header.err, Err::kOk);
}

/// Apache's is made of the id, which everybody can read (H87).
TEST_F(ServiceTest, H87_APasswordIsMadeOfSecretsAndNotOfTheSessionsId) {
  std::set<std::string> passwords;
  std::set<std::int64_t> ids;
  using Words = std::array<std::uint64_t, 3>;
  for (const Words& words : {Words{4, 1, 2}, Words{4, 1, 3}, Words{4, 5, 2}}) {
    ServiceOptions options = service->options();
    options.secret = [words, next = 0U]() mutable { return words.at(next++); };
    clients.clear();
    service = std::make_unique<Service>(std::move(options));
    service->start(moment());
    Client& client = open();
    passwords.insert(client.session.password.value());
    ids.insert(client.session.session_id);
  }

  EXPECT_THAT(ids, SizeIs(1));
  EXPECT_THAT(passwords, SizeIs(3));
}

TEST_F(ServiceTest, AClientThatHasSeenMoreThanWeHaveIsTurnedAway) {
  Client& client = dial();
  greet(client, 4'000, {}, durable.back().zxid + 1);

  EXPECT_TRUE(client.closed);
  EXPECT_FALSE(client.greeted);
}

TEST_F(ServiceTest, CloseRemovesTheNodesAnswersAndHangsUp) {
  Client& client = open();
  Client& other = open();
  call(client, Op::kCreate, node("/e", wire::CreateMode::kEphemeral));
  call(other, Op::kExists, wire::PathWatch{"/e", true});
  ask(client, Op::kCloseSession, wire::Empty{});
  EXPECT_FALSE(client.closed);
  sync();

  EXPECT_EQ(take(client).header.err, Err::kOk);
  EXPECT_TRUE(client.closed);
  EXPECT_EQ(event(take(other)), EventType::kDeleted);
  Client& late = dial();
  greet(late, 4'000, client.session);
  EXPECT_EQ(late.session.session_id, 0);
}

TEST_F(ServiceTest, ASilentSessionRunsOutAndItsNodesGo) {
  Client& client = open();
  Client& other = open(40'000);
  call(client, Op::kCreate, node("/e", wire::CreateMode::kEphemeral));
  call(other, Op::kExists, wire::PathWatch{"/e", true});
  pass(3'900ms);
  EXPECT_FALSE(client.closed);
  pass(2'100ms);
  sync();

  EXPECT_TRUE(client.closed);
  EXPECT_EQ(event(take(other)), EventType::kDeleted);
  EXPECT_EQ(service->statistics().sessions_expired, 1U);
}

TEST_F(ServiceTest, H11_WhoHasRunOutIsNotAnsweredWhileThatIsOnItsWayToTheDisk) {
  Client& client = open();
  pass(6'000ms);
  ASSERT_EQ(service->statistics().sessions_expired, 1U);

  ask(client, Op::kPing, wire::Empty{});
  ask(client, Op::kExists, wire::PathWatch{"/", false});
  ask(client, Op::kSync, wire::PathOnly{"/"});

  EXPECT_FALSE(service->wants_input(client.peer));
  EXPECT_THAT(client.inbox, testing::IsEmpty());
  EXPECT_FALSE(client.closed);
  sync();
  EXPECT_THAT(client.inbox, testing::IsEmpty());
  EXPECT_TRUE(client.closed);
}

TEST_F(ServiceTest, WhatASessionAskedBeforeItWasEndedIsAnsweredInOrder) {
  Client& client = open();
  ask(client, Op::kCreate, node("/a"));
  ask(client, Op::kExists, wire::PathWatch{"/", false});
  ask(client, Op::kCreate, node("/b"));
  ASSERT_TRUE(service->expire(client.session.session_id, moment()));
  deliver();
  ASSERT_EQ(pending.size(), 3U);

  service->stored(pending[1].zxid, moment());
  deliver();

  for (std::int32_t xid = 1; xid <= 3; ++xid) EXPECT_EQ(take(client).header.xid, xid);
  EXPECT_FALSE(client.closed);
  sync();
  EXPECT_TRUE(client.closed);
}

/// A client that takes none of its answers, and then says nothing any more.
TEST_F(ServiceTest, H90_ASlowReadersEndCarriesOutNoneOfItsReads) {
  Client& writer = open(40'000);
  wire::Create large = node("/large");
  large.data = std::string(900'000, 'x');
  call(writer, Op::kCreate, large);
  Client& slow = open();
  slow.reads = false;
  ask(slow, Op::kCreate, node("/own"));  // The reads wait behind it, and then for their reader.
  for (int i = 0; i < 50; ++i) ask(slow, Op::kGetData, wire::PathWatch{"/large", false});
  sync();
  const std::uint64_t answered = service->statistics().sent;

  pass(6'000ms);
  sync();

  EXPECT_EQ(service->statistics().sessions_expired, 1U);
  EXPECT_EQ(service->statistics().sent, answered);
}

TEST_F(ServiceTest, H78_ThatASessionHasEndedIsToldWhenThatIsDurable) {
  Client& client = open();
  pass(6'000ms);
  ASSERT_EQ(service->statistics().sessions_expired, 1U);
  Client& late = dial();
  greet(late, 4'000, client.session);

  EXPECT_FALSE(late.greeted);
  EXPECT_FALSE(late.closed);
  sync();
  EXPECT_TRUE(late.greeted);
  EXPECT_EQ(late.session.session_id, 0);
  EXPECT_TRUE(late.closed);
}

/// Its turn comes when the write before it is durable, and its end is not.
TEST_F(ServiceTest, H78_WhoTakesUpASessionThatEndsMeanwhileHearsOfItWhenThatIsDurable) {
  Client& writer = open(40'000);
  Client& old = open();
  ask(writer, Op::kCreate, node("/a"));
  Client& fresh = dial();
  greet(fresh, 4'000, old.session);
  ASSERT_TRUE(service->expire(old.session.session_id, moment()));
  deliver();
  ASSERT_EQ(pending.size(), 2U);

  service->stored(pending.front().zxid, moment());
  deliver();

  EXPECT_EQ(take(writer).header.err, Err::kOk);
  EXPECT_FALSE(fresh.greeted);
  sync();
  EXPECT_TRUE(fresh.greeted);
  EXPECT_EQ(fresh.session.session_id, 0);
  EXPECT_TRUE(fresh.closed);
}

TEST_F(ServiceTest, AHeartbeatKeepsASession) {
  Client& client = open();
  for (int i = 0; i < 10; ++i) {
    ask(client, Op::kPing, wire::Empty{});
    pass(3'000ms);
  }

  EXPECT_FALSE(client.closed);
  EXPECT_THAT(client.inbox, SizeIs(10));
}

TEST_F(ServiceTest, H81_AfterARestartEverySessionHasItsFullTime) {
  Client& client = open();
  pass(3'900ms);
  now += 40s;  // Down.
  restart();
  pass(3'900ms);
  sync();

  EXPECT_TRUE(service->tree().knows(client.session.session_id));
  pass(2'100ms);
  sync();
  EXPECT_FALSE(service->tree().knows(client.session.session_id));
}

TEST_F(ServiceTest, H81_WhoIsTakenUpAgainIsNotGrantedMoreThanIsOnRecord) {
  Client& client = open(5'000);
  Client& wishful = dial();
  greet(wishful, 30'000, client.session);
  sync();
  Client& modest = dial();
  greet(modest, 4'000, client.session);
  sync();
  restart();
  pass(4'900ms);
  sync();

  EXPECT_EQ(client.session.timeout_ms, 5'000);
  EXPECT_EQ(wishful.session.timeout_ms, 5'000);
  EXPECT_EQ(modest.session.timeout_ms, 4'000);
  EXPECT_TRUE(service->tree().knows(client.session.session_id));
}

TEST_F(ServiceTest, H85_WhoWaitsForOurDiskDoesNotRunOut) {
  Client& client = open();
  Client& silent = open();
  ask(client, Op::kCreate, node("/a"));
  for (int i = 0; i < 6; ++i) pass(2'000ms);
  sync();

  EXPECT_FALSE(client.closed);
  EXPECT_TRUE(silent.closed);
  EXPECT_EQ(take(client).header.err, Err::kOk);
}

/// Its answers fill the connection and its requests the rest, so its heartbeats are not read; but
/// it takes them bit by bit.
TEST_F(ServiceTest, H85_WhoTakesALongAnswerSlowlyDoesNotRunOut) {
  Client& slow = open();
  Client& stuck = open();
  call(slow, Op::kCreate,
       wire::Create{"/a", std::string(900'000, 'x'), *open_list(), wire::CreateMode::kPersistent});
  reads = false;
  for (Client* client : {&slow, &stuck}) {
    for (int i = 0; i < 300; ++i) ask(*client, Op::kGetData, wire::PathWatch{"/a", false});
    ASSERT_FALSE(service->wants_input(client->peer));
    service->left_unwritten(client->peer, 1'000'000, moment());
  }
  for (std::size_t i = 1; i <= 6; ++i) {
    service->left_unwritten(slow.peer, 1'000'000 - 1'000 * i, moment());
    pass(2'000ms);
  }
  sync();

  EXPECT_FALSE(slow.closed);
  EXPECT_TRUE(stuck.closed);
}

TEST_F(ServiceTest, H85_AStallIsAddedToEveryDeadline) {
  Client& client = open();
  now += 12s;
  service->stalled(12s, moment().now);
  pass(1ms);
  sync();

  EXPECT_FALSE(client.closed);
}

TEST_F(ServiceTest, H86_AJumpOfTheWallClockEndsNoSessionAndTurnsNoOrderAround) {
  constexpr std::int64_t kYearMs = 365LL * 24 * 3'600 * 1'000;
  Client& client = open();
  const Message first = call(client, Op::kCreate2, node("/first"));
  for (const std::int64_t jump : {-kYearMs, 2 * kYearMs}) {
    wall_ms += jump;
    pass(1'000ms);
    EXPECT_FALSE(client.closed);
  }
  const Message second = call(client, Op::kCreate2, node("/second"));

  EXPECT_GT(second.header.zxid, first.header.zxid);
  EXPECT_EQ(second.as<wire::Create2Reply>().stat.ctime_ms, wall_ms);
  restart();
  EXPECT_EQ(service->tree().nodes().find("/first")->ctime_ms,
            first.as<wire::Create2Reply>().stat.ctime_ms);
}

TEST_F(ServiceTest, H89_AnImpossibleLengthEndsTheConnection) {
  Client& other = open();
  for (const std::string_view bytes :
       {std::string_view("\xFF\xFF\xFF\xFF", 4), std::string_view("\x7F\xFF\xFF\xFF", 4),
        std::string_view("\x00\x10\x00\x00", 4)}) {
    Client& client = dial();
    feed(client, bytes);
    EXPECT_TRUE(client.closed);
  }
  EXPECT_EQ(call(other, Op::kExists, wire::PathWatch{"/", false}).header.err, Err::kOk);
}

TEST_F(ServiceTest, H89_HalfAHandshakeIsNotWaitedForForever) {
  Client& client = dial();
  feed(client, std::string_view("\0\0", 2));
  pass(9s);
  EXPECT_FALSE(client.closed);
  pass(1s);

  EXPECT_TRUE(client.closed);
}

TEST_F(ServiceTest, H89_WhoAsksTooMuchAtOnceIsReadFromLater) {
  Client& client = open();
  const std::size_t most = service->options().max_requests_per_peer;
  std::string bytes;
  for (std::size_t i = 0; i < most + 50; ++i) {
    wire::append_frame(bytes, wire::RequestHeader{static_cast<std::int32_t>(i), Op::kCreate},
                       node("/n", wire::CreateMode::kPersistentSequential));
  }
  feed(client, bytes);

  EXPECT_FALSE(service->wants_input(client.peer));
  EXPECT_EQ(service->in_flight(), most);
  sync();
  EXPECT_THAT(client.inbox, SizeIs(most + 50));
  EXPECT_TRUE(service->wants_input(client.peer));
}

ServiceOptions little_patience() {
  ServiceOptions options;
  options.max_output_per_peer = 100'000;
  return options;
}

class SlowReaderTest : public ServiceTest {
 protected:
  SlowReaderTest() : ServiceTest(little_patience()) {}
};

TEST_F(SlowReaderTest, H90_ASlowReaderIsClosedAndLosesNoSingleEvent) {
  Client& slow = open();
  Client& writer = open();
  call(writer, Op::kCreate, node("/a"));
  call(slow, Op::kAddWatch, wire::AddWatch{"/a", wire::AddWatchMode::kPersistent});
  reads = false;
  for (int i = 0; i < 100'000 && !slow.closed; ++i) {
    std::string frame;
    wire::append_frame(frame, wire::RequestHeader{i, Op::kSetData}, wire::SetData{"/a", "y", -1});
    service->receive(writer.peer, frame, moment());
    static_cast<void>(service->take_output(writer.peer, moment()));
    sync();
  }

  EXPECT_TRUE(slow.closed);
  EXPECT_FALSE(writer.closed);
  EXPECT_EQ(service->statistics().slow_readers_closed, 1U);
  EXPECT_EQ(service->tree().watches().size(), 0U);
}

TEST_F(ServiceTest, H91_NoWatchOutlivesItsConnection) {
  Client& client = open();
  call(client, Op::kExists, wire::PathWatch{"/a", true});
  call(client, Op::kGetChildren, wire::PathWatch{"/", true});
  call(client, Op::kAddWatch, wire::AddWatch{"/", wire::AddWatchMode::kPersistentRecursive});
  EXPECT_EQ(service->tree().watches().count(client.peer), 4U);
  hang_up(client);

  EXPECT_EQ(service->tree().watches().size(), 0U);
}

TEST_F(ServiceTest, H91_SetWatchesFiresForWhatChangedMeanwhile) {
  Client& client = open();
  Client& writer = open();
  for (const char* path : {"/same", "/changed", "/gone", "/dir"}) {
    call(writer, Op::kCreate, node(path));
  }
  const std::int64_t seen = durable.back().zxid;
  call(writer, Op::kSetData, wire::SetData{"/changed", "y", -1});
  call(writer, Op::kDelete, wire::PathVersion{"/gone", -1});
  call(writer, Op::kCreate, node("/dir/child"));
  call(writer, Op::kCreate, node("/born"));
  ask(client, Op::kSetWatches,
      wire::SetWatches{seen, {"/same", "/changed", "/gone"}, {"/born", "/unborn"}, {"/dir"}});

  std::multiset<std::pair<std::string, EventType>> events;
  while (client.inbox.size() > 1) {
    const auto notice = take(client).as<wire::WatcherEvent>();
    events.emplace(notice.path, notice.type);
  }
  EXPECT_EQ(take(client).header.err, Err::kOk);
  EXPECT_THAT(events, ElementsAre(std::pair("/born", EventType::kCreated),
                                  std::pair("/changed", EventType::kDataChanged),
                                  std::pair("/dir", EventType::kChildrenChanged),
                                  std::pair("/gone", EventType::kDeleted)));
  EXPECT_EQ(service->tree().watches().count(client.peer), 2U);
}

TEST_F(ServiceTest, AnUnknownOperationIsRefusedAndEndsTheConnection) {
  Client& client = open();
  ask(client, Op::kCreate, node("/a"));
  ask(client, Op{77}, wire::Empty{});
  EXPECT_FALSE(client.closed);
  sync();

  EXPECT_EQ(take(client).header.err, Err::kOk);
  EXPECT_EQ(take(client).header.err, Err::kUnimplemented);
  EXPECT_TRUE(client.closed);
}

TEST_F(ServiceTest, NothingThatFollowsAnUnknownOperationIsCarriedOut) {
  Client& client = open();
  std::string bytes;
  wire::append_frame(bytes, wire::RequestHeader{1, Op{77}}, wire::Empty{});
  wire::append_frame(bytes, wire::RequestHeader{2, Op::kCreate}, node("/a"));
  feed(client, bytes);
  sync();

  EXPECT_TRUE(client.closed);
  EXPECT_EQ(service->tree().nodes().find("/a"), nullptr);
}

/// The new connection's turn stands behind a write when its session is ended by hand.
TEST_F(ServiceTest, ASessionMayEndWhileItIsTakenUpAgain) {
  Client& writer = open();
  Client& old = open();
  ask(writer, Op::kCreate, node("/a"));
  Client& fresh = dial();
  greet(fresh, 4'000, old.session);
  ASSERT_TRUE(service->expire(old.session.session_id, moment()));
  sync();

  EXPECT_TRUE(fresh.greeted);
  EXPECT_EQ(fresh.session.session_id, 0);
  EXPECT_TRUE(fresh.closed);
  EXPECT_FALSE(service->tree().knows(old.session.session_id));
  EXPECT_EQ(take(writer).header.err, Err::kOk);
}

/// More than one go can take: the next one follows when the first is durable.
TEST_F(ServiceTest, ReapingGoesOnUntilNothingIsLeftAndTtlNodesDoNotWaitForContainers) {
  Client& client = open(40'000);
  constexpr int kMany = 2'500;
  for (int i = 0; i < kMany; ++i) {
    const std::string path = "/c" + std::to_string(i);
    ask(client, Op::kCreateContainer, node(path, wire::CreateMode::kContainer));
    ask(client, Op::kCreate, node(path + "/child"));
    ask(client, Op::kDelete, wire::PathVersion{path + "/child", -1});
    ask(client, Op::kCreateTtl,
        wire::CreateTtl{"/t" + std::to_string(i), "", *open_list(), wire::CreateMode::kTtl, 1'000});
    sync();
  }
  const std::size_t before = service->tree().nodes().count();
  pass(60s);
  ask(client, Op::kPing, wire::Empty{});
  sync();

  EXPECT_EQ(service->tree().nodes().unused_containers().size(), kMany - 1'000U);
  EXPECT_EQ(service->tree().nodes().ttl_ends().size(), kMany - 1'000U);
  for (int i = 0; i < 2; ++i) {
    EXPECT_LE(service->next_wake(), moment().now);
    pass(0s);
    sync();
  }
  EXPECT_EQ(service->tree().nodes().count(), before - 2 * kMany);
  EXPECT_EQ(service->statistics().reaped, 2U * kMany);
  pass(0s);
  EXPECT_GT(service->next_wake(), moment().now);
}

TEST_F(ServiceTest, ABodyThatDoesNotParseIsRefusedAndTheConnectionGoesOn) {
  Client& client = open();

  EXPECT_EQ(call(client, Op::kCreate, wire::PathOnly{"/a"}).header.err, Err::kMarshallingError);
  EXPECT_EQ(call(client, Op::kGetData, wire::Empty{}).header.err, Err::kMarshallingError);
  EXPECT_EQ(call(client, Op::kCreate, node("/a")).header.err, Err::kOk);
}

TEST_F(ServiceTest, WhatOnlyAnEnsembleCanDoIsRefusedPlainly) {
  Client& client = open();

  // Its zeros are those of a reconfig that asks for nothing.
  const wire::ConnectRequest zeros;
  EXPECT_EQ(call(client, Op::kReconfig, zeros).header.err, Err::kReconfigDisabled);
  EXPECT_FALSE(client.closed);
}

TEST_F(ServiceTest, AFailedMultiSaysWhichPart) {
  Client& client = open();
  const wire::Multi multi{{{Op::kCreate, node("/a")},
                           {Op::kDelete, wire::PathVersion{"/none", -1}},
                           {Op::kCheck, wire::PathVersion{"/", -1}}}};
  const Message reply = call(client, Op::kMulti, multi);

  EXPECT_EQ(reply.header.err, Err::kOk);
  std::vector<Err> errors;
  for (const wire::MultiResult& result : reply.as<wire::MultiReply>().results) {
    errors.push_back(std::get<wire::ErrorReply>(result.body).err);
  }
  EXPECT_THAT(errors, ElementsAre(Err::kOk, Err::kNoNode, Err::kRuntimeInconsistency));
}

TEST(ServiceWordTest, AnAdminWordIsAnsweredAndEndsTheConnection) {
  ServiceOptions options;
  options.admin_word = [](std::string_view word) -> std::optional<WordAnswer> {
    if (word == "ruok") return WordAnswer{"imok"};
    return std::nullopt;
  };
  test::ServiceRig rig(std::move(options));
  auto& client = rig.dial();
  rig.service->receive(client.peer, "ru", rig.moment());
  rig.service->receive(client.peer, "ok", rig.moment());

  EXPECT_EQ(rig.service->closing(client.peer), Service::Closing::kAfterOutput);
  EXPECT_EQ(rig.service->take_output(client.peer, rig.moment()), "imok");
}

/// Several clients at once, a journal that lags, and the promises checked on every message.
class RandomServiceTest : public ServiceTest, public testing::WithParamInterface<std::uint64_t> {
 protected:
  void act(base::Random& random) {
    Client& client = *clients[random.below(clients.size())];
    static const char* const kPaths[] = {"/a", "/b", "/a/x", "/a/y"};
    const std::string path = kPaths[random.below(std::size(kPaths))];
    switch (random.below(9)) {
      case 0: ask(client, Op::kCreate, node(path)); break;
      case 1: ask(client, Op::kCreate, node(path, wire::CreateMode::kEphemeral)); break;
      case 2: ask(client, Op::kDelete, wire::PathVersion{path, -1}); break;
      case 3: ask(client, Op::kSetData, wire::SetData{path, "z", -1}); break;
      case 4: ask(client, Op::kExists, wire::PathWatch{path, true}); break;
      case 5: ask(client, Op::kGetData, wire::PathWatch{path, true}); break;
      case 6: ask(client, Op::kGetChildren, wire::PathWatch{path, true}); break;
      case 7: ask(client, Op::kSync, wire::PathOnly{path}); break;
      default: ask(client, Op::kPing, wire::Empty{}); break;
    }
  }

  /// Answers come in order, zxids never go back and never pass what is durable.
  void check(std::map<Client*, std::pair<std::int32_t, std::int64_t>>& seen) {
    // A refusal spends a zxid without a record; the next record is above it.
    const std::int64_t ceiling =
        pending.empty() ? std::numeric_limits<std::int64_t>::max() : pending.front().zxid;
    for (const auto& client : clients) {
      auto& [xid, zxid] = seen[client.get()];
      while (!client->inbox.empty()) {
        const Message message = take(*client);
        if (message.is_notice()) continue;
        ASSERT_GE(message.header.zxid, zxid);
        ASSERT_LT(message.header.zxid, ceiling);
        zxid = message.header.zxid;
        if (message.header.xid < 0) continue;
        ASSERT_EQ(message.header.xid, xid + 1);
        xid = message.header.xid;
      }
    }
  }
};

TEST_P(RandomServiceTest, H78_EverythingLeavesInOrderAndNothingLeavesEarly) {
  base::Random random(GetParam());
  for (int i = 0; i < 4; ++i) open();
  std::map<Client*, std::pair<std::int32_t, std::int64_t>> seen;
  for (int step = 0; step < 3'000; ++step) {
    act(random);
    ASSERT_NO_FATAL_FAILURE(check(seen)) << "seed " << GetParam() << " step " << step;
    if (random.below(5) == 0) {
      sync();
      ASSERT_NO_FATAL_FAILURE(check(seen)) << "seed " << GetParam() << " step " << step;
    }
  }
  sync();
  ASSERT_NO_FATAL_FAILURE(check(seen));
  for (const auto& client : clients) EXPECT_EQ(seen[client.get()].first, client->xid);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomServiceTest, testing::Range<std::uint64_t>(1, 9));

}  // namespace
}  // namespace latchkey::tree
