#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "tree/service.hpp"
#include "tree/service_rig.hpp"

// What one client can make the server hold.
namespace latchkey::tree {
namespace {

using wire::Err;
using wire::Op;
using Client = test::ServiceRig::Client;
using test::node;

ServiceOptions limited() {
  ServiceOptions options;
  options.max_request_bytes_per_peer = 11'000;
  options.max_output_per_peer = 100'000;
  options.limits.watch_bytes_per_peer = 10'000;
  options.limits.watches = 50;
  options.limits.watch_bytes = 25'000;
  options.limits.bytes = 100'000;
  options.limits.ephemeral_bytes_per_session = 15'000;
  options.max_sessions = 40;
  options.authenticate = [](std::string_view scheme, std::string_view credentials) {
    return std::vector<Identity>{{std::string(scheme), std::string(credentials)}};
  };
  return options;
}

class ServiceLimitsTest : public testing::Test, public test::ServiceRig {
 protected:
  explicit ServiceLimitsTest(ServiceOptions options = limited()) : ServiceRig(std::move(options)) {}

  Err prove(Client& client, const std::string& credentials) {
    return call(client, Op::kAuth, wire::AuthPacket{0, "digest", credentials}).header.err;
  }
};

TEST_F(ServiceLimitsTest, H94_AConnectionHasSoManyIdentitiesAndNoMore) {
  Client& client = open();
  for (int i = 0; i < 99; ++i) ASSERT_EQ(prove(client, std::to_string(i)), Err::kOk) << i;
  EXPECT_EQ(prove(client, "0"), Err::kOk);  // Known, so it adds nothing.

  EXPECT_EQ(prove(client, "99"), Err::kAuthFailed);

  EXPECT_TRUE(client.closed);
}

TEST_F(ServiceLimitsTest, H85_WhoWasNotReadForAWhileIsNotOverdueWhenThatEnds) {
  Client& client = open();
  ask(client, Op::kCreate, node("/n", std::string(12'000, 'x')));
  ASSERT_FALSE(service->wants_input(client.peer));
  for (int i = 0; i < 6; ++i) pass(std::chrono::seconds(2));

  sync_and_strike(std::chrono::seconds(4));

  EXPECT_FALSE(client.closed);
}

TEST_F(ServiceLimitsTest, H94_AConnectionHasNoEndlessIdentity) {
  Client& client = open();

  EXPECT_EQ(prove(client, std::string(20'000, 'a')), Err::kAuthFailed);
  EXPECT_TRUE(client.closed);
}

TEST_F(ServiceLimitsTest, H89_WhoSendsTooManyBytesAtOnceIsReadFromLater) {
  Client& client = open();
  std::string bytes;
  for (int i = 0; i < 20; ++i) {
    wire::append_frame(bytes, wire::RequestHeader{i, Op::kCreate},
                       node("/" + std::to_string(i), std::string(3'000, 'x')));
  }
  feed(client, bytes);

  EXPECT_FALSE(service->wants_input(client.peer));
  EXPECT_EQ(service->in_flight(), 4U);
  sync();
  EXPECT_THAT(client.inbox, testing::SizeIs(20));
  EXPECT_TRUE(service->wants_input(client.peer));
}

TEST_F(ServiceLimitsTest, H89_ReadsThatWaitForAWriteCountToo) {
  Client& client = open();
  std::string bytes;
  wire::append_frame(bytes, wire::RequestHeader{1, Op::kCreate}, node("/a"));
  for (int i = 0; i < 20; ++i) {
    wire::append_frame(bytes, wire::RequestHeader{2 + i, Op::kExists},
                       wire::PathWatch{"/" + std::string(3'000, 'x'), false});
  }
  feed(client, bytes);

  EXPECT_FALSE(service->wants_input(client.peer));
  sync();
  EXPECT_THAT(client.inbox, testing::SizeIs(21));
  EXPECT_TRUE(service->wants_input(client.peer));
}

/// The list of 64 entries that every identity of the caller goes into.
wire::SetAcl long_list() {
  wire::SetAcl set{"/a", {}, -1};
  for (int i = 0; i < 64; ++i) {
    wire::WireAcl entry;
    entry.permissions = 31;
    entry.scheme = "auth";
    entry.id = std::to_string(i);
    set.acl.push_back(entry);
  }
  return set;
}

TEST_F(ServiceLimitsTest, H89_WhatARequestGrowsIntoCounts) {
  Client& client = open();
  call(client, Op::kCreate, node("/a"));
  ASSERT_EQ(prove(client, "ann:" + std::string(100, 'h')), Err::kOk);
  std::string bytes;
  for (int i = 0; i < 20; ++i) {
    wire::append_frame(bytes, wire::RequestHeader{i, Op::kSetAcl}, long_list());
  }
  feed(client, bytes);

  EXPECT_FALSE(service->wants_input(client.peer));
  EXPECT_EQ(service->in_flight(), 2U);  // About 8,000 bytes each, made out of 900.
  sync();
  EXPECT_THAT(client.inbox, testing::SizeIs(20));
  EXPECT_EQ(service->in_flight_bytes(), 0U);
}

TEST_F(ServiceLimitsTest, H89_ALongPathToSyncCounts) {
  Client& client = open();
  ask(client, Op::kCreate, node("/a"));
  for (int i = 0; i < 20; ++i) {
    ask(client, Op::kSync, wire::PathOnly{"/" + std::string(3'000, 'x')});
  }

  EXPECT_EQ(service->in_flight(), 5U);
  sync();
  EXPECT_THAT(client.inbox, testing::SizeIs(21));
}

TEST_F(ServiceLimitsTest, ABatchCanBeTakenInParts) {
  Client& client = open();
  for (int i = 0; i < 3; ++i) {
    std::string frame;
    wire::append_frame(frame, wire::RequestHeader{i, Op::kCreate},
                       node("/" + std::to_string(i), std::string(1'000, 'x')));
    service->receive(client.peer, frame, moment());
  }

  const auto first = service->take_batch(2'500);
  const auto second = service->take_batch(10);
  EXPECT_THAT(first, testing::SizeIs(2));
  EXPECT_THAT(second, testing::SizeIs(1));
  EXPECT_THAT(service->take_batch(10), testing::IsEmpty());
  service->stored(first.back().zxid, moment());
  deliver();
  EXPECT_THAT(client.inbox, testing::SizeIs(2));
  service->stored(second.back().zxid, moment());
  deliver();
  EXPECT_THAT(client.inbox, testing::SizeIs(3));
}

/// All of them go in one record when the session ends, and a record has a limit.
TEST_F(ServiceLimitsTest, H94_SessionsThatComeAtOnceAreCountedBeforeTheyAreDurable) {
  for (int i = 0; i < 60; ++i) greet(dial());
  sync();

  EXPECT_EQ(service->tree().sessions().size(), 40U);
  EXPECT_EQ(service->statistics().sessions_refused, 20U);
}

TEST_F(ServiceLimitsTest, H94_ASessionsEphemeralNodesAreBounded) {
  Client& client = open();
  const auto make = [&](char letter) {
    wire::Create request = node("/" + std::string(9'000, letter), "");
    request.mode = wire::CreateMode::kEphemeral;
    return call(client, Op::kCreate, request).header.err;
  };
  EXPECT_EQ(make('a'), Err::kOk);
  EXPECT_EQ(make('b'), Err::kOk);

  EXPECT_EQ(make('c'), Err::kQuotaExceeded);

  EXPECT_EQ(call(client, Op::kCreate, node("/persistent")).header.err, Err::kOk);
  call(client, Op::kDelete, wire::PathVersion{"/" + std::string(9'000, 'a'), -1});
  EXPECT_EQ(make('c'), Err::kOk);
}

TEST_F(ServiceLimitsTest, H89_AMultiReadCannotMultiplyALargeNode) {
  Client& client = open();
  call(client, Op::kCreate, node("/large", std::string(9'000, 'x')));
  wire::Multi multi;
  multi.ops.assign(10, {Op::kGetData, wire::PathWatch{"/large", false}});
  EXPECT_EQ(call(client, Op::kMultiRead, multi).header.err, Err::kOk);

  multi.ops.resize(1'000, multi.ops.front());

  EXPECT_EQ(call(client, Op::kMultiRead, multi).header.err, Err::kQuotaExceeded);
  EXPECT_FALSE(client.closed);
}

TEST_F(ServiceLimitsTest, H94_WhatIsOnItsWayToTheDiskCounts) {
  std::vector<Client*> writers;
  for (int i = 0; i < 20; ++i) writers.push_back(&open());
  for (std::size_t i = 0; i < writers.size(); ++i) {
    ask(*writers[i], Op::kCreate, node("/" + std::to_string(i), std::string(9'000, 'x')));
  }
  sync();

  const auto is_made = [](Client* client) { return client->inbox.front().header.err == Err::kOk; };
  EXPECT_EQ(std::count_if(writers.begin(), writers.end(), is_made), 11);
}

TEST_F(ServiceLimitsTest, WhenItIsFullWhatIsThereCanStillBecomeSmaller) {
  Client& client = open();
  const auto set = [](const std::string& path, std::size_t size) {
    return wire::SetData{path, std::string(size, 'y'), -1};
  };
  for (int i = 0; i < 10; ++i) {
    call(client, Op::kCreate, node("/" + std::to_string(i), std::string(9'900, 'x')));
  }
  ASSERT_EQ(call(client, Op::kCreate, node("/more", std::string(1'000, 'x'))).header.err,
            Err::kQuotaExceeded);
  ASSERT_EQ(call(client, Op::kSetData, set("/0", 11'000)).header.err, Err::kQuotaExceeded);

  EXPECT_EQ(call(client, Op::kSetData, set("/0", 9'900)).header.err, Err::kOk);
  // What is on its way to the disk takes no more than that either.
  ask(client, Op::kSetData, set("/1", 9'000));
  ask(client, Op::kSetData, set("/2", 9'000));
  sync();
  EXPECT_EQ(take(client).header.err, Err::kOk);
  EXPECT_EQ(take(client).header.err, Err::kOk);
  EXPECT_EQ(call(client, Op::kCreate, node("/more", std::string(1'000, 'x'))).header.err, Err::kOk);
}

TEST_F(ServiceLimitsTest, H94_WatchesOnLongPathsAreBounded) {
  Client& client = open();
  const auto watch = [&](char letter, std::size_t size) {
    const wire::PathWatch request{"/" + std::string(size, letter), true};
    return call(client, Op::kExists, request).header.err;
  };
  EXPECT_EQ(watch('a', 6'000), Err::kNoNode);

  EXPECT_EQ(watch('b', 6'000), Err::kQuotaExceeded);

  EXPECT_EQ(watch('c', 10), Err::kNoNode);
  EXPECT_EQ(call(client, Op::kRemoveWatches,
                 wire::PathWatcherType{"/" + std::string(6'000, 'a'), wire::WatcherType::kAny})
                .header.err,
            Err::kOk);
  EXPECT_EQ(watch('b', 6'000), Err::kNoNode);
  EXPECT_EQ(service->tree().watches().bytes(client.peer), 6'001U + 11U);
}

TEST_F(ServiceLimitsTest, H94_LongPathsOfManyConnectionsAreBoundedToo) {
  const auto watch = [&](Client& client, char letter) {
    const wire::PathWatch request{"/" + std::string(7'999, letter), true};
    return call(client, Op::kExists, request).header.err;
  };
  Client& first = open();
  Client& second = open();
  Client& third = open();
  Client& fourth = open();
  EXPECT_EQ(watch(first, 'a'), Err::kNoNode);
  EXPECT_EQ(watch(second, 'b'), Err::kNoNode);
  EXPECT_EQ(watch(third, 'b'), Err::kNoNode) << "it is there already";
  EXPECT_EQ(watch(fourth, 'c'), Err::kNoNode);

  EXPECT_EQ(watch(open(), 'd'), Err::kQuotaExceeded);

  hang_up(second);
  EXPECT_EQ(watch(open(), 'd'), Err::kQuotaExceeded) << "somebody else watches the same path";
  hang_up(third);
  EXPECT_EQ(watch(open(), 'd'), Err::kNoNode);
  EXPECT_EQ(service->tree().watches().bytes(), 24'000U);
}

TEST_F(ServiceLimitsTest, H94_WatchesInAllAreBounded) {
  Client& first = open();
  Client& second = open();
  for (int i = 0; i < 50; ++i) {
    call(first, Op::kExists, wire::PathWatch{"/" + std::to_string(i), true});
  }

  EXPECT_EQ(call(second, Op::kExists, wire::PathWatch{"/a", true}).header.err, Err::kQuotaExceeded);
  hang_up(first);
  EXPECT_EQ(call(second, Op::kExists, wire::PathWatch{"/a", true}).header.err, Err::kNoNode);
}

TEST_F(ServiceLimitsTest, AWatchThatIsThereAlreadyNeedsNoRoom) {
  Client& client = open();
  const auto watch = [&](int i) {
    return call(client, Op::kExists, wire::PathWatch{"/" + std::to_string(i), true}).header.err;
  };
  for (int i = 0; i < 50; ++i) ASSERT_EQ(watch(i), Err::kNoNode) << i;
  ASSERT_EQ(watch(50), Err::kQuotaExceeded);

  EXPECT_EQ(watch(7), Err::kNoNode);
  EXPECT_EQ(service->tree().watches().size(), 50U);
}

class ServiceListsTest : public ServiceLimitsTest {
 protected:
  ServiceListsTest() : ServiceLimitsTest(roomy()) {}

  static ServiceOptions roomy() {
    ServiceOptions options = limited();
    options.limits.bytes = std::size_t{64} << 20U;
    return options;
  }
};

TEST_F(ServiceListsTest, H94_AMultiCannotMultiplyIdentities) {
  Client& client = open();
  ASSERT_EQ(prove(client, "ann:" + std::string(10'000, 'h')), Err::kOk);
  wire::Create request = node("/");
  request.acl.front().scheme = "auth";
  request.acl.front().id = "";
  wire::Multi multi;
  for (int i = 0; i < 1'000; ++i) {
    request.path = "/" + std::to_string(i);
    multi.ops.push_back({Op::kCreate, request});
  }

  const auto reply = call(client, Op::kMulti, multi).as<wire::MultiReply>();

  ASSERT_EQ(reply.results.size(), 1'000U);
  const auto culprit = std::ranges::find_if(reply.results, [](const wire::MultiResult& part) {
    return std::get<wire::ErrorReply>(part.body).err != Err::kOk;
  });
  ASSERT_NE(culprit, reply.results.end());
  EXPECT_EQ(std::get<wire::ErrorReply>(culprit->body).err, Err::kInvalidAcl);
}

TEST_F(ServiceLimitsTest, H94_PermissionListsCountAsBytes) {
  Client& client = open();
  Err last = Err::kOk;
  int made = 0;
  for (; made < 100 && last == Err::kOk; ++made) {
    wire::Create request = node("/" + std::to_string(made));
    request.acl.clear();
    for (int i = 0; i < 100; ++i) {
      wire::WireAcl entry;
      entry.permissions = 31;
      entry.scheme = "digest";
      entry.id = std::to_string(made) + "-" + std::to_string(i) + ":" + std::string(28, 'h');
      request.acl.push_back(entry);
    }
    last = call(client, Op::kCreate, request).header.err;
  }

  EXPECT_EQ(last, Err::kQuotaExceeded);
  EXPECT_LT(made, 40);
}

TEST_F(ServiceLimitsTest, H94_AUsageThatAClientMadeUpDoesNotOverflow) {
  Client& client = open();
  call(client, Op::kCreate, node("/a"));
  const std::string quota = "/zookeeper/quota/a";
  call(client, Op::kCreate, node(quota));
  call(client, Op::kCreate, node(quota + "/zookeeper_limits", "count=5,bytes=-1"));
  call(client, Op::kCreate, node(quota + "/zookeeper_stats"));
  const std::string most = "9223372036854775807";
  const wire::SetData made_up{quota + "/zookeeper_stats", "count=" + most + ",bytes=" + most, -1};
  ASSERT_EQ(call(client, Op::kSetData, made_up).header.err, Err::kOk);

  EXPECT_EQ(call(client, Op::kCreate, node("/a/b")).header.err, Err::kOk);

  const auto stats = call(client, Op::kGetData, wire::PathWatch{quota + "/zookeeper_stats", false});
  EXPECT_EQ(stats.as<wire::GetDataReply>().data, "count=" + most + ",bytes=" + most);
}

}  // namespace
}  // namespace latchkey::tree
