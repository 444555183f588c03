#include "storage/file_journal.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <map>
#include <thread>

#include <gtest/gtest.h>

#include "storage/history.hpp"
#include "storage/sim_disk.hpp"
#include "storage/temp_folder.hpp"

namespace latchkey::storage {
namespace {

using Events = std::vector<History::Event>;

/// A table of names and values; entries are "name=value", so that churn does not make it grow.
class Table final : public State {
 public:
  Result<void> load(std::string_view item) override {
    put(item);
    return {};
  }
  Result<void> replay(const Entry& entry) override {
    put(entry.bytes);
    return {};
  }
  void save(base::FunctionRef<void(std::string_view item)> sink) const override {
    for (const auto& [name, value] : rows) sink(name + "=" + value);
  }
  void put(std::string_view row) {
    const std::size_t equals = row.find('=');
    rows[std::string(row.substr(0, equals))] = row.substr(equals + 1);
  }

  std::map<std::string, std::string> rows;
};

class FileJournalTest : public testing::Test {
 protected:
  std::unique_ptr<FileJournal> open(State& state, const FileJournalOptions& options = {}) {
    auto journal = FileJournal::open(folder_, options, state);
    EXPECT_TRUE(journal) << journal.error();
    return journal ? *std::move(journal) : nullptr;
  }

