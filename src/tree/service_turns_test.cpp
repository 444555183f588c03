#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "tree/service.hpp"
#include "tree/service_rig.hpp"

// How the server's time is shared out: by turns, counted in work and not on a clock.
namespace latchkey::tree {
namespace {

using namespace std::chrono_literals;
using testing::SizeIs;
using wire::Err;
using wire::Op;
using Client = test::ServiceRig::Client;
using test::node;

/// No turn has more of them. One has as few as a single one, if that is expensive.
constexpr std::size_t kMostInATurn = 2'000;

class ServiceTurnsTest : public testing::Test, public test::ServiceRig {
 protected:
  /// So many of the same request, with growing xids.
  template <class Body>
  static std::string many(std::size_t count, Op op, const Body& body) {
    std::string bytes;
    for (std::size_t i = 1; i <= count; ++i) {
      wire::append_frame(bytes, wire::RequestHeader{static_cast<std::int32_t>(i), op}, body);
    }
    return bytes;
  }
  /// It comes, and nothing is done about it yet.
  void arrives(const Client& client, std::string_view bytes) {
    service->receive(client.peer, bytes, moment());
  }
  std::size_t answered(const Client& client) const {
    return service->peers().at(client.peer)->statistics.sent;
  }
  /// A long list that lets in everybody from here. They come first, so that the test is fast: what
  /// is counted is what it may take.
  static AclList strangers(int count) {
    AclList list{{{kAllPermissions, "ip", "10.0.0.1"}}};
    for (int i = 0; i < count; ++i) {
      list.push_back({kAllPermissions, "digest", "user" + std::to_string(i) + ":x"});
    }
    return list;
  }
  void make_children(int count) {
    Client& maker = open();
    call(maker, Op::kCreate, node("/big"));
    for (int i = 0; i < count; ++i) ask(maker, Op::kCreate, node("/big/n" + std::to_string(i)));
    sync();
    call(maker, Op::kCloseSession, wire::Empty{});
  }
  /// Everybody who is ready is served once, as a driver with sockets does it. Says how often.
  int one_round() {
    int served = 0;
    service->begin_round();
    while (!service->round_is_over()) {
      const std::vector<PeerId> ready = service->take_ready();
      if (ready.empty()) break;
      for (const PeerId peer : ready) {
        while (!service->take_output(peer, moment()).empty()) ++served;
      }
    }
    return served;
  }
  void expect_all_in_order(const Client& client, std::size_t count) {
    ASSERT_THAT(client.inbox, SizeIs(count));
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(client.inbox[i].header.xid, static_cast<std::int32_t>(i + 1));
    }
  }
};

TEST_F(ServiceTurnsTest, H89_ManyRequestsAtOnceAreAnsweredInTurnsAndInOrder) {
  Client& greedy = open();
  Client& other = open();
  const std::size_t before = answered(greedy);

  arrives(greedy, many(6'000, Op::kExists, wire::PathWatch{"/", false}));
  arrives(other, many(1, Op::kPing, wire::Empty{}));

  EXPECT_LT(answered(greedy) - before, kMostInATurn);
  deliver();
  EXPECT_THAT(other.inbox, SizeIs(1));
  expect_all_in_order(greedy, 6'000);
}

TEST_F(ServiceTurnsTest, H89_ExpensiveRequestsAreFewInATurn) {
  constexpr std::size_t kCount = 1'000;
  make_children(500);
  Client& greedy = open();
  Client& other = open();
  const std::size_t before = answered(greedy);

  arrives(greedy, many(kCount, Op::kGetChildren, wire::PathWatch{"/big", false}));
  EXPECT_LT(answered(greedy) - before, 20U);
  arrives(other, many(1, Op::kPing, wire::Empty{}));
  one_round();

  EXPECT_EQ(service->peers().at(other.peer)->statistics.last_op, Op::kPing);
  EXPECT_LT(answered(greedy) - before, 40U);
}

TEST_F(ServiceTurnsTest, H89_PermissionsToLookThroughAreWorkToo) {
  Client& greedy = open();
  wire::Create guarded = node("/guarded");
  guarded.acl = strangers(20'000);
  ASSERT_EQ(call(greedy, Op::kCreate, guarded).header.err, Err::kOk);
  const std::size_t before = answered(greedy);

  arrives(greedy, many(500, Op::kGetData, wire::PathWatch{"/guarded", false}));
  EXPECT_LT(answered(greedy) - before, 10U);
  arrives(greedy, many(100, Op::kSetData, wire::SetData{"/guarded", "y", -1}));

  EXPECT_LT(answered(greedy) - before, 10U);
}

TEST_F(ServiceTurnsTest, H89_AMultiThatLooksThroughTooManyPermissionsIsRefused) {
  Client& greedy = open();
  wire::Create guarded = node("/guarded");
  guarded.acl = strangers(20'000);
  ASSERT_EQ(call(greedy, Op::kCreate, guarded).header.err, Err::kOk);
  wire::Multi checks;
  wire::Multi gets;
  for (int i = 0; i < 1'000; ++i) {
    checks.ops.push_back({Op::kCheck, wire::PathVersion{"/guarded", -1}});
    gets.ops.push_back({Op::kGetData, wire::PathWatch{"/guarded", false}});
  }

  const auto refused = call(greedy, Op::kMulti, checks).as<wire::MultiReply>();
  const Message read = call(greedy, Op::kMultiRead, gets);

  EXPECT_EQ(std::get<wire::ErrorReply>(refused.results.back().body).err,
            Err::kRuntimeInconsistency);
  EXPECT_EQ(read.header.err, Err::kQuotaExceeded);
}

/// Whether a watcher may hear of a change is looked for as well, for each of them.
TEST_F(ServiceTurnsTest, H89_ToTellOfAChangeIsWorkOfWhoeverMadeIt) {
  Client& greedy = open();
  call(greedy, Op::kCreate, node("/watched"));
  for (int i = 0; i < 100; ++i) {
    Client& watcher = open();
    call(watcher, Op::kAddWatch, wire::AddWatch{"/watched", wire::AddWatchMode::kPersistent});
  }
  const std::size_t before = answered(greedy);

  arrives(greedy, many(500, Op::kSetData, wire::SetData{"/watched", "y", -1}));
  sync();
  EXPECT_EQ(answered(greedy) - before, 500U);
  arrives(greedy, many(500, Op::kPing, wire::Empty{}));

  EXPECT_LT(answered(greedy) - before, 600U) << "it has had its turn";
}

TEST_F(ServiceTurnsTest, H89_AMultiThatTellsTooManyIsRefused) {
  Client& greedy = open();
  call(greedy, Op::kCreate, node("/watched"));
  for (int i = 0; i < 200; ++i) {
    Client& watcher = open();
    call(watcher, Op::kAddWatch, wire::AddWatch{"/watched", wire::AddWatchMode::kPersistent});
  }
  const auto sets = [&](int count) {
    wire::Multi multi;
    for (int i = 0; i < count; ++i) {
      multi.ops.push_back({Op::kSetData, wire::SetData{"/watched", "y", -1}});
    }
    return call(greedy, Op::kMulti, multi).as<wire::MultiReply>().results.front().op;
  };

  EXPECT_EQ(sets(1'000), Op::kSetData);
  EXPECT_EQ(sets(25'000), Op::kError);
}

TEST_F(ServiceTurnsTest, H89_TurnsGoAround) {
  std::vector<Client*> greedy;
  for (int i = 0; i < 3; ++i) greedy.push_back(&open());
  const std::string requests = many(6'000, Op::kExists, wire::PathWatch{"/", false});
  for (const Client* client : greedy) arrives(*client, requests);
  ASSERT_LT(answered(*greedy[0]), kMostInATurn);

  while (answered(*greedy[0]) < 6'000) {
    one_round();
    std::vector<std::size_t> progress;
    for (const Client* client : greedy) progress.push_back(answered(*client));
    const auto [least, most] = std::ranges::minmax(progress);
    EXPECT_LT(most - least, kMostInATurn);
  }
}

TEST_F(ServiceTurnsTest, H89_WhoAlwaysHasSomethingNewDoesNotHoldUpWhoeverRests) {
  Client& greedy = open();
  Client& busy = open();
  arrives(greedy, many(6'000, Op::kExists, wire::PathWatch{"/", false}));

  for (int round = 0; round < 8; ++round) {
    arrives(busy, many(1, Op::kPing, wire::Empty{}));
    one_round();
  }

  EXPECT_GT(answered(greedy), 6'000U);
}

TEST_F(ServiceTurnsTest, H89_ReadsBehindAWriteHaveTurnsToo) {
  make_children(500);
  Client& greedy = open();
  Client& other = open();
  std::string requests = many(1, Op::kCreate, node("/a"));
  for (std::int32_t xid = 2; xid <= 900; ++xid) {
    wire::append_frame(requests, wire::RequestHeader{xid, Op::kGetChildren},
                       wire::PathWatch{"/big", false});
  }
  arrives(greedy, requests);
  const std::size_t before = answered(greedy);

  pending = service->take_batch();
  service->stored(pending.back().zxid, moment());
  EXPECT_LT(answered(greedy) - before, 60U);
  arrives(other, many(1, Op::kPing, wire::Empty{}));
  EXPECT_EQ(service->peers().at(other.peer)->statistics.last_op, Op::kPing);

  pending.clear();
  deliver();
  expect_all_in_order(greedy, 900);
}

TEST_F(ServiceTurnsTest, WhoRestsIsNotReadFromButHeard) {
  Client& greedy = open();
  arrives(greedy, many(6'000, Op::kExists, wire::PathWatch{"/", false}));

  EXPECT_FALSE(service->wants_input(greedy.peer));
  EXPECT_TRUE(test::is_read_or_woken(*service, greedy.peer));
  deliver();
  EXPECT_TRUE(service->wants_input(greedy.peer));
}

TEST_F(ServiceTurnsTest, H85_WhoRestsWaitsForUsAndDoesNotRunOut) {
  Client& greedy = open(4'000);
  Client& silent = open(4'000);
  arrives(greedy, many(6'000, Op::kExists, wire::PathWatch{"/", false}));

  for (int i = 0; i < 3; ++i) {
    now += 3s;
    service->tick(moment());
  }
  now += 100ms;
  sync();

  EXPECT_TRUE(silent.closed);
  EXPECT_TRUE(service->tree().knows(greedy.session.session_id));
  expect_all_in_order(greedy, 6'000);
}

TEST_F(ServiceTurnsTest, WhoHangsUpWhileItRestsIsForgotten) {
  Client& greedy = open();
  arrives(greedy, many(6'000, Op::kExists, wire::PathWatch{"/", false}));

  EXPECT_THAT(service->take_ready(), SizeIs(1));

  hang_up(greedy);

  EXPECT_TRUE(service->round_is_over());
  EXPECT_TRUE(service->take_ready().empty());
  EXPECT_FALSE(service->round_is_over());
}

TEST(ServiceWordTurnsTest, H89_LongAnswersToWordsComeInTurnsToo) {
  ServiceOptions options;
  int made = 0;
  options.admin_word = [&](std::string_view word) -> std::optional<WordAnswer> {
    if (word != "dump") return std::nullopt;
    ++made;
    return WordAnswer{std::string(200'000, 'x')};
  };
  test::ServiceRig rig(std::move(options));
  Client& other = rig.open();
  std::vector<Client*> askers;
  for (int i = 0; i < 10; ++i) askers.push_back(&rig.dial());

  for (const Client* asker : askers) rig.service->receive(asker->peer, "dump", rig.moment());
  EXPECT_EQ(made, 2) << "one turn's worth";
  rig.service->receive(askers.back()->peer, "\n", rig.moment());
  std::string ping;
  wire::append_frame(ping, wire::RequestHeader{wire::kPingXid, Op::kPing}, wire::Empty{});
  rig.service->receive(other.peer, ping, rig.moment());
  EXPECT_FALSE(rig.service->take_output(other.peer, rig.moment()).empty());
  EXPECT_EQ(made, 2);

  std::size_t bytes = 0;
  for (std::vector<PeerId> ready = rig.service->take_ready(); !ready.empty();
       ready = rig.service->take_ready()) {
    const int before = made;
    for (const PeerId peer : ready) bytes += rig.service->take_output(peer, rig.moment()).size();
    EXPECT_LE(made - before, 2);
  }
  EXPECT_EQ(made, 10) << "and everybody has had one";
  EXPECT_EQ(bytes, 2'000'000U);
}

TEST(ServiceWordTurnsTest, H89_AShortAnswerThatTookLongCountsForWhatItTook) {
  ServiceOptions options;
  int made = 0;
  options.admin_word = [&](std::string_view) {
    ++made;
    return WordAnswer{"1 connections watching 1000000 paths\n", 200'000};
  };
  test::ServiceRig rig(std::move(options));
  std::vector<Client*> askers;
  for (int i = 0; i < 10; ++i) askers.push_back(&rig.dial());

  for (const Client* asker : askers) rig.service->receive(asker->peer, "wchs", rig.moment());

  EXPECT_EQ(made, 2) << "one turn's worth";
  rig.deliver();
  EXPECT_EQ(made, 10);
}

TEST(ServiceWordTurnsTest, H89_WhoWaitsForItsTurnWithAWordIsNotLate) {
  ServiceOptions options;
  options.admin_word = [&](std::string_view) { return WordAnswer{std::string(300'000, 'x')}; };
  test::ServiceRig rig(std::move(options));
  const Client& first = rig.dial();
  const Client& second = rig.dial();
  rig.service->receive(first.peer, "dump", rig.moment());
  rig.service->receive(second.peer, "dump", rig.moment());

  rig.now += 11s;
  rig.service->tick(rig.moment());

  EXPECT_EQ(rig.service->closing(second.peer), Service::Closing::kNo);
  rig.service->begin_round();
  EXPECT_EQ(rig.service->take_output(second.peer, rig.moment()).size(), 300'000U);
  EXPECT_EQ(rig.service->closing(second.peer), Service::Closing::kAfterOutput);
}

}  // namespace
}  // namespace latchkey::tree
