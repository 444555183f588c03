#include "tree/nodes.hpp"

#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "tree/quota.hpp"
#include "tree/tree.hpp"

namespace latchkey::tree {
namespace {

Change creation(std::string path, std::string data) {
  return {Change::Kind::kCreate, std::move(path), std::move(data), *open_list(), 0, 1};
}

bool is_below(std::string_view path, std::string_view top) {
  if (top == "/") return path != "/";
  return path.size() > top.size() && path.starts_with(top) && path[top.size()] == '/';
}

/// What is known of every node's descendants is what there is.
void expect_true_counts(const Nodes& nodes) {
  nodes.visit([&](std::string_view top, const Node& node) {
    std::size_t count = 0;
    std::size_t bytes = 0;
    nodes.visit([&](std::string_view path, const Node& other) {
      if (!is_below(path, top)) return;
      ++count;
      bytes += other.data ? other.data->size() : 0;
    });
    EXPECT_EQ(node.below, count) << top;
    EXPECT_EQ(node.bytes_below, bytes) << top;
  });
}

class NodesTest : public testing::Test {
 protected:
  void create(const std::string& path, const std::string& data = {}) {
    nodes_.create(creation(path, data), ++zxid_, 0);
  }
  void set(const std::string& path, const std::string& data) {
    nodes_.set_data({Change::Kind::kSetData, path, data, {}, 0, 1}, ++zxid_, 0);
  }
  std::string data(const std::string& path) const { return nodes_.find(path)->data.value_or(""); }

