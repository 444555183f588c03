#include "server/tree_state.hpp"

#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "storage/file_journal.hpp"
#include "storage/temp_folder.hpp"

namespace latchkey::server {
namespace {

constexpr tree::SessionId kSession = 7;

std::string saved(const tree::Tree& tree) {
  std::string bytes;
  tree.save([&](std::string_view item) { bytes += item; });
  return bytes;
}

/// A tree whose decisions go through a journal of small segments.
class TreeStateTest : public testing::Test {
 protected:
  TreeStateTest() {
    open();
    store(tree_->begin_epoch(1));
    store(tree_->open_session(kSession, 4'000, "sixteen-bytes---", 2));
  }

  void open() {
    journal_.reset();
    tree_.emplace();
    TreeState state(*tree_);
    auto journal = storage::FileJournal::open(
        folder_.path() / "data", {.segment_bytes = 16U << 10U, .fold_bytes = 64U << 10U}, state);
    ASSERT_TRUE(journal) << journal.error();
    journal_ = std::move(*journal);
  }

  void store(const tree::Record& record) {
    const std::string bytes = encode(record);
    const storage::Entry entry{record.zxid, bytes};
    ASSERT_TRUE(journal_->append({&entry, 1}));
    static_cast<void>(
        tree_->apply(record, [](tree::PeerId) { return std::span<const tree::Identity>(); }));
  }

  void run(const tree::Write& write) {
    const tree::Verdict verdict = tree_->decide({kSession, {}}, write, 1'000);
    ASSERT_TRUE(verdict.record);
    store(*verdict.record);
  }

  void churn(int rounds) {
    for (int i = 0; i < rounds; ++i) {
      run({wire::Op::kCreate, wire::Create{"/n-", std::string(200, 'x'), *tree::open_list(),
                                           wire::CreateMode::kEphemeralSequential}});
      if (i % 10 != 0) run({wire::Op::kDelete, wire::PathVersion{newest(), -1}});
    }
  }

  std::string newest() { return std::string(*tree_->nodes().ephemerals(kSession).rbegin()); }

  storage::TempFolder folder_;
  std::optional<tree::Tree> tree_;
  std::unique_ptr<storage::FileJournal> journal_;
};

TEST_F(TreeStateTest, H79_AFoldedJournalGivesTheSameTree) {
  churn(400);
  ASSERT_TRUE(journal_->needs_folding());
  tree::Tree other;
  TreeState empty(other);
  ASSERT_TRUE(journal_->fold(empty));
  churn(50);
  const std::string before = saved(*tree_);

  open();

  EXPECT_GT(journal_->recovered().items, 0U);
  EXPECT_GT(journal_->recovered().entries, 0U);
  EXPECT_EQ(saved(*tree_), before);
  EXPECT_TRUE(tree_->knows(kSession));
}

/// The counter ends within a run; the folder has the new epoch, out of the journal and, folded, out
/// of a snapshot.
TEST_F(TreeStateTest, H82_AfterTheEndOfTheCounterTheFolderKnowsTheNewEpoch) {
  for (const bool is_folded : {false, true}) {
    tree::Record far;
    far.kind = tree::Record::Kind::kNewEpoch;
    far.zxid = tree_->applied_zxid() | 0xFFFF'FFF0;
    const std::string bytes = encode(far);
    const storage::Entry entry{far.zxid, bytes};
    ASSERT_TRUE(journal_->append({&entry, 1}));
    ASSERT_TRUE(tree_->replay(far.zxid, bytes));
    ASSERT_TRUE(tree_->needs_epoch());
    store(tree_->begin_epoch(3));
    churn(is_folded ? 400 : 1);
    const std::int64_t newest = tree_->applied_zxid();
    ASSERT_GT(newest, far.zxid);
    if (is_folded) {
      tree::Tree other;
      TreeState empty(other);
      ASSERT_TRUE(journal_->fold(empty));
    }

    open();

    EXPECT_EQ(journal_->recovered().items > 0, is_folded);
    EXPECT_EQ(journal_->recovered().epoch, newest >> 32);
    EXPECT_EQ(tree_->applied_zxid(), newest);
    EXPECT_EQ(tree_->begin_epoch(4).zxid, ((newest >> 32) + 1) << 32);
    open();  // That epoch was not stored.
  }
}

TEST_F(TreeStateTest, H79_WhatDoesNotFitTheTreeIsDamage) {
  tree::Record stray;
  stray.zxid = tree_->applied_zxid() + 1;
  stray.changes.push_back({tree::Change::Kind::kDelete, "/nowhere", {}, {}, 0, 0});
  const std::string bytes = encode(stray);
  const storage::Entry entry{stray.zxid, bytes};
  ASSERT_TRUE(journal_->append({&entry, 1}));
  journal_.reset();

  tree::Tree other;
  TreeState state(other);
  const auto again = storage::FileJournal::open(folder_.path() / "data", {}, state);

  ASSERT_FALSE(again);
  EXPECT_EQ(again.error(), Code::kDamaged);
}

}  // namespace
}  // namespace latchkey::server
