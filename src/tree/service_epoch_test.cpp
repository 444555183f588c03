#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <gmock/gmock.h>

#include "tree/service_rig.hpp"

namespace latchkey::tree {
namespace {

using namespace std::chrono_literals;
using testing::IsEmpty;
using wire::Err;
using wire::Op;
using Client = test::ServiceRig::Client;
using test::node;
using Message = test::ServiceRig::Message;

/// Of the counter in the low half of a zxid: one more, and a new epoch is due.
constexpr std::int64_t kLastQuietCount = 0xFFF0'0000;

std::int64_t epoch_of(std::int64_t zxid) { return zxid >> 32; }

wire::Multi two_sets(const std::string& one, const std::string& other) {
  return {
      {{Op::kSetData, wire::SetData{one, "1", -1}}, {Op::kSetData, wire::SetData{other, "2", -1}}}};
}

/// A server that has given out nearly all the zxids of its epoch.
class EpochTest : public testing::Test, public test::ServiceRig {
 protected:
  /// As if the counter had come this far: nobody has the time to spend four milliards.
  void wind_to(std::int64_t counter) {
    sync();
    Record record;
    record.kind = Record::Kind::kNewEpoch;
    record.zxid = (epoch_of(service->tree().applied_zxid()) << 32) | counter;
    durable.push_back({record.zxid, encode(record)});
    ASSERT_TRUE(service->tree().replay(record.zxid, durable.back().bytes));
  }