  TempFolder parent_;
  const std::filesystem::path folder_ = parent_.path() / "data";
};

TEST_F(FileJournalTest, MakesAFolderForItsOwnerOnly) {
  History state;
  const auto journal = open(state);

  struct stat status {};
  ASSERT_EQ(::stat(folder_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0700U);
  for (const auto& file : std::filesystem::directory_iterator(folder_)) {
    ASSERT_EQ(::stat(file.path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0600U) << file.path();
  }
  EXPECT_EQ(journal->recovered().last_zxid, 0);
  EXPECT_TRUE(journal->recovered().closed_cleanly);
}

TEST_F(FileJournalTest, SaysWhichFolderCannotBeMade) {
  History state;
  const auto journal = FileJournal::open(folder_ / "deeper", {}, state);

  ASSERT_FALSE(journal);
  EXPECT_EQ(journal.error(), Code::kStorage);
  EXPECT_NE(journal.error().message().find("data/deeper"), std::string::npos) << journal.error();
}

TEST_F(FileJournalTest, GivesBackWhatWasAppended) {
  const Events events{{1, "one"}, {2, ""}, {0x100000001, std::string(100000, '\0')}};
  {
    History state;
    const auto journal = open(state, {.segment_bytes = 8192});
    for (const auto& event : events) ASSERT_TRUE(journal->append(entries_of({event})));
  }

  History state;
  const auto journal = open(state, {.segment_bytes = 8192});

  EXPECT_EQ(state.events, events);
  EXPECT_EQ(describe(journal->recovered()),
            "zxid 0x100000001: 0 items of a snapshot, 3 entries; the last run was not closed");
}

TEST_F(FileJournalTest, AFolderHasOneJournalAtATime) {
  History state;
  const auto journal = open(state);
  History other;

  const auto second = FileJournal::open(folder_, {}, other);

  ASSERT_FALSE(second);
  EXPECT_EQ(second.error(), Code::kInUse);
}

TEST_F(FileJournalTest, NamesTheProcessThatHasTheFolder) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // Whatever becomes of this test.
    History state;
    const auto journal = FileJournal::open(folder_, {}, state);
    (void)!::write(ready[1], journal ? "y" : "n", 1);
    for (;;) ::pause();
  }
  char answer = 0;
  ASSERT_EQ(::read(ready[0], &answer, 1), 1);
  ASSERT_EQ(answer, 'y');

  History state;
  const auto refused = FileJournal::open(folder_, {}, state);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  const auto opened = FileJournal::open(folder_, {}, state);

  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), Code::kInUse);
  EXPECT_NE(refused.error().message().find(folder_.string()), std::string::npos);
  EXPECT_NE(refused.error().message().find("process " + std::to_string(child)), std::string::npos)
      << refused.error();
  EXPECT_TRUE(opened) << "a killed process leaves no lock";
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(FileJournalTest, LeavesForeignFilesAloneAndRemovesHalfMadeOnes) {
  {
    History nothing;
    open(nothing);
  }
  for (const char* name : {"notes.txt", "journal-old", "spare.tmp", "snapshot.tmp"}) {
    std::ofstream(folder_ / name) << "something";
  }
  History state;
  const auto journal = open(state);

  EXPECT_TRUE(std::filesystem::exists(folder_ / "notes.txt"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "journal-old"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "spare.tmp"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "snapshot.tmp"));
}

TEST_F(FileJournalTest, H79_AFoldedJournalTellsTheSameStory) {
  const FileJournalOptions options{.segment_bytes = 8192, .fold_bytes = 1};
  Events events;
  for (std::int64_t zxid = 1; zxid <= 90; ++zxid) {
    events.push_back({zxid, "entry " + std::to_string(zxid)});
  }
  for (std::size_t part = 0; part < 3; ++part) {
    History state;
    const auto journal = open(state, options);
    EXPECT_EQ(state.events.size(), part * 30);
    for (std::size_t i = part * 30; i < part * 30 + 30; ++i) {
      ASSERT_TRUE(journal->append(entries_of({events[i]})));
    }
    History empty;
    ASSERT_TRUE(journal->fold(empty));
    ASSERT_TRUE(journal->close());
  }

  History state;
  const auto journal = open(state, options);

  EXPECT_EQ(state.events, events);
  EXPECT_GT(journal->recovered().items, 50U);
  EXPECT_TRUE(journal->recovered().closed_cleanly);
}

TEST_F(FileJournalTest, TakesAppendsWhileItFolds) {
  const FileJournalOptions options{.segment_bytes = 16384, .fold_bytes = 32768};
  Events events;
  {
    History state;
    const auto journal = open(state, options);
    std::atomic<bool> done{false};
    std::atomic<int> folds{0};
    std::thread folder([&] {
      while (!done) {
        if (!journal->needs_folding()) {
          std::this_thread::yield();
          continue;
        }
        History empty;
        EXPECT_TRUE(journal->fold(empty));
        ++folds;
      }
    });
    for (std::int64_t zxid = 1; zxid <= 100 || (folds < 3 && zxid < 100000); ++zxid) {
      events.push_back({zxid, std::string(static_cast<std::size_t>(zxid % 2000), 'x')});
      if (!journal->append(entries_of({events.back()}))) break;
    }
    done = true;
    folder.join();
    EXPECT_GE(folds, 3);
    EXPECT_TRUE(journal->close());
  }

  History state;
  const auto journal = open(state, options);
  EXPECT_TRUE(state.events == events);
}

/// Appends `rounds` entries and folds whenever asked to; counts the folds.
template <class Fold, class Row>
std::size_t churn(SimDisk& disk, const FileJournalOptions& options, int rounds, Row row) {
  Fold state;
  const auto journal = FileJournal::open(disk.files(), options, state);
  std::size_t folds = 0;
  for (int round = 1; round <= rounds; ++round) {
    const std::string bytes = row(round);
    const Entry entry{round, bytes};
    EXPECT_TRUE((*journal)->append({&entry, 1}));
    if (!(*journal)->needs_folding()) continue;
    Fold empty;
    EXPECT_TRUE((*journal)->fold(empty));
    EXPECT_FALSE((*journal)->needs_folding());
    ++folds;
    if (std::is_same_v<Fold, Table>) {
      EXPECT_LE(disk.bytes(), 65536U * 3) << "a snapshot, a segment and a spare one";
    }
  }
  EXPECT_TRUE((*journal)->close());
  return folds;
}

TEST(FileJournal, H94_DiskUseReturnsToItsBaseAfterChurn) {
  const FileJournalOptions options{
      .segment_bytes = 65536, .fold_bytes = 200000, .spare = Spare::kInAppend};
  SimDisk disk(1);
  Table live;

  const std::size_t folds = churn<Table>(disk, options, 4000, [&](int round) {
    std::string row = "key" + std::to_string(round % 50) + "=" + std::to_string(round);
    row.append(1000, 'v');
    live.put(row);
    return row;
  });

  EXPECT_GT(folds, 10U) << "6 MB went through it";
  Table again;
  EXPECT_TRUE(FileJournal::open(disk.files(), options, again));
  EXPECT_EQ(again.rows, live.rows);
}

TEST(FileJournal, FoldingCostsNoMoreThanInProportionToWhatIsAppended) {
  const FileJournalOptions options{
      .segment_bytes = 8192, .fold_bytes = 16384, .spare = Spare::kInAppend};
  SimDisk disk(1);

  const std::size_t folds =
      churn<History>(disk, options, 1000, [](int) { return std::string(400, 'x'); });

  EXPECT_GE(folds, 3U);
  EXPECT_LE(folds, 12U) << "a state that only grows is folded ever more rarely";
}

const FileJournalOptions kSimulated{.segment_bytes = 2048, .spare = Spare::kInAppend};

TEST(FileJournal, H77_AStateThatRefusesStopsTheStartAndItIsSaidWhereAndWhatHelps) {
  class Picky final : public State {
   public:
    Result<void> load(std::string_view) override { return {}; }
    Result<void> replay(const Entry& entry) override {
      if (entry.zxid == 2) return Error{Code::kDamaged, "I do not know 2"};
      return {};
    }
    void save(base::FunctionRef<void(std::string_view item)>) const override {}
  };
  SimDisk disk(1);
  {
    History state;
    const auto journal = FileJournal::open(disk.files(), kSimulated, state);
    ASSERT_TRUE((*journal)->append(entries_of({{1, "a"}, {2, "b"}})));
  }
  Picky picky;

  const auto journal = FileJournal::open(disk.files(), kSimulated, picky);

  ASSERT_FALSE(journal);
  EXPECT_EQ(journal.error(), Code::kDamaged);
  const std::string& message = journal.error().message();
  for (const char* part : {"/journal-0000000000000001-0000000000000001: I do not know 2",
                           "zxid 0x2", "at offset 512", "nothing was changed", "from a copy"}) {
    EXPECT_NE(message.find(part), std::string::npos) << part << " in " << message;
  }
}

TEST(FileJournal, ABatchOfAGigabyteIsRefusedAndChangesNothing) {
  SimDisk disk(1);
  History state;
  const auto journal = FileJournal::open(disk.files(), kSimulated, state);
  const std::string big(std::size_t{1} << 20U, 'x');
  std::vector<Entry> batch;
  for (std::int64_t zxid = 1; zxid <= 1024; ++zxid) batch.push_back({zxid, big});

  EXPECT_EQ((*journal)->append(batch).error(), Code::kTooLarge);

  EXPECT_TRUE((*journal)->append(entries_of({{1, "small"}})));
}

TEST(FileJournal, OpeningAndClosingAgainAndAgainTakesNoSpace) {
  SimDisk disk(1);
  std::uint64_t bytes = 0;
  for (int round = 0; round < 50; ++round) {
    History state;
    const auto journal = FileJournal::open(disk.files(), kSimulated, state);
    ASSERT_TRUE(journal) << journal.error();
    if (round == 0) {
      ASSERT_TRUE((*journal)->append(entries_of({{1, "a"}})));
      bytes = disk.bytes();
    }
    ASSERT_TRUE((*journal)->close());
  }

  EXPECT_LE(disk.bytes(), bytes);
}

}  // namespace
}  // namespace latchkey::storage
