#include "storage/journal.hpp"

#include <functional>

#include <gtest/gtest.h>

#include "storage/file_journal.hpp"
#include "storage/history.hpp"
#include "storage/memory_journal.hpp"
#include "storage/sim_disk.hpp"
#include "storage/temp_folder.hpp"

namespace latchkey::storage {
namespace {

/// A journal and what lies under it.
struct Made {
  std::shared_ptr<void> below;
  std::unique_ptr<Journal> journal;
};

struct Way {
  const char* name;
  std::function<Made()> make;
};

Made in_memory() { return {nullptr, std::make_unique<MemoryJournal>()}; }

Made in_a_folder() {
  auto folder = std::make_shared<TempFolder>();
  History state;
  auto journal = FileJournal::open(folder->path() / "data", {.segment_bytes = 65536}, state);
  EXPECT_TRUE(journal) << journal.error();
  return {folder, *std::move(journal)};
}

Made on_a_simulated_disk() {
  auto disk = std::make_shared<SimDisk>(1);
  History state;
  auto journal =
      FileJournal::open(disk->files(), {.segment_bytes = 65536, .spare = Spare::kInAppend}, state);
  EXPECT_TRUE(journal) << journal.error();
  return {disk, *std::move(journal)};
}

/// What every Journal promises.
class JournalContract : public testing::TestWithParam<Way> {
 protected:
  Journal& journal() { return *made_.journal; }
  Made made_ = GetParam().make();
};

TEST_P(JournalContract, TakesBatches) {
  const Entry batch[] = {{1, "one"}, {5, ""}, {6, "three"}};
  EXPECT_TRUE(journal().append(batch));
  const Entry next[] = {{0x100000001, "in another epoch"}};
  EXPECT_TRUE(journal().append(next));
}

TEST_P(JournalContract, TakesABatchOfNothing) {
  EXPECT_TRUE(journal().append({}));
  const Entry batch[] = {{1, "one"}};
  EXPECT_TRUE(journal().append(batch));
}

TEST_P(JournalContract, NeedsNoFoldingAtFirstAndFoldsNothing) {
  History empty;
  EXPECT_FALSE(journal().needs_folding());
  EXPECT_TRUE(journal().fold(empty));
  EXPECT_TRUE(empty.events.empty());
}

TEST_P(JournalContract, TakesNothingAfterItsEnd) {
  const Entry batch[] = {{1, "one"}};
  ASSERT_TRUE(journal().append(batch));

  EXPECT_TRUE(journal().close());

  EXPECT_TRUE(journal().close()) << "twice is once";
  const Entry late[] = {{2, "late"}};
  EXPECT_EQ(journal().append(late).error(), Code::kClosed);
}

TEST_P(JournalContract, AZxidThatDoesNotGrowIsAProgrammersError) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const Entry batch[] = {{5, "five"}};
  ASSERT_TRUE(journal().append(batch));
  EXPECT_DEATH((void)journal().append(batch), "zxid");
}

INSTANTIATE_TEST_SUITE_P(Storage, JournalContract,
                         testing::Values(Way{"Memory", in_memory}, Way{"Folder", in_a_folder},
                                         Way{"SimDisk", on_a_simulated_disk}),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace latchkey::storage
