#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "server/tree_state.hpp"
#include "storage/file_journal.hpp"
#include "storage/sim_disk.hpp"
#include "tree/service_rig.hpp"

// What comes and goes leaves nothing behind, neither in memory nor on disk.
namespace latchkey::server {
namespace {

using wire::CreateMode;
using wire::Err;
using wire::Op;

constexpr std::size_t kMostBytes = std::size_t{1} << 20U;
const storage::FileJournalOptions kSmall{
    .segment_bytes = 64U << 10U, .fold_bytes = 256U << 10U, .spare = storage::Spare::kInAppend};

tree::ServiceOptions limited() {
  tree::ServiceOptions options;
  options.limits.bytes = kMostBytes;
  options.limits.nodes = 400;
  options.limits.ephemeral_bytes_per_session = 2'000;
  options.max_sessions = 10;
  return options;
}

/// A list of about so many bytes that lets everybody in.
tree::AclList list_of(std::size_t bytes, const std::string& user) {
  tree::AclList list = *tree::open_list();
  for (std::size_t at = 0; at < bytes; at += 100) {
    list.push_back({31, "digest", user + std::to_string(at) + ":" + std::string(80, 'h')});
  }
  return list;
}

/// A service with small limits over a journal with small segments, folded whenever it asks for it.
class ServerChurnTest : public testing::Test, public tree::test::ServiceRig {
 protected:
  ServerChurnTest() : ServiceRig(limited()) {
    tree::Tree empty;
    TreeState state(empty);
    journal_ = *storage::FileJournal::open(disk_.files(), kSmall, state);
    store();
  }

  void store() {
    sync();
    for (const tree::Service::Stored& stored : durable) {
      const storage::Entry entry{stored.zxid, stored.bytes};
      ASSERT_TRUE(journal_->append({&entry, 1}));
    }
    durable.clear();
    if (!journal_->needs_folding()) return;
    tree::Tree empty;
    TreeState state(empty);
    ASSERT_TRUE(journal_->fold(state));
    ++folds_;
  }

  Err make(Client& client, const std::string& path, tree::AclList list, std::size_t bytes = 0,
           CreateMode mode = CreateMode::kPersistent) {
    const wire::Create request{path, std::string(bytes, 'x'), std::move(list), mode};
    const Err err = call(client, Op::kCreate, request).header.err;
    store();
    return err;
  }
  Err remove(Client& client, const std::string& path) {
    const Err err = call(client, Op::kDelete, wire::PathVersion{path, -1}).header.err;
    store();
    return err;
  }

  /// A start would find what is there.
  bool is_stored() {
    EXPECT_TRUE(journal_->close());
    journal_.reset();
    tree::Tree tree;
    TreeState state(tree);
    journal_ = *storage::FileJournal::open(disk_.files(), kSmall, state);
    return saved(tree) == saved(service->tree());
  }
  static std::string saved(const tree::Tree& tree) {
    std::string bytes;
    tree.save([&](std::string_view item) { bytes += item; });
    return bytes;
  }

  const tree::Nodes& nodes() const { return service->tree().nodes(); }

  storage::SimDisk disk_{1};
  std::unique_ptr<storage::FileJournal> journal_;
  int folds_ = 0;
};

TEST_F(ServerChurnTest, H94_NodesListsAndSessionsComeAndGoWithoutATrace) {
  const std::size_t base = nodes().bytes_in_all();
  for (int round = 0; round < 150; ++round) {
    Client& client = open();
    const std::string own = "/own" + std::to_string(round);
    ASSERT_EQ(make(client, own, list_of(20'000, own), 3'000), Err::kOk);
    ASSERT_EQ(make(client, own + "/shared", list_of(30'000, "all"), 10), Err::kOk);
    ASSERT_EQ(make(client, own + "/e", list_of(500, "all"), 10, CreateMode::kEphemeral), Err::kOk);
    // Some say goodbye, some run out.
    if (round % 2 == 0) {
      call(client, Op::kCloseSession, wire::Empty{});
    } else {
      hang_up(client);
      pass(std::chrono::seconds(5));
    }
    store();
    Client& other = open();
    ASSERT_EQ(remove(other, own + "/shared"), Err::kOk);
    ASSERT_EQ(remove(other, own), Err::kOk);
    call(other, Op::kCloseSession, wire::Empty{});
    store();
  }

  EXPECT_EQ(nodes().bytes_in_all(), base);
  EXPECT_EQ(nodes().lists(), 0U);
  EXPECT_EQ(nodes().ephemeral_bytes(), 0U);
  EXPECT_TRUE(service->tree().sessions().empty());
  EXPECT_EQ(service->in_flight(), 0U);
  EXPECT_GT(folds_, 10) << "8 MB went through it";
  EXPECT_LT(disk_.bytes(), kSmall.fold_bytes + 4 * kSmall.segment_bytes);
  EXPECT_TRUE(is_stored());
}

TEST_F(ServerChurnTest, H94_ManyNodesWithOneLongListAreBoundedOnDiskAndCanBeRemoved) {
  Client& client = open(40'000);
  const tree::AclList list = list_of(50'000, "all");
  for (int round = 0; round < 5; ++round) {
    int made = 0;
    while (make(client, "/" + std::to_string(made), list) == Err::kOk) ++made;
    ASSERT_EQ(made, static_cast<int>(kMostBytes / tree::size_in_bytes(list)));
    EXPECT_EQ(nodes().lists(), 1U);
    EXPECT_LT(disk_.bytes(), 4 * kMostBytes);

    ASSERT_EQ(remove(client, "/0"), Err::kOk);
    EXPECT_TRUE(is_stored());
    for (int i = 1; i < made; ++i) ASSERT_EQ(remove(client, "/" + std::to_string(i)), Err::kOk);
    EXPECT_EQ(nodes().lists(), 0U);
  }
}

}  // namespace
}  // namespace latchkey::server