  /// The process dies, and what is not durable is lost; nobody is connected to the next one.
  void crash() {
    clients.clear();
    restart();
  }
};

TEST_F(EpochTest, H82_TheTickThatFindsTheCounterNearItsEndBeginsAnEpochOnce) {
  Client& client = open(40'000);
  wind_to(kLastQuietCount);
  const std::int64_t epoch = epoch_of(durable.back().zxid);
  pass(50ms);
  sync();
  EXPECT_EQ(durable.back().zxid, (epoch << 32) | kLastQuietCount) << "begun too early";

  const Message last = call(client, Op::kCreate2, node("/last"));
  EXPECT_EQ(last.header.zxid, (epoch << 32) | (kLastQuietCount + 1));
  pass(50ms);
  pass(50ms);
  sync();

  EXPECT_EQ(durable.back().zxid, (epoch + 1) << 32);
  EXPECT_FALSE(service->tree().needs_epoch());
  const Message first = call(client, Op::kCreate2, node("/first"));
  EXPECT_EQ(first.header.zxid, durable.back().zxid);
  EXPECT_EQ(first.header.zxid, ((epoch + 1) << 32) + 1);
  EXPECT_EQ(first.as<wire::Create2Reply>().stat.czxid, first.header.zxid);
}

/// A refusal has a zxid of its own and leaves no record: without the epoch's, a crash would forget
/// that anybody has seen one so high.
TEST_F(EpochTest, H82_NobodySeesAZxidOfAnEpochThatACrashCouldTakeBack) {
  Client& client = open(40'000);
  Client& reader = open(40'000);
  wind_to(kLastQuietCount);
  const std::int64_t before = call(client, Op::kCreate, node("/a")).header.zxid;
  pass(50ms);

  ask(client, Op::kCreate, node("/a"));
  ask(reader, Op::kExists, wire::PathWatch{"/a", false});
  ask(reader, Op::kPing, wire::Empty{});

  EXPECT_THAT(client.inbox, IsEmpty());
  EXPECT_EQ(take(reader).header.zxid, before);
  EXPECT_EQ(take(reader).header.zxid, before);
  sync();
  const Message refused = take(client);
  EXPECT_EQ(refused.header.err, Err::kNodeExists);
  EXPECT_GT(epoch_of(refused.header.zxid), epoch_of(before));
  crash();
  EXPECT_GT(durable.back().zxid, refused.header.zxid);
}

/// Several clients, a journal that lags, crashes; every run comes to the end of its counter.
class RandomEpochTest : public EpochTest, public testing::WithParamInterface<std::uint64_t> {
 protected:
  void act() {
    Client& client = *clients[random_.below(clients.size())];
    static const char* const kPaths[] = {"/a", "/b", "/c"};
    const std::string path = kPaths[random_.below(std::size(kPaths))];
    switch (random_.below(7)) {
      case 0: return ask_write(client, Op::kCreate, node(path));
      case 1: return ask_write(client, Op::kDelete, wire::PathVersion{path, -1});
      case 2: return ask_write(client, Op::kSetData, wire::SetData{path, "z", -1});
      case 3: return ask_write(client, Op::kMulti, two_sets("/", path));
      case 4: ask(client, Op::kGetData, wire::PathWatch{path, false}); return;
      case 5: ask(client, Op::kSync, wire::PathOnly{path}); return;
      default: ask(client, Op::kPing, wire::Empty{}); return;
    }
  }

  template <class Body>
  void ask_write(Client& client, Op op, const Body& body) {
    writes_[{&client, client.xid + 1}] = op;
    ask(client, op, body);
  }

  /// Takes what has arrived.
  void look() {
    for (const auto& client : clients) {
      for (; !client->inbox.empty(); client->inbox.pop_front()) {
        const Message& message = client->inbox.front();
        const std::int64_t zxid = message.header.zxid;
        ASSERT_GE(zxid, seen_[client.get()]) << "went back";
        seen_[client.get()] = zxid;
        newest_ = std::max(newest_, zxid);
        const auto write = writes_.find({client.get(), message.header.xid});
        if (write == writes_.end()) continue;
        ASSERT_TRUE(given_.insert(zxid).second) << "given out twice: " << std::hex << zxid;
        ASSERT_NO_FATAL_FAILURE(look_into(message, write->second));
      }
    }
  }

  /// What a write did has the zxid of its answer, in each part of a multi too.
  void look_into(const Message& message, Op op) {
    if (message.header.err != Err::kOk) return;
    if (op == Op::kSetData) {
      ASSERT_EQ(message.as<wire::StatReply>().stat.mzxid, message.header.zxid);
    }
    if (op != Op::kMulti) return;
    const auto reply = message.as<wire::MultiReply>();
    ASSERT_EQ(reply.results.size(), 2U);
    for (const wire::MultiResult& result : reply.results) {
      const auto* set = std::get_if<wire::StatReply>(&result.body);
      if (set == nullptr) return;  // Refused as a whole.
      ASSERT_EQ(set->stat.mzxid, message.header.zxid);
      ++multis_;
    }
  }

  void play_a_run() {
    seen_.clear();
    writes_.clear();
    for (int i = 0; i < 3; ++i) {
      Client& client = dial();
      greet(client, 40'000, {}, newest_);
      sync();
      ASSERT_TRUE(client.greeted) << "what was seen is above what there is";
      seen_[&client] = newest_;
    }
    wind_to(kLastQuietCount - static_cast<std::int64_t>(random_.below(20)));
    const std::int64_t epoch = epoch_of(durable.back().zxid);
    for (int step = 0; step < 200; ++step) {
      act();
      if (random_.below(5) == 0) sync();
      if (random_.below(10) == 0) pass(50ms);
      ASSERT_NO_FATAL_FAILURE(look()) << "step " << step;
    }
    EXPECT_EQ(epoch_of(newest_), epoch + 1);
  }

  base::Random random_{GetParam()};
  std::map<Client*, std::int64_t> seen_;
  std::map<std::pair<Client*, std::int32_t>, Op> writes_;
  std::set<std::int64_t> given_;  ///< To writes, refused or not, of all runs.
  std::int64_t newest_ = 0;       ///< That anybody has seen.
  int multis_ = 0;
};

TEST_P(RandomEpochTest, H82_NoZxidGoesBackOverTheEndOfTheCounterNorOverACrash) {
  for (int run = 0; run < 5; ++run) {
    ASSERT_NO_FATAL_FAILURE(play_a_run()) << "seed " << GetParam() << " run " << run;
    crash();
    ASSERT_GT(durable.back().zxid, newest_) << "seed " << GetParam() << " run " << run;
  }
  EXPECT_GT(multis_, 0);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomEpochTest, testing::Range<std::uint64_t>(1, 9));

}  // namespace
}  // namespace latchkey::tree
