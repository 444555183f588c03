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