  Nodes nodes_;
  std::int64_t zxid_ = 0;
};

TEST_F(NodesTest, KnowsHowMuchIsBelowEveryNode) {
  base::Random random(3);
  std::vector<std::string> paths{""};
  for (int step = 0; step < 300; ++step) {
    const std::string path = paths[random.below(paths.size())];
    const std::string data(random.below(9), 'x');
    const Node* node = nodes_.find(path);
    if (!path.empty() && node->children.empty() && random.below(3) == 0) {
      nodes_.remove(path, ++zxid_);
      std::erase(paths, path);
    } else if (!path.empty() && random.below(3) == 0) {
      set(path, data);
    } else {
      paths.push_back(path + "/n" + std::to_string(step));
      create(paths.back(), data);
    }
  }

  expect_true_counts(nodes_);
}

/// Whatever happens to containers and TTL nodes, those that can be reaped are the ones that a walk
/// would find, before and after they are put back.
TEST_F(NodesTest, KnowsWhatCanBeReaped) {
  base::Random random(5);
  std::vector<std::string> paths;
  const auto expect_known = [](const Nodes& nodes) {
    std::set<std::string> unused;
    std::map<std::string, std::int64_t> ends;
    nodes.visit([&](std::string_view path, const Node& node) {
      if (!node.children.empty()) return;
      if (Owner::is_container(node.owner) && node.creates > 0) unused.emplace(path);
      if (Owner::is_ttl(node.owner)) ends[std::string(path)] = node.mtime_ms + 700;
    });
    std::set<std::string> known(nodes.unused_containers().begin(), nodes.unused_containers().end());
    std::map<std::string, std::int64_t> known_ends;
    for (const auto& [end, path] : nodes.ttl_ends()) known_ends[std::string(path)] = end;
    EXPECT_EQ(known, unused);
    EXPECT_EQ(known_ends, ends);
    return unused.size() + ends.size();
  };
  std::size_t seen = 0;
  for (int step = 0; step < 400; ++step) {
    const std::string above = paths.empty() ? "" : paths[random.below(paths.size())];
    const Node* node = nodes_.find(above);
    if (!above.empty() && node->children.empty() && random.below(2) == 0) {
      nodes_.remove(above, ++zxid_);
      std::erase(paths, above);
    } else if (!above.empty() && random.below(4) == 0) {
      nodes_.set_data({Change::Kind::kSetData, above, "x", {}, 0, 1}, ++zxid_, step);
    } else {
      paths.push_back(above + "/n" + std::to_string(step));
      Change change = creation(paths.back(), "");
      const std::int64_t owners[] = {0, Owner::kContainer, Owner::ttl(700)};
      change.owner = owners[random.below(3)];
      nodes_.create(change, ++zxid_, step);
    }
    seen += expect_known(nodes_);
  }
  EXPECT_GT(seen, 400U);

  Nodes again;
  nodes_.visit([&](std::string_view path, const Node& node) {
    Node copy = node;
    copy.children.clear();
    copy.parent = nullptr;
    copy.below = 0;
    copy.bytes_below = 0;
    again.restore(std::string(path), std::move(copy));
  });
  EXPECT_EQ(expect_known(again), expect_known(nodes_));
}

TEST_F(NodesTest, AQuotaStartsWithWhatIsThereAndFollowsIt) {
  create("/big", "12");
  create("/big/a", "345");
  create("/big/a/b", "6");
  create("/bigger", "no part of it");
  create("/zookeeper/quota/big");
  create("/zookeeper/quota/big/zookeeper_limits", "count=-1,bytes=-1");
  create("/zookeeper/quota/big/zookeeper_stats");

  EXPECT_EQ(data("/zookeeper/quota/big/zookeeper_stats"), "count=3,bytes=6");
  set("/big/a", "3456789");
  nodes_.remove("/big/a/b", ++zxid_);
  EXPECT_EQ(data("/zookeeper/quota/big/zookeeper_stats"), "count=2,bytes=9");
  expect_true_counts(nodes_);
}

TEST_F(NodesTest, AQuotaOnNothingStartsWithNothing) {
  create("/zookeeper/quota/gone");
  create("/zookeeper/quota/gone/zookeeper_stats");

  EXPECT_EQ(data("/zookeeper/quota/gone/zookeeper_stats"), "count=0,bytes=0");
}

TEST_F(NodesTest, TheNearestQuotaCounts) {
  const auto usage = [&](const std::string& path) {
    return data("/zookeeper/quota" + path + "/zookeeper_stats");
  };
  create("/zookeeper/quota/a");
  create("/zookeeper/quota/a/zookeeper_limits", "count=9");
  create("/zookeeper/quota/a/zookeeper_stats");
  create("/a", "1");  // After its quota.
  create("/a/b", "22");
  create("/zookeeper/quota/a/b");
  create("/zookeeper/quota/a/b/zookeeper_limits", "count=9");
  create("/zookeeper/quota/a/b/zookeeper_stats");
  create("/a/b/c", "333");
  create("/a/other", "4444");

  EXPECT_EQ(usage("/a"), "count=3,bytes=7");
  EXPECT_EQ(usage("/a/b"), "count=2,bytes=5");
  nodes_.remove("/zookeeper/quota/a/b/zookeeper_limits", ++zxid_);
  nodes_.remove("/a/b/c", ++zxid_);
  EXPECT_EQ(usage("/a"), "count=2,bytes=4");
  EXPECT_EQ(usage("/a/b"), "count=2,bytes=5");
  expect_true_counts(nodes_);
}

TEST_F(NodesTest, WhatIsPutBackIsCounted) {
  create("/a", "12");
  create("/a/b", "345");
  set("/zookeeper/config", "some data");
  Nodes again;
  nodes_.visit([&](std::string_view path, const Node& node) {
    Node copy = node;
    copy.children.clear();
    copy.parent = nullptr;
    copy.below = 0;
    copy.bytes_below = 0;
    again.restore(std::string(path), std::move(copy));
  });

  expect_true_counts(again);
  EXPECT_EQ(again.bytes(), nodes_.bytes());
  EXPECT_EQ(again.count_below("/a"), 1U);
}

/// The same in large would be minutes inside one request, if each quota were measured by a walk.
TEST(NodesWork, H89_MakingAQuotaAgainAndAgainDoesNotWalkTheTree) {
  constexpr int kNodes = 20'000;
  constexpr int kTimes = 20'000;
  Nodes nodes;
  nodes.create(creation("/big", ""), 1, 0);
  for (int i = 0; i < kNodes; ++i) nodes.create(creation("/big/" + std::to_string(i), ""), 1, 0);
  nodes.create(creation("/zookeeper/quota/big", ""), 1, 0);

  for (int i = 0; i < kTimes; ++i) {
    nodes.create(creation("/zookeeper/quota/big/zookeeper_stats", ""), 2, 0);
    nodes.remove("/zookeeper/quota/big/zookeeper_stats", 3);
    ASSERT_EQ(nodes.count_below("/big"), static_cast<std::size_t>(kNodes));
  }
}

/// Each change would take as long as the text, which is as long as a client likes; a request can
/// bring tens of thousands of them, and every start would carry them out again.
TEST(NodesWork, H89_AUsageThatAClientMadeUpIsNotGoneThroughWithEveryChange) {
  constexpr int kTimes = 40'000;
  std::string made_up = "count=1";
  for (int i = 0; made_up.size() < 1'000'000; ++i) made_up += ",n" + std::to_string(i) + "=1";
  Nodes nodes;
  nodes.create(creation("/big", ""), 1, 0);
  nodes.create(creation("/zookeeper/quota/big", ""), 1, 0);
  nodes.create(creation("/zookeeper/quota/big/zookeeper_limits", "count=9"), 1, 0);
  nodes.create(creation("/zookeeper/quota/big/zookeeper_stats", ""), 1, 0);
  nodes.set_data(
      {Change::Kind::kSetData, "/zookeeper/quota/big/zookeeper_stats", made_up, {}, 0, 1}, 2, 0);

  for (int i = 0; i < kTimes; ++i) {
    nodes.set_data({Change::Kind::kSetData, "/big", "x", {}, 0, 1}, 3, 0);
    const Node* usage = nodes.find("/zookeeper/quota/big/zookeeper_stats");
    ASSERT_EQ(usage->data->size(), made_up.size());
  }
}

}  // namespace
}  // namespace latchkey::tree
