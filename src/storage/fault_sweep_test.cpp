#include <optional>

#include <gtest/gtest.h>

#include "storage/file_journal.hpp"
#include "storage/history.hpp"
#include "storage/sim_disk.hpp"

namespace latchkey::storage {
namespace {

using Events = std::vector<History::Event>;

const FileJournalOptions kSmall{
    .segment_bytes = 4096, .fold_bytes = 6000, .spare = Spare::kInAppend};

/// What was promised so far: `stored` has to be there, `open` wholly or not at all.
struct Promise {
  Events stored;
  Events open;
};

/// The nth batch: of one to three entries, most of them small, some of several sectors, some longer
/// than a segment, some with sectors of nothing but zeros.
Events batch_of(std::int64_t zxid) {
  Events batch;
  const std::size_t sizes[] = {0, 40, 700, 100, 1800, 20, 5000};
  for (std::int64_t i = 0; i <= zxid % 3; ++i) {
    const auto size = sizes[static_cast<std::size_t>((zxid + i) % 7)];
    batch.push_back({zxid * 10 + i, std::string(size, zxid % 2 == 0 ? '\0' : 'x')});
  }
  return batch;
}

void append(Journal& journal, const Events& batch, Promise& promise) {
  if (!promise.open.empty()) return;  // The journal has failed.
  promise.open = batch;
  if (!journal.append(entries_of(batch))) return;
  promise.stored.insert(promise.stored.end(), batch.begin(), batch.end());
  promise.open.clear();
}

/// Two runs with appends and folds, the first one closed, the second one not.
void run(SimDisk& disk, Promise& promise) {
  for (const std::int64_t first : {1, 11}) {
    History state;
    auto journal = FileJournal::open(disk.files(), kSmall, state);
    if (!journal) return;
    for (std::int64_t zxid = first; zxid < first + 10; ++zxid) {
      append(**journal, batch_of(zxid), promise);
      if (!(*journal)->needs_folding()) continue;
      History empty;
      (void)(*journal)->fold(empty);
    }
    if (first > 1 || !(*journal)->close() || !promise.open.empty()) return;
  }
}

std::optional<Events> reopen(SimDisk& disk) {
  History state;
  const auto journal = FileJournal::open(disk.files(), kSmall, state);
  if (!journal) {
    ADD_FAILURE() << journal.error();
    return std::nullopt;
  }
  EXPECT_EQ((*journal)->recovered().last_zxid, state.events.empty() ? 0 : state.events.back().zxid);
  return state.events;
}

enum class Next { kPowerLoss, kMoreWork };

/// Everything acknowledged is there, in order and once; what was open is there wholly or not at
/// all; and what is there now stays, whatever happens next.
void check(SimDisk& disk, const Promise& promise, Next next) {
  const auto found = reopen(disk);
  ASSERT_TRUE(found);
  Events with_open = promise.stored;
  with_open.insert(with_open.end(), promise.open.begin(), promise.open.end());
  ASSERT_TRUE(*found == promise.stored || *found == with_open)
      << "stored " << promise.stored.size() << ", open " << promise.open.size() << ", found "
      << found->size();
  if (next == Next::kPowerLoss) {
    disk.lose_power();
    ASSERT_EQ(reopen(disk), *found) << "what open() showed was not durable";
  }

  Promise goes_on{*found, {}};
  {
    History state;
    const auto journal = FileJournal::open(disk.files(), kSmall, state);
    ASSERT_TRUE(journal) << journal.error();
    append(**journal, {{400, "one that needs no new segment"}}, goes_on);
    if (next == Next::kPowerLoss) {
      for (std::int64_t zxid = 41; zxid < 44; ++zxid) append(**journal, batch_of(zxid), goes_on);
      ASSERT_TRUE((*journal)->close());
    }
  }
  disk.lose_power();
  ASSERT_EQ(reopen(disk), goes_on.stored);
}

enum class Restart { kProcess, kMachine };

class FaultSweep : public testing::TestWithParam<Fault> {};

/// Fails the 1st, 2nd, ... nth call of the run until a run sees no fault.
void sweep(Fault fault, Restart restart, Next next, std::uint64_t seed) {
  for (std::uint64_t nth = 0;; ++nth) {
    SCOPED_TRACE("call " + std::to_string(nth) + ", seed " + std::to_string(seed));
    SimDisk disk(seed + nth);
    disk.fail_at(nth, fault);
    Promise promise;

    run(disk, promise);
    const bool failed = disk.has_failed();
    restart == Restart::kMachine ? disk.lose_power() : disk.kill_process();

    check(disk, promise, next);
    if (testing::Test::HasFatalFailure() || testing::Test::HasNonfatalFailure()) return;
    if (failed) continue;
    EXPECT_EQ(promise.stored.size(), 41U) << "without a fault everything is stored";
    EXPECT_GT(nth, 200U) << "the run makes many calls";
    return;
  }
}

TEST_P(FaultSweep, H83_H84_NothingAcknowledgedIsLostWhenTheMachineRestarts) {
  sweep(GetParam(), Restart::kMachine, Next::kPowerLoss, 1000);
  sweep(GetParam(), Restart::kMachine, Next::kMoreWork, 2000);
}

TEST_P(FaultSweep, H83_H84_NothingAcknowledgedIsLostWhenTheProcessRestarts) {
  // Without power there is no process to restart.
  const Restart restart = GetParam() == Fault::kLosePower ? Restart::kMachine : Restart::kProcess;
  sweep(GetParam(), restart, Next::kPowerLoss, 3000);
  sweep(GetParam(), restart, Next::kMoreWork, 4000);
}

/// Only the calls of one fold, so that every pair of steps has its crash.
TEST(FaultSweep, H94_AFoldThatIsInterruptedLosesNothingAndLeavesNothingBehind) {
  for (std::uint64_t nth = 0;; ++nth) {
    SCOPED_TRACE("call " + std::to_string(nth));
    SimDisk disk(nth);
    Promise promise;
    {
      History state;
      const auto journal = FileJournal::open(disk.files(), kSmall, state);
      ASSERT_TRUE(journal);
      for (std::int64_t zxid = 1; !(*journal)->needs_folding(); ++zxid) {
        append(**journal, batch_of(zxid), promise);
      }
      disk.fail_at(nth, Fault::kLosePower);
      History empty;
      (void)(*journal)->fold(empty);
    }
    const bool failed = disk.has_failed();
    disk.lose_power();

    EXPECT_EQ(reopen(disk), promise.stored);
    for (const auto& [name, bytes] : disk.content()) {
      EXPECT_FALSE(name.ends_with(".tmp")) << name;
    }
    check(disk, promise, Next::kPowerLoss);
    if (testing::Test::HasFatalFailure() || testing::Test::HasNonfatalFailure()) return;
    if (!failed) break;
  }
}

/// A torn tail, and then power is lost again at every step of the recovery.
TEST(FaultSweep, H77_ARecoveryThatIsInterruptedIsDoneAgain) {
  std::uint64_t torn = 0;
  for (std::uint64_t first = 30; first < 220; first += 2) {
    for (std::uint64_t second = 0;; ++second) {
      SCOPED_TRACE("calls " + std::to_string(first) + " and " + std::to_string(second));
      SimDisk disk(first);
      disk.fail_at(first, Fault::kLosePower);
      Promise promise;
      run(disk, promise);
      disk.lose_power();

      disk.fail_at(second, Fault::kLosePower);
      History state;
      const auto journal = FileJournal::open(disk.files(), kSmall, state);
      if (journal && (*journal)->recovered().bytes_cut > 0) ++torn;
      const bool failed = disk.has_failed();
      disk.lose_power();

      check(disk, promise, Next::kPowerLoss);
      if (testing::Test::HasFatalFailure() || testing::Test::HasNonfatalFailure()) return;
      if (!failed) break;
    }
  }
  EXPECT_GT(torn, 0U) << "no tail was torn: the sweep has lost its point";
}

TEST(FaultSweep, H84_AFailedSyncIsNotAskedAgain) {
  SimDisk disk(1);
  History state;
  const auto journal = FileJournal::open(disk.files(), kSmall, state);
  ASSERT_TRUE(journal);
  Promise promise;
  append(**journal, {{1, "stored"}}, promise);
  disk.fail_at(1, Fault::kDropDirty);  // The call after the write.

  const auto failed = (*journal)->append(entries_of({{2, "open"}}));
  const std::uint64_t calls = disk.calls();

  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error(), Code::kStorage);
  EXPECT_EQ((*journal)->append(entries_of({{3, "late"}})).error().message(),
            failed.error().message());
  EXPECT_EQ((*journal)->close().error().message(), failed.error().message());
  EXPECT_EQ(disk.calls(), calls) << "the journal touched the disk after its failure";
  disk.kill_process();
  promise.open = {{2, "open"}};
  check(disk, promise, Next::kPowerLoss);
}

TEST(FaultSweep, H83_AFullDiskStopsAppendsAndStillTakesTheEndMark) {
  SimDisk disk(1);
  History state;
  auto journal = FileJournal::open(disk.files(), kSmall, state);
  ASSERT_TRUE(journal);
  Promise promise;
  disk.fill_up();

  for (std::int64_t zxid = 1; promise.open.empty(); ++zxid) {
    append(**journal, {{zxid, "a small one"}}, promise);
  }

  EXPECT_EQ(promise.stored.size(), 6U) << "header, six batches and the mark: eight sectors";
  EXPECT_TRUE((*journal)->close());
  EXPECT_EQ((*journal)->append(entries_of(promise.open)).error(), Code::kStorage);
  journal->reset();
  disk.lose_power();
  disk.make_room();
  History again;
  const auto reopened = FileJournal::open(disk.files(), kSmall, again);
  ASSERT_TRUE(reopened) << reopened.error();
  EXPECT_TRUE((*reopened)->recovered().closed_cleanly);
  EXPECT_EQ(again.events, promise.stored);
}

TEST(FaultSweep, H83_ADiskWithRoomAgainIsUsedAgain) {
  SimDisk disk(1);
  History state;
  const auto journal = FileJournal::open(disk.files(), kSmall, state);
  ASSERT_TRUE(journal);
  Promise promise;
  for (std::int64_t zxid = 1; zxid <= 6; ++zxid) {
    disk.fill_up();  // The spare file cannot be made in advance.
    append(**journal, {{zxid, "a small one"}}, promise);
  }
  disk.make_room();

  append(**journal, {{7, "needs a new segment"}}, promise);

  EXPECT_EQ(promise.stored.size(), 7U);
}

INSTANTIATE_TEST_SUITE_P(Storage, FaultSweep,
                         testing::Values(Fault::kFailBefore, Fault::kFailAfter, Fault::kFailPartly,
                                         Fault::kDropDirty, Fault::kLosePower),
                         [](const auto& tested) {
                           switch (tested.param) {
                             case Fault::kFailBefore: return "FailBefore";
                             case Fault::kFailAfter: return "FailAfter";
                             case Fault::kFailPartly: return "FailPartly";
                             case Fault::kDropDirty: return "DropDirty";
                             case Fault::kLosePower: return "LosePower";
                           }
                           return "";
                         });

}  // namespace
}  // namespace latchkey::storage
