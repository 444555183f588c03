#include "tree/tree.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include <gmock/gmock.h>

#include "base/random.hpp"

namespace latchkey::tree {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using wire::Err;
using wire::Op;

constexpr SessionId kAnn = 11;
constexpr SessionId kOther = 22;

AclList open_acl_list() { return *open_list(); }

Write create(std::string path, wire::CreateMode mode = wire::CreateMode::kPersistent) {
  return {Op::kCreate2, wire::Create{std::move(path), "x", open_acl_list(), mode}};
}
Write remove(std::string path) { return {Op::kDelete, wire::PathVersion{std::move(path), -1}}; }
Write set(std::string path, std::string data, std::int32_t version = -1) {
  return {Op::kSetData, wire::SetData{std::move(path), std::move(data), version}};
}
Write ttl_node(std::string path, std::int64_t ttl_ms) {
  return {Op::kCreateTtl,
          wire::CreateTtl{std::move(path), "x", open_acl_list(), wire::CreateMode::kTtl, ttl_ms}};
}
wire::MultiOp part(const Write& write) {
  return std::visit(
      [&](const auto& body) -> wire::MultiOp {
        if constexpr (std::is_constructible_v<decltype(wire::MultiOp::body), decltype(body)>) {
          return {write.op, body};
        } else {
          std::abort();
        }
      },
      write.body);
}

const auto nobody = [](PeerId) { return std::span<const Identity>(); };

/// A tree with two sessions, and the records it was made of.
class TreeTest : public testing::Test {
 protected:
  TreeTest() {
    store(tree_.begin_epoch(++time_));
    store(tree_.open_session(kAnn, 4'000, "secret-of-ann---", ++time_));
    store(tree_.open_session(kOther, 4'000, "secret-of-bob---", ++time_));
  }

  Effects store(const Record& record) {
    log_.push_back({record.zxid, encode(record)});
    return tree_.apply(record, nobody);
  }

  Verdict decide(const Write& write, SessionId session = kAnn) {
    return tree_.decide({session, {}}, write, ++time_);
  }

  /// Decides and applies; the error if it was refused.
  Err run(const Write& write, SessionId session = kAnn) {
    const Verdict verdict = decide(write, session);
    if (verdict.record) store(*verdict.record);
    return verdict.err;
  }

  static std::string saved(const Tree& tree) {
    std::string bytes;
    tree.save([&](std::string_view item) { bytes += item; });
    return bytes;
  }

  struct Logged {
    std::int64_t zxid;
    std::string bytes;
  };
  Tree tree_;
  std::vector<Logged> log_;
  std::int64_t time_ = 1'000;
};

TEST_F(TreeTest, ANewTreeHasTheSystemNodes) {
  EXPECT_EQ(tree_.nodes().count(), 4U);
  EXPECT_EQ(tree_.nodes().find("")->stat().cversion, -1);
  EXPECT_EQ(tree_.nodes().find("/zookeeper")->stat().cversion, -2);
  EXPECT_EQ(tree_.nodes().find("/zookeeper/config")->stat().aversion, -1);
}

TEST_F(TreeTest, H78_WhatIsPendingBindsDecisionsButIsNotSeen) {
  const Verdict first = decide(create("/a"));
  const Verdict second = decide(create("/a"), kOther);

  EXPECT_EQ(first.err, Err::kOk);
  EXPECT_EQ(second.err, Err::kNodeExists);
  EXPECT_EQ(tree_.exists(1, {"/a", false}).err, Err::kNoNode);
  store(*first.record);
  EXPECT_EQ(tree_.exists(1, {"/a", false}).err, Err::kOk);
}

TEST_F(TreeTest, PendingVersionsAndCountersGoOnFromEachOther) {
  ASSERT_EQ(run(create("/a")), Err::kOk);
  const Verdict one = decide(set("/a", "1", 0));
  const Verdict two = decide(set("/a", "2", 1));
  const Verdict late = decide(set("/a", "3", 0));
  const Verdict child = decide(create("/a/n-", wire::CreateMode::kPersistentSequential));
  const Verdict next = decide(create("/a/n-", wire::CreateMode::kPersistentSequential));
  const Verdict parent = decide(remove("/a"));

  EXPECT_EQ(late.err, Err::kBadVersion);
  EXPECT_EQ(parent.err, Err::kNotEmpty);
  EXPECT_EQ(child.record->changes[0].path, "/a/n-0000000000");
  EXPECT_EQ(next.record->changes[0].path, "/a/n-0000000001");
  for (const Verdict* verdict : {&one, &two, &child, &next}) store(*verdict->record);
  EXPECT_EQ(tree_.nodes().find("/a")->stat().version, 2);
  EXPECT_EQ(tree_.nodes().find("/a")->stat().cversion, 2);
}

TEST_F(TreeTest, CversionCountsCreatesAndDeletes) {
  run(create("/a"));
  run(create("/a/x"));
  run(create("/a/y"));
  run(remove("/a/x"));

  const wire::WireStat stat = tree_.nodes().find("/a")->stat();
  EXPECT_EQ(stat.cversion, 3);
  EXPECT_EQ(stat.num_children, 1);
  EXPECT_EQ(stat.pzxid, tree_.applied_zxid());
}

TEST_F(TreeTest, H92_AFailedMultiLeavesNothingNotEvenACount) {
  run(create("/a"));
  const std::string before = saved(tree_);
  const Write multi{
      Op::kMulti,
      wire::Multi{{part(create("/a/n-", wire::CreateMode::kPersistentSequential)),
                   part(set("/a", "new")), part(create("/nowhere/b")), part(remove("/a"))}}};

  const Verdict verdict = decide(multi);

  EXPECT_EQ(verdict.err, Err::kNoNode);
  EXPECT_EQ(verdict.refused_part, 2U);
  EXPECT_FALSE(verdict.record);
  tree_.show_refusal(verdict.zxid);
  const Verdict next = decide(create("/a/n-", wire::CreateMode::kPersistentSequential));
  EXPECT_EQ(next.record->changes[0].path, "/a/n-0000000000");
  EXPECT_EQ(saved(tree_).size(), before.size());
}

TEST_F(TreeTest, APartOfAMultiSeesTheOnesBeforeIt) {
  const Write multi{Op::kMulti,
                    wire::Multi{{part(create("/a")), part(create("/a/b")), part(set("/a", "1", 0)),
                                 part(remove("/a/b")), part(remove("/a"))}}};

  EXPECT_EQ(run(multi), Err::kOk);
  EXPECT_EQ(tree_.nodes().count(), 4U);
}

TEST_F(TreeTest, H93_ASessionTakesItsOwnNodesWithItAndNoOthers) {
  run(create("/mine", wire::CreateMode::kEphemeral));
  run(create("/bobs", wire::CreateMode::kEphemeral), kOther);
  run(create("/moved", wire::CreateMode::kEphemeral));
  // All of these are on their way when the session closes.
  const Verdict pending = decide(create("/pending", wire::CreateMode::kEphemeral));
  const Verdict gone = decide(remove("/moved"), kOther);
  const Verdict moved = decide(create("/moved", wire::CreateMode::kEphemeral), kOther);
  const std::optional<Record> close = tree_.close_session(kAnn, ++time_);

  ASSERT_TRUE(close);
  std::set<std::string> paths;
  for (const Change& change : close->changes) paths.insert(change.path);
  EXPECT_THAT(paths, ElementsAre("/mine", "/pending"));
  EXPECT_EQ(decide(create("/late", wire::CreateMode::kEphemeral)).err, Err::kSessionExpired);
  EXPECT_FALSE(tree_.close_session(kAnn, ++time_));
  for (const Record& record : {*pending.record, *gone.record, *moved.record, *close}) {
    store(record);
  }
  EXPECT_THAT(tree_.nodes().ephemerals(kAnn), IsEmpty());
  EXPECT_THAT(tree_.nodes().ephemerals(kOther), ElementsAre("/bobs", "/moved"));
  EXPECT_FALSE(tree_.sessions().contains(kAnn));
}

TEST_F(TreeTest, H93_APathTakenThreeTimesWhilePendingIsNotForgotten) {
  const Verdict one = decide(create("/e", wire::CreateMode::kEphemeral));
  const Verdict two = decide(remove("/e"));
  const Verdict three = decide(create("/e", wire::CreateMode::kEphemeral));
  store(*one.record);
  store(*two.record);

  const std::optional<Record> close = tree_.close_session(kAnn, ++time_);

  ASSERT_TRUE(close);
  EXPECT_EQ(close->changes.size(), 1U);
  store(*three.record);
  store(*close);
  EXPECT_EQ(tree_.nodes().count(), 4U);
}

TEST_F(TreeTest, H93_AContainerIsNotReapedBeforeItsFirstChild) {
  run({Op::kCreateContainer,
       wire::Create{"/c", {}, open_acl_list(), wire::CreateMode::kContainer}});
  EXPECT_THAT(tree_.reapable(time_, 10), IsEmpty());
  run(create("/c/child"));
  EXPECT_THAT(tree_.reapable(time_, 10), IsEmpty());
  run(remove("/c/child"));

  EXPECT_THAT(tree_.reapable(time_, 10), ElementsAre("/c"));
  const Verdict racing = decide(create("/c/again"));
  EXPECT_FALSE(tree_.reap("/c", ++time_));
  store(*racing.record);
  run(remove("/c/again"));
  store(*tree_.reap("/c", ++time_));
  EXPECT_EQ(tree_.nodes().find("/c"), nullptr);
}

TEST_F(TreeTest, H89_ALookForWhatCanBeReapedPassesByNobodyElse) {
  for (int i = 0; i < 500; ++i) {
    const std::string path = "/c" + std::to_string(i);
    run({Op::kCreateContainer,
         wire::Create{path, {}, open_acl_list(), wire::CreateMode::kContainer}});
    run(create(path + "/child"));
    run(ttl_node("/t" + std::to_string(i), 1'000'000));
  }
  run(remove("/c250/child"));
  const std::uint64_t before = tree_.work();

  EXPECT_THAT(tree_.reapable(time_, 10), ElementsAre("/c250"));

  EXPECT_EQ(tree_.work() - before, 64U) << "64 is one";
}

TEST_F(TreeTest, H93_AFreshContainerIsNotReapedInPlaceOfTheOneBeforeIt) {
  const Write container{Op::kCreateContainer,
                        wire::Create{"/c", {}, open_acl_list(), wire::CreateMode::kContainer}};
  run(container);
  run(create("/c/child"));
  run(remove("/c/child"));
  ASSERT_THAT(tree_.reapable(time_, 10), ElementsAre("/c"));
  const Verdict gone = decide(remove("/c"));
  const Verdict fresh = decide(container);

  EXPECT_FALSE(tree_.reap("/c", ++time_));

  store(*gone.record);
  store(*fresh.record);
  EXPECT_EQ(run(create("/c/child")), Err::kOk) << "whoever made it counts on it";
}

TEST_F(TreeTest, H93_AFreshTtlNodeIsNotReapedInPlaceOfTheOneBeforeIt) {
  ASSERT_EQ(run(ttl_node("/t", 500)), Err::kOk);
  time_ += 501;
  ASSERT_THAT(tree_.reapable(time_, 10), ElementsAre("/t"));
  const Verdict gone = decide(remove("/t"));
  const Verdict fresh = decide(ttl_node("/t", 3'600'000));

  EXPECT_FALSE(tree_.reap("/t", time_));

  store(*gone.record);
  store(*fresh.record);
  EXPECT_THAT(tree_.reapable(time_, 10), IsEmpty());
}

TEST_F(TreeTest, H93_ATtlNodeThatIsBeingSetIsNotReaped) {
  ASSERT_EQ(run(ttl_node("/t", 500)), Err::kOk);
  time_ += 501;
  ASSERT_THAT(tree_.reapable(time_, 10), ElementsAre("/t"));
  const Verdict touched = decide(set("/t", "still in use"));

  EXPECT_FALSE(tree_.reap("/t", time_));

  store(*touched.record);
  EXPECT_THAT(tree_.reapable(time_, 10), IsEmpty());
  time_ += 501;
  EXPECT_TRUE(tree_.reap("/t", time_)) << "nor does it live for ever";
}

TEST_F(TreeTest, ATtlNodeIsReapedAfterItsTime) {
  ASSERT_EQ(run(ttl_node("/t", 500)), Err::kOk);
  const std::int64_t made = tree_.nodes().find("/t")->mtime_ms;

  EXPECT_THAT(tree_.reapable(made + 500, 10), IsEmpty());
  EXPECT_THAT(tree_.reapable(made + 501, 10), ElementsAre("/t"));
  EXPECT_EQ(tree_.nodes().find("/t")->stat().ephemeral_owner, 0);
}

/// A multi that deletes many such nodes would have all of their lists gone through.
TEST_F(TreeTest, H89_ToSeeWhoMayHearOfADeletionIsWorkOfTheDecision) {
  constexpr std::uint64_t kEntries = 1'000;
  AclList list = open_acl_list();
  for (std::uint64_t i = 1; i < kEntries; ++i) {
    list.push_back({kAllPermissions, "digest", std::to_string(i) + ":x"});
  }
  run({Op::kCreate, wire::Create{"/a", {}, list, wire::CreateMode::kPersistent}});
  const std::uint64_t before = tree_.work();

  ASSERT_EQ(decide(remove("/a")).err, Err::kOk);

  EXPECT_GE(tree_.work() - before, 32 * kEntries);
}

TEST_F(TreeTest, H35_TheCounterStopsAtItsEnd) {
  run(create("/a"));
  Change last{Change::Kind::kCreate, "/a/last", {}, open_acl_list(), 0, INT32_MAX};
  Record record;
  record.zxid = tree_.spend_zxid();
  record.changes.push_back(last);
  store(record);

  EXPECT_EQ(run(create("/a/n-", wire::CreateMode::kPersistentSequential)), Err::kOk);
  EXPECT_NE(tree_.nodes().find("/a/n-2147483647"), nullptr);
  EXPECT_EQ(run(create("/a/n-", wire::CreateMode::kPersistentSequential)), Err::kNodeExists);
}

TEST_F(TreeTest, H82_EveryEpochIsAboveAllThatWasGivenOut) {
  const Verdict lost = decide(create("/never-stored"));
  Tree again;
  for (const Logged& entry : log_) ASSERT_TRUE(again.replay(entry.zxid, entry.bytes));

  EXPECT_GT(again.begin_epoch(1).zxid, lost.zxid);
}

TEST_F(TreeTest, H94_WhatALargeRecordFiresIsToldChangeByChange) {
  constexpr PeerId kWatcher = 5;
  ASSERT_EQ(run(create("/a")), Err::kOk);
  ASSERT_EQ(tree_.add_watch(kWatcher, {"/a", wire::AddWatchMode::kPersistentRecursive}), Err::kOk);
  wire::Multi multi;
  for (int i = 0; i < 3; ++i) multi.ops.push_back(part(set("/a", std::to_string(i))));
  const Verdict verdict = decide({Op::kMulti, multi});
  std::vector<std::size_t> told;

  const auto stats = tree_.apply(*verdict.record, nobody, [&](const std::vector<Notice>& fired) {
    told.push_back(fired.size());
    if (told.size() == 2) tree_.drop_watches(kWatcher);
  });

  EXPECT_THAT(told, ElementsAre(1U, 1U, 0U));
  EXPECT_EQ(stats.size(), 3U);
}

TEST_F(TreeTest, AJournalThatDoesNotFitIsRefused) {
  run(create("/a"));
  Tree other;
  Record stray;
  stray.changes.push_back({Change::Kind::kDelete, "/a", {}, {}, 0, 0});

  EXPECT_EQ(other.replay(5, encode(stray)).error(), Code::kDamaged);
  EXPECT_EQ(other.replay(5, "garbage").error(), Code::kDamaged);
  EXPECT_EQ(tree_.replay(log_.back().zxid, log_.back().bytes).error(), Code::kDamaged);
}

/// Random writes by two sessions, some applied late.
class RandomTreeTest : public TreeTest, public testing::WithParamInterface<std::uint64_t> {
 protected:
  std::string path() {
    static const char* const kNames[] = {"/a", "/b", "/a/x", "/a/y", "/b/x", "/a/x/1", "/b/x/2"};
    return kNames[random_.below(std::size(kNames))];
  }

  Write write() {
    switch (random_.below(8)) {
      case 0: return remove(path());
      case 1: return set(path(), std::string(random_.below(9), 'd'));
      case 2: return create(path() + "-", wire::CreateMode::kPersistentSequential);
      case 3: return create(path(), wire::CreateMode::kEphemeral);
      case 4:
        return {Op::kMulti,
                wire::Multi{{part(create(path())), part(set(path(), "m")), part(remove(path()))}}};
      case 5: return {Op::kSetAcl, wire::SetAcl{path(), *read_only_list(), -1}};
      case 6:
        return {Op::kCreateContainer,
                wire::Create{path(), {}, open_acl_list(), wire::CreateMode::kContainer}};
      default: return create(path());
    }
  }

  base::Random random_{GetParam()};
};

TEST_P(RandomTreeTest, H79_ReplayFromAnyPointGivesTheSameTree) {
  std::vector<std::string> states;
  for (int step = 0; step < 300; ++step) {
    if (step % 100 == 99) {
      if (const auto close = tree_.close_session(kOther, ++time_)) store(*close);
      store(tree_.open_session(kOther, 4'000, "again-----------", ++time_));
    }
    run(write(), random_.below(2) == 0 ? kAnn : kOther);
  }

  Tree straight;
  for (std::size_t i = 0; i < log_.size(); ++i) {
    ASSERT_TRUE(straight.replay(log_[i].zxid, log_[i].bytes)) << "seed " << GetParam();
    if (i % 37 != 0) continue;
    Tree from_snapshot;
    straight.save([&](std::string_view item) { ASSERT_TRUE(from_snapshot.load(item)); });
    ASSERT_EQ(saved(from_snapshot), saved(straight)) << "seed " << GetParam() << " at " << i;
    for (std::size_t j = i + 1; j < log_.size(); ++j) {
      ASSERT_TRUE(from_snapshot.replay(log_[j].zxid, log_[j].bytes));
    }
    ASSERT_EQ(saved(from_snapshot), saved(tree_)) << "seed " << GetParam() << " at " << i;
  }
  EXPECT_EQ(saved(straight), saved(tree_)) << "seed " << GetParam();
}

TEST_P(RandomTreeTest, DecidingAheadComesToTheSameAsApplyingAtOnce) {
  Tree ahead;
  for (const Logged& entry : log_) ASSERT_TRUE(ahead.replay(entry.zxid, entry.bytes));
  std::vector<Record> late;
  for (int step = 0; step < 500; ++step) {
    const Write next = write();
    const SessionId session = random_.below(2) == 0 ? kAnn : kOther;
    const Verdict now = decide(next, session);
    const Verdict then = ahead.decide({session, {}}, next, time_);

    ASSERT_EQ(now.err, then.err) << "seed " << GetParam() << " step " << step;
    ASSERT_EQ(now.record, then.record) << "seed " << GetParam() << " step " << step;
    if (!now.record) continue;
    store(*now.record);
    late.push_back(*then.record);
    if (random_.below(10) == 0) {
      for (const Record& record : late) static_cast<void>(ahead.apply(record, nobody));
      late.clear();
      ASSERT_EQ(saved(ahead), saved(tree_)) << "seed " << GetParam() << " step " << step;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomTreeTest, testing::Range<std::uint64_t>(1, 9));

}  // namespace
}  // namespace latchkey::tree
