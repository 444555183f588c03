#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "base/random.hpp"
#include "tree/tree.hpp"

// What counts towards the limits of a tree, and that what is gone does not.
namespace latchkey::tree {
namespace {

using wire::Err;
using wire::Op;

constexpr SessionId kOwner = 11;
constexpr std::size_t kMostBytes = std::size_t{4} << 20U;
constexpr std::size_t kMostNodes = 2'000;

const auto no_identities = [](PeerId) { return std::span<const Identity>(); };

/// A list of about so many bytes; with another salt, another list.
AclList list_of(std::size_t bytes, const std::string& salt = "") {
  AclList list;
  for (std::size_t at = 0; at < bytes; at += 1'000) {
    wire::WireAcl entry;
    entry.permissions = kAllPermissions;
    entry.scheme = "digest";
    entry.id = salt + std::to_string(at) + ":" + std::string(980, 'h');
    list.push_back(entry);
  }
  return list;
}

Write create_of(std::string path, AclList list, std::string data = "",
                wire::CreateMode mode = wire::CreateMode::kPersistent) {
  return {Op::kCreate, wire::Create{std::move(path), std::move(data), std::move(list), mode}};
}
Write remove_node(std::string path) {
  return {Op::kDelete, wire::PathVersion{std::move(path), -1}};
}
Write set_acl(std::string path, AclList list) {
  return {Op::kSetAcl, wire::SetAcl{std::move(path), std::move(list), -1}};
}

class TreeBytesTest : public testing::Test {
 protected:
  TreeBytesTest() : tree_(limits()) {
    static_cast<void>(tree_.apply(tree_.begin_epoch(++time_), no_identities));
    open();
  }

  static TreeLimits limits() {
    TreeLimits limits;
    limits.bytes = kMostBytes;
    limits.nodes = kMostNodes;
    limits.ephemeral_bytes_per_session = 10'000;
    return limits;
  }

  void open() {
    static_cast<void>(
        tree_.apply(tree_.open_session(kOwner, 4'000, "secret-of-ann---", ++time_), no_identities));
  }

  Verdict decide(const Write& write) { return tree_.decide({kOwner, super_}, write, ++time_); }

  Err run(const Write& write) {
    const Verdict verdict = decide(write);
    if (verdict.record) static_cast<void>(tree_.apply(*verdict.record, no_identities));
    return verdict.err;
  }

  [[nodiscard]] std::vector<std::string> saved() const {
    std::vector<std::string> items;
    tree_.save([&](std::string_view item) { items.emplace_back(item); });
    return items;
  }

  std::size_t bytes() const { return tree_.nodes().bytes_in_all(); }

  std::vector<Identity> super_{{"super", ""}};
  Tree tree_;
  std::int64_t time_ = 1'000;
};

TEST_F(TreeBytesTest, H94_AListThatManyNodesShareCountsForEachOfThem) {
  const AclList list = list_of(900'000);
  int made = 0;

  while (made < 100 && run(create_of("/" + std::to_string(made), list)) == Err::kOk) ++made;

  EXPECT_EQ(made, 4);
  EXPECT_EQ(run(create_of("/open", *open_list())), Err::kOk);
  EXPECT_EQ(run(set_acl("/open", list)), Err::kQuotaExceeded);
}

TEST_F(TreeBytesTest, H94_ASnapshotIsNoLargerThanWhatIsAllowedAndNeitherIsAnItem) {
  const AclList list = list_of(20'000);
  int made = 0;
  while (run(create_of("/" + std::to_string(made), list)) == Err::kOk) ++made;

  const std::vector<std::string> items = saved();

  std::size_t all = 0;
  for (const std::string& item : items) {
    EXPECT_LT(item.size(), 100'000U);
    all += item.size();
  }
  EXPECT_GT(made, 150);
  EXPECT_LT(all, kMostBytes + kMostBytes / 8);
}

TEST_F(TreeBytesTest, H94_WhoIsFullOfPermissionListsCanBeEmptied) {
  const auto path = [](int i) { return "/" + std::to_string(i); };
  const auto fresh = [](int i) { return list_of(500'000, std::to_string(i)); };
  int made = 0;
  while (made < 100 && run(create_of(path(made), fresh(made))) == Err::kOk) ++made;
  ASSERT_LT(made, 10);

  EXPECT_EQ(run(set_acl("/0", list_of(400'000, "less"))), Err::kOk);
  EXPECT_EQ(run(set_acl("/0", fresh(0))), Err::kOk);
  for (int i = 0; i < made; ++i) ASSERT_EQ(run(remove_node(path(i))), Err::kOk);

  for (int i = 0; i < made; ++i)
    EXPECT_EQ(run(create_of(path(i), fresh(1'000 + i))), Err::kOk) << i;
}

TEST_F(TreeBytesTest, H94_WhateverComesAndGoesLeavesNothingCounted) {
  const std::size_t base = bytes();
  base::Random random(7);
  const auto any_list = [&] {
    return random.below(3) == 0 ? *open_list() : list_of(random.below(50'000) + 1, "shared");
  };
  std::vector<std::string> there;
  for (int i = 0; i < 1'500; ++i) {
    const std::uint64_t dice = random.below(4);
    if (dice == 0 && !there.empty()) {
      ASSERT_EQ(run(remove_node(there.back())), Err::kOk);
      there.pop_back();
    } else if (dice == 1 && !there.empty()) {
      run(set_acl(there[random.below(there.size())], any_list()));
    } else {
      const auto mode = dice == 2 ? wire::CreateMode::kEphemeral : wire::CreateMode::kPersistent;
      const std::string path = "/" + std::to_string(i);
      const Err err = run(create_of(path, any_list(), std::string(random.below(5'000), 'x'), mode));
      if (err == Err::kOk && mode == wire::CreateMode::kPersistent) there.push_back(path);
    }
    EXPECT_LE(bytes(), kMostBytes);
    if (i % 200 == 0) {
      static_cast<void>(tree_.apply(*tree_.close_session(kOwner, ++time_), no_identities));
      open();
    }
  }
  Tree again;
  for (const std::string& item : saved()) ASSERT_TRUE(again.load(item));
  EXPECT_EQ(again.nodes().bytes_in_all(), bytes());

  static_cast<void>(tree_.apply(*tree_.close_session(kOwner, ++time_), no_identities));
  open();
  for (const std::string& path : there) ASSERT_EQ(run(remove_node(path)), Err::kOk);

  EXPECT_EQ(bytes(), base);
  EXPECT_EQ(tree_.nodes().lists(), 0U);
}

TEST_F(TreeBytesTest, H94_AllPartsOfAMultiCountTogether) {
  const auto part = [](const std::string& path, std::size_t bytes) {
    return wire::MultiOp{Op::kCreate, wire::Create{path, std::string(bytes, 'x'), *open_list(),
                                                   wire::CreateMode::kPersistent}};
  };
  wire::Multi multi;
  for (int i = 0; i < 5; ++i) multi.ops.push_back(part("/" + std::to_string(i), 1'000'000));
  Verdict verdict = decide({Op::kMulti, multi});
  EXPECT_EQ(verdict.err, Err::kQuotaExceeded);
  EXPECT_EQ(verdict.refused_part, 4U);

  wire::MultiOp longer{Op::kSetData, wire::SetData{"/0", std::string(2'000'000, 'x'), -1}};
  multi.ops[4] = longer;
  verdict = decide({Op::kMulti, multi});
  EXPECT_EQ(verdict.err, Err::kQuotaExceeded);
  EXPECT_EQ(verdict.refused_part, 4U);

  multi.ops.pop_back();
  EXPECT_EQ(run({Op::kMulti, multi}), Err::kOk);
  EXPECT_LE(bytes(), kMostBytes);
}

TEST_F(TreeBytesTest, H94_AMultiMakesAsManyNodesAsThereIsRoomForAndNotOneLess) {
  wire::Multi multi;
  for (std::size_t i = 0; i < kMostNodes - tree_.nodes().count(); ++i) {
    // Every second one in a directory of its own.
    const std::string path = "/" + std::to_string(i / 2) + (i % 2 == 0 ? "" : "/x");
    multi.ops.push_back(
        {Op::kCreate, wire::Create{path, "", *open_list(), wire::CreateMode::kPersistent}});
  }
  EXPECT_EQ(run({Op::kMulti, multi}), Err::kOk);

  EXPECT_EQ(tree_.nodes().count(), kMostNodes);
  EXPECT_EQ(run(create_of("/more", *open_list())), Err::kQuotaExceeded);
}

TEST_F(TreeBytesTest, H94_EphemeralNodesThatAreUnderWayCount) {
  const auto ephemeral = [](char letter) {
    return create_of("/" + std::string(4'000, letter), *open_list(), "",
                     wire::CreateMode::kEphemeral);
  };
  const Verdict one = decide(ephemeral('a'));
  const Verdict two = decide(ephemeral('b'));
  const Verdict three = decide(ephemeral('c'));
  ASSERT_TRUE(one.record && two.record && three.record) << "the last one may go beyond";

  EXPECT_EQ(decide(ephemeral('d')).err, Err::kQuotaExceeded);

  for (const Verdict* verdict : {&one, &two, &three}) {
    static_cast<void>(tree_.apply(*verdict->record, no_identities));
  }
  EXPECT_EQ(run(ephemeral('d')), Err::kQuotaExceeded);
  EXPECT_EQ(run(remove_node("/" + std::string(4'000, 'a'))), Err::kOk);
  EXPECT_EQ(run(ephemeral('d')), Err::kOk);
}

TEST_F(TreeBytesTest, H89_AShortRequestThatBecomesALongListIsWork) {
  ASSERT_EQ(run(create_of("/n", *open_list())), Err::kOk);
  for (int i = 0; i < 50; ++i) super_.push_back({"digest", std::to_string(i) + ":hash"});
  const auto auths = [](std::int32_t count) {
    AclList list;
    for (std::int32_t i = 0; i < count; ++i) {
      wire::WireAcl entry;
      entry.permissions = i;
      entry.scheme = "auth";
      list.push_back(entry);
    }
    return list;
  };
  const auto work_of = [&](const Write& write, Err err) {
    const std::uint64_t before = tree_.work();
    EXPECT_EQ(run(write), err);
    return tree_.work() - before;
  };

  EXPECT_GT(work_of(set_acl("/n", auths(1'000)), Err::kOk), 50'000U * 64);
  EXPECT_GT(work_of(create_of("/m", auths(1'000)), Err::kOk), 50'000U * 64);
  EXPECT_GT(work_of(create_of("/o", auths(9'000)), Err::kInvalidAcl), 50'000U * 64);
}

}  // namespace
}  // namespace latchkey::tree
